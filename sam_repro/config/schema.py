"""The whole vocabulary of a run's configuration, typed.

A field is documented where it is declared. `configs/` gives the fields their values, group by group; a key that is not
declared here does not exist. `sam_repro.config.rules` refuses, before anything is loaded, what can't work.
The fields of data, model and method are declared in the rooms that read them, without torch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum
from typing import Any

from sam_repro.data.declared import DatasetConfig as DatasetConfig
from sam_repro.methods.spec import Spec
from sam_repro.models.catalog import ModelConfig as ModelConfig
from sam_repro.tasks.translation.declared import DecodingConfig as DecodingConfig


@dataclass
class MethodConfig(Spec):
    """A point of the algebra in `sam_repro.methods.spec`, and what tables call it."""

    name: str = "plain"

    def canonical(self) -> dict[str, Any]:
        return super().canonical() | {"name": self.name}


class Optimizer(Enum):
    sgd = "sgd"
    rmsprop = "rmsprop"
    adam = "adam"
    adamw = "adamw"


@dataclass
class BaseOptimizerConfig:
    name: Optimizer = Optimizer.sgd
    lr: float = 0.1
    weight_decay: float = 5e-4
    decay_norm_and_bias: bool = True  # false: no weight decay for 1-D parameters
    momentum: float = 0.9  # sgd, rmsprop
    nesterov: bool = False  # sgd
    beta1: float = 0.9  # adam, adamw
    beta2: float = 0.999
    alpha: float = 0.99  # rmsprop
    eps: float = 1e-8


class Decay(Enum):
    constant = "constant"
    cosine = "cosine"
    linear = "linear"
    inverse_sqrt = "inverse_sqrt"


class Unit(Enum):
    step = "step"
    epoch = "epoch"  # the learning rate is held during an epoch


@dataclass
class ScheduleConfig:
    epochs: int = 200  # of a run; budget.epochs scales it
    plain_epochs: int | None = None  # where a method without ascent gets other epochs (ASAM's SGD rows: twice as many)
    decay: Decay = Decay.cosine
    per: Unit = Unit.step
    warmup_epochs: float = 0.0  # linear, from lr * warmup_start
    warmup_steps: int | None = None  # the same, where a recipe counts it in steps
    warmup_start: float = 0.0
    final: float = 0.0  # the last learning rate, as a share of the peak


class Policy(Enum):
    none = "none"
    autoaugment_cifar = "autoaugment_cifar"
    autoaugment_imagenet = "autoaugment_imagenet"
    randaugment = "randaugment"


@dataclass
class AugmentConfig:
    crop: int = 4  # pixels of zero padding before a random crop; 0: none
    flip: bool = True
    cutout: int = 0  # side of the square that is blanked (DeVries); 0: none
    cutout_probability: float = 1.0
    label_smoothing: float = 0.0
    resized_crop: float = 0.0  # smallest area share of a random crop resized to image_size (Inception's 0.08); 0: none
    policy: Policy = Policy.none
    randaugment_ops: int = 2
    randaugment_magnitude: int = 9  # of torchvision's scale 0 .. 30
    mixup: float = 0.0  # alpha of the Beta distribution; 0: none
    cutmix: float = 0.0  # with both, either with probability 1/2
    mix_probability: float = 1.0  # that a sample is mixed at all


@dataclass
class BudgetConfig:
    """What of a recipe a run spends. It scales a recipe, never its meaning."""

    name: str = "paper"
    epochs: float = 1.0  # times the recipe's
    max_epochs: int | None = None
    train_images: int | None = None  # at most that many, or pairs of sentences
    test_images: int | None = None
    max_steps: int | None = None  # ends an epoch early (debug=limit)
    max_batch: int | None = None  # caps batches, micro-batches and m, so that a large-batch recipe still has a step
    overfit: bool = False  # one batch, over and over (debug=overfit)
    seeds: int | None = None  # of a table's cell, at most that many


class BatchNorm(Enum):
    first = "first"  # running statistics come from a step's first pass only
    last = "last"
    both = "both"


class Masks(Enum):
    shared = "shared"  # dropout and drop-path draw the same masks in every pass of a step
    independent = "independent"


class Loss(Enum):
    softmax = "softmax"  # cross-entropy of one class among all
    sigmoid = "sigmoid"  # of every class by itself, summed; label smoothing lifts the wrong classes alone


@dataclass
class LoopConfig:
    batch_size: int = 128  # samples a step, over all ranks; of text this and the next two count tokens
    micro_batch: int | None = None  # samples a forward pass; null: a rank's whole share. Batch norm sees that many
    eval_batch: int = 512
    loss: Loss = Loss.softmax
    clip_norm: float | None = None  # of the final gradient
    batchnorm: BatchNorm = BatchNorm.first
    masks: Masks = Masks.shared
    keep_best: bool = False  # keep the weights of the best epoch too, and of the one picked on validation
    keep_every: int | None = None  # keep the weights of every so many epochs too
    probe_steps: int | None = None  # compare the ascent with the full gradient every so many steps: metrics *_cosine
    drop_last: bool = True  # an epoch's last samples that fill no batch wait for the next epoch's order


class Device(Enum):
    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


class Precision(Enum):
    fp32 = "fp32"
    bf16 = "bf16"
    fp16 = "fp16"


class Determinism(Enum):
    off = "off"  # the fastest kernels
    seeded = "seeded"  # fixed seeds and algorithms; on a CPU the same bits
    bitwise = "bitwise"  # deterministic kernels everywhere, slower on CUDA


@dataclass
class RuntimeConfig:
    """Where and how fast. Of this only `precision` is part of a run's identity, and where they change them the samples
    that `ranks` leave to a forward pass and the masks that `compile` draws."""

    ranks: int = 1  # local processes; under torchrun or Slurm theirs counts
    device: Device = Device.auto
    precision: Precision = Precision.bf16
    loss_scaler: bool = True  # for fp16
    channels_last: bool = True
    compile: bool = False  # by torch, which wants a C++ compiler; images only
    determinism: Determinism = Determinism.seeded
    threads: int | None = None  # a rank; null: the cores divided by the ranks
    checkpoint_steps: int | None = None  # null: at the end of every epoch
    checkpoint_minutes: float = 10.0  # and, within an epoch, at most that far apart
    profile: bool = False  # debug=profile: a trace of a few steps


class Tracker(Enum):
    none = "none"
    wandb = "wandb"


class WandbMode(Enum):
    offline = "offline"  # files only: no account, no prompt, no network
    online = "online"
    disabled = "disabled"


@dataclass
class TrackConfig:
    name: Tracker = Tracker.wandb
    mode: WandbMode = WandbMode.offline
    project: str = "sam_repro"
    entity: str | None = None
    every: int = 50  # steps between two lines of metrics.jsonl


# "continue" is a keyword of Python, so the class can't be written out.
OnDivergence = Enum("OnDivergence", {"stop": "stop", "continue": "continue"})


@dataclass
class Config:
    dataset: DatasetConfig = field(default_factory=DatasetConfig)
    model: ModelConfig = field(default_factory=ModelConfig)
    method: MethodConfig = field(default_factory=MethodConfig)
    base_optimizer: BaseOptimizerConfig = field(default_factory=BaseOptimizerConfig)
    schedule: ScheduleConfig = field(default_factory=ScheduleConfig)
    augment: AugmentConfig = field(default_factory=AugmentConfig)
    decoding: DecodingConfig = field(default_factory=DecodingConfig)
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    track: TrackConfig = field(default_factory=TrackConfig)
    task: str | None = None  # of one's own: package.module:attribute (sam_repro/engine/task.py); null: the data set's
    seed: int = 0
    on_divergence: OnDivergence = OnDivergence.stop  # a NaN or infinite loss collapses the run: stop there, or go on
    results_dir: str = "results"
    force: bool = False  # train a finished run again
