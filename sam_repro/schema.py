"""The whole vocabulary of a run's configuration, typed, and the rules between its fields.

A field is documented where it is declared. `configs/` gives the fields their values, group by group; a key that is not
declared here does not exist. `check` refuses, before anything is loaded, what can't work; `UserError` is how every part
of the project tells its user of a mistake: one line, exit code 2.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from enum import Enum

from sam_repro.methods.spec import Ascent as Ascent
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
    epochs: int = 200  # of a plain run; budget.epochs scales it
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
    drop_last: bool = True


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
    on_divergence: OnDivergence = (
        OnDivergence.stop
    )  # a NaN or infinite loss: record the run as collapsed and stop, or go on
    results_dir: str = "results"
    force: bool = False  # train a finished run again


def recipe_epochs(config: Config) -> int:
    schedule = config.schedule
    plain = config.method.ascent is Ascent.none and schedule.plain_epochs is not None
    return schedule.plain_epochs if plain and schedule.plain_epochs is not None else schedule.epochs


def epochs(config: Config) -> int:
    """How long a run trains: the recipe's epochs, scaled by the budget."""
    scaled = max(1, round(recipe_epochs(config) * config.budget.epochs))
    return scaled if config.budget.max_epochs is None else min(scaled, config.budget.max_epochs)


def warmup_epochs(config: Config) -> float:
    """The warm-up keeps its share of the run, whatever the budget."""
    return config.schedule.warmup_epochs * epochs(config) / recipe_epochs(config)


def within_budget(config: Config) -> Config:
    """The configuration with the budget's cap on batches applied: what a run trains and what its id is made of."""
    cap = config.budget.max_batch
    if cap is None or config.loop.batch_size <= cap:
        return config
    loop = replace(config.loop, batch_size=cap, micro_batch=_least(config.loop.micro_batch, cap))
    larger = config.method.ascent_batch
    method = replace(config.method, m=_least(config.method.m, cap), ascent_batch=None if larger is None else 2 * cap)
    return replace(config, loop=loop, method=method)


def _least(value: int | None, cap: int) -> int | None:
    return None if value is None else min(value, cap)


def check(config: Config) -> Config:
    """Raise `UserError` for the first rule between fields that is broken; nothing has been loaded yet."""
    for key, broken, message in _rules(config):
        if broken:
            raise UserError(f"{key} {message}")
    return config


