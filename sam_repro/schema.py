"""The whole vocabulary of a run's configuration, typed.

A field is documented where it is declared. `configs/` gives the fields their values, group by group; a key that is not
declared here does not exist. `sam_repro.rules` refuses, before anything is loaded, what can't work; `UserError` is how
every part of the project tells its user of a mistake: one line, exit code 2.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from enum import Enum

from sam_repro.methods.spec import Spec


class UserError(ValueError):
    """A mistake of the user's, told in one line that names the key and the fix."""


class Source(Enum):
    embedded = "embedded"  # balanced subset of Fashion-MNIST inside the package
    fashion_mnist = "fashion_mnist"
    cifar10 = "cifar10"
    cifar100 = "cifar100"
    folder = "folder"  # root/train/<class>/*.png and root/test/<class>/*.png
    imagenet = "imagenet"  # root/train/<wnid>/*.JPEG and root/val/<wnid>/*.JPEG
    flowers102 = "flowers102"  # Oxford Flowers-102 and Oxford-IIIT Pets, in torchvision's layout
    pets = "pets"
    synthetic = "synthetic"  # random pixels and balanced labels, any size and number of classes: for trials and timing


class Split(Enum):
    test = "test"
    validation = "validation"  # held-out part of the training set, for choosing hyperparameters


class Fit(Enum):
    crop = "crop"  # the shorter side to image_size / crop_share, then the centre
    squash = "squash"  # both sides to image_size, whatever the proportions


@dataclass
class LabelNoise:
    rate: float = 0.0  # share of training labels redrawn
    include_true: bool = False  # whether a redrawn label may be the true one again
    seed: int = 0  # of its own generator, so that all seeds of a run share one corruption


@dataclass
class DatasetConfig:
    name: Source = Source.embedded
    root: str = "data"  # where the files are; not part of a run's identity
    classes: int = 10
    image_size: int = 32
    mean: list[float] = field(default_factory=lambda: [0.5, 0.5, 0.5])
    std: list[float] = field(default_factory=lambda: [0.5, 0.5, 0.5])
    train_images: int | None = None  # a fixed, class-balanced subset; null: all
    test_images: int | None = None
    stream: bool = False  # read and decode in worker processes while training, instead of once into memory
    fit: Fit = Fit.crop  # how an image of another size becomes image_size pixels
    crop_share: float = 1.0  # ImageNet's usual 224 of 256 pixels: 0.875
    skip_unreadable: int = 0  # so many broken image files are named and left out; one more ends the run
    workers: int | None = None  # that decode, a rank; null: its share of the cores. Not part of a run's identity
    evaluate_on: Split = Split.test
    validation: float = 0.1  # share of the training set held out when evaluate_on=validation
    label_noise: LabelNoise = field(default_factory=LabelNoise)


class Architecture(Enum):
    resnet_cifar = "resnet_cifar"  # 6n+2 layers, 1x1 shortcuts (ResNet-20/32/56); ResNet-8 with a strided stem
    wrn = "wrn"  # WRN-depth-width, pre-activation
    resnet = "resnet"  # ResNet-18/50, as on ImageNet but for the stem
    resnext_cifar = "resnext_cifar"  # 9n+2 layers, `groups` x `width`d (ResNeXt29-32x4d)
    densenet = "densenet"  # DenseNet-121
    vgg = "vgg"  # VGG16/19 with batch norm, head by `head`
    pyramidnet = "pyramidnet"  # widened by `alpha` in equal parts over its blocks
    timm = "timm"  # any model of timm, by its `name`: ViT and DeiT too


class Stem(Enum):
    cifar = "cifar"  # 3x3, stride 1, no pooling
    strided = "strided"  # 3x3, stride 2: for miniatures
    imagenet = "imagenet"  # 7x7, stride 2, max pooling


class Head(Enum):
    linear = "linear"  # one linear layer
    fsam = "fsam"  # the F-SAM authors' 512-512 perceptron with dropout
    torchvision = "torchvision"  # 25088-4096-4096 with dropout


@dataclass
class ModelConfig:
    """The default is ResNet-8. `sam_repro.models.catalog` knows which architecture takes which field (null: not)."""

    architecture: Architecture = Architecture.resnet_cifar
    name: str | None = None  # timm: the model's name there, `convnext_tiny` say; null for all others
    depth: int | None = 8  # layers
    width: int | None = 32  # resnet_cifar: channels of stage 1; wrn: widening factor; resnext_cifar: channels a group
    stem: Stem | None = Stem.strided  # resnet_cifar, resnet, densenet
    groups: int | None = None  # resnext_cifar
    head: Head | None = None  # vgg
    bottleneck: bool = False  # pyramidnet: blocks of 1x1, 3x3, 1x1 and not of two 3x3
    alpha: int | None = None  # pyramidnet: channels added from the first block to the last
    shakedrop: float = 0.0  # pyramidnet: chance that the last block is shaken, rising linearly with depth; 0: never
    dropout: float = 0.0  # wrn: inside the blocks; timm: before the classifier
    drop_path: float = 0.0  # timm: stochastic depth
    pretrained: bool = False  # resnet with its ImageNet stem, timm: timm's published weights, downloaded
    weights: str | None = None  # a file to start from, .safetensors or torch; a head of other classes starts afresh


@dataclass
class MethodConfig(Spec):
    """A point of the algebra in `sam_repro.methods.spec`, and what tables call it."""

    name: str = "plain"


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
    train_images: int | None = None  # at most that many
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


@dataclass
class LoopConfig:
    batch_size: int = 128  # samples a step, over all ranks
    micro_batch: int | None = None  # samples a forward pass; null: a rank's whole share. Batch norm sees that many
    eval_batch: int = 512
    clip_norm: float | None = None  # of the final gradient
    batchnorm: BatchNorm = BatchNorm.first
    masks: Masks = Masks.shared
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
    """Where and how fast. Of this only `precision` is part of a run's identity."""

    ranks: int = 1  # local processes; under torchrun or Slurm theirs counts
    device: Device = Device.auto
    precision: Precision = Precision.bf16
    loss_scaler: bool = True  # for fp16
    channels_last: bool = True
    compile: bool = False
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
    budget: BudgetConfig = field(default_factory=BudgetConfig)
    loop: LoopConfig = field(default_factory=LoopConfig)
    runtime: RuntimeConfig = field(default_factory=RuntimeConfig)
    track: TrackConfig = field(default_factory=TrackConfig)
    seed: int = 0
    on_divergence: OnDivergence = OnDivergence.stop  # a NaN or infinite loss collapses the run: stop there, or go on
    results_dir: str = "results"
    force: bool = False  # train a finished run again