def _rules(c: Config) -> Iterator[tuple[str, bool, str]]:
    """(key, broken, what to do). Written as data so that a rule is a line."""
    from sam_repro.models.catalog import problems  # here: it needs this module's vocabulary

    for key, problem in c.method.problems():
        yield f"method.{key}", True, problem
    for key, problem in problems(c.model, c.dataset.image_size):
        yield f"model.{key}", True, problem
    for key, value, low in (
        ("dataset.classes", c.dataset.classes, 2),
        ("dataset.image_size", c.dataset.image_size, 1),
        ("dataset.train_images", c.dataset.train_images, 1),
        ("dataset.test_images", c.dataset.test_images, 1),
        ("schedule.epochs", c.schedule.epochs, 1),
        ("schedule.plain_epochs", c.schedule.plain_epochs, 1),
        ("augment.crop", c.augment.crop, 0),
        ("augment.cutout", c.augment.cutout, 0),
        ("budget.max_epochs", c.budget.max_epochs, 1),
        ("budget.max_steps", c.budget.max_steps, 1),
        ("budget.max_batch", c.budget.max_batch, 1),
        ("budget.train_images", c.budget.train_images, 1),
        ("budget.test_images", c.budget.test_images, 1),
        ("budget.seeds", c.budget.seeds, 1),
        ("loop.batch_size", c.loop.batch_size, 1),
        ("loop.micro_batch", c.loop.micro_batch, 1),
        ("loop.eval_batch", c.loop.eval_batch, 1),
        ("runtime.ranks", c.runtime.ranks, 1),
        ("runtime.threads", c.runtime.threads, 1),
        ("runtime.checkpoint_steps", c.runtime.checkpoint_steps, 1),
        ("track.every", c.track.every, 1),
        ("seed", c.seed, 0),
    ):
        yield key, value is not None and value < low, f"must be at least {low}, is {value}"
    for key, number, low_, high in (
        ("dataset.label_noise.rate", c.dataset.label_noise.rate, 0.0, 1.0),
        ("dataset.validation", c.dataset.validation, 0.0, 0.9),
        ("base_optimizer.lr", c.base_optimizer.lr, 0.0, 1e6),
        ("base_optimizer.weight_decay", c.base_optimizer.weight_decay, 0.0, 1e6),
        ("base_optimizer.momentum", c.base_optimizer.momentum, 0.0, 0.999999),
        ("base_optimizer.beta1", c.base_optimizer.beta1, 0.0, 0.999999),
        ("base_optimizer.beta2", c.base_optimizer.beta2, 0.0, 0.999999),
        ("base_optimizer.alpha", c.base_optimizer.alpha, 0.0, 0.999999),
        ("base_optimizer.eps", c.base_optimizer.eps, 0.0, 1.0),
        ("schedule.warmup_epochs", c.schedule.warmup_epochs, 0.0, 1e6),
        ("schedule.warmup_start", c.schedule.warmup_start, 0.0, 1.0),
        ("schedule.final", c.schedule.final, 0.0, 1.0),
        ("augment.cutout_probability", c.augment.cutout_probability, 0.0, 1.0),
        ("augment.label_smoothing", c.augment.label_smoothing, 0.0, 0.99),
        ("budget.epochs", c.budget.epochs, 1e-9, 1e6),
        ("runtime.checkpoint_minutes", c.runtime.checkpoint_minutes, 0.0, 1e6),
    ):
        yield key, not low_ <= number <= high, f"must be between {low_:g} and {high:g}, is {number:g}"

    clip = c.loop.clip_norm
    yield (
        "loop.clip_norm",
        clip is not None and not 0 < clip < float("inf"),
        f"must be positive, is {clip}; null: no clipping",
    )
    for key, values in (("dataset.mean", c.dataset.mean), ("dataset.std", c.dataset.std)):
        yield key, len(values) != 3, f"needs three values, one a channel; has {len(values)}"
    yield "dataset.std", any(not v > 0 for v in c.dataset.std), "must be positive"
    yield ("base_optimizer.nesterov", c.base_optimizer.nesterov and not c.base_optimizer.momentum,
           "needs base_optimizer.momentum > 0")  # fmt: skip
    yield ("runtime.loss_scaler", c.runtime.precision is Precision.fp16 and not c.runtime.loss_scaler,
           "must be true for runtime.precision=fp16: small gradients vanish without it; or use bf16")  # fmt: skip
    recipe = recipe_epochs(c)
    yield "schedule.warmup_epochs", c.schedule.warmup_epochs > recipe, f"exceeds the run's {recipe} epochs"

    batch, ranks, m = c.loop.batch_size, c.runtime.ranks, c.method.m
    yield "runtime.ranks", ranks > batch, f"is {ranks}, more than loop.batch_size={batch}: a rank would have no sample"
    yield "loop.batch_size", batch % ranks != 0, f"is {batch}, not divisible by runtime.ranks={ranks}"
    if m is not None:
        yield "method.m", m > batch or batch % m != 0, f"is {m} and must divide loop.batch_size={batch}"
        yield ("runtime.ranks", batch // m % ranks != 0,
               f"is {ranks} and must divide the {batch // m} shards that method.m={m} makes of a batch")  # fmt: skip
        yield ("method.m", c.method.ascent is Ascent.full,
               f"is {m}, but the full gradient (method.ascent=full) has no shards: leave method.m out")  # fmt: skip
    larger = c.method.ascent_batch
    yield (
        "method.ascent_batch",
        larger is not None and larger <= batch,
        f"is {larger} and must exceed loop.batch_size={batch}",
    )
    yield ("dataset.validation", c.dataset.evaluate_on is Split.validation and not c.dataset.validation > 0,
           "must be > 0 for dataset.evaluate_on=validation")  # fmt: skip
