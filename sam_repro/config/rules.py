"""The rules between the fields of a configuration, checked before anything is loaded."""

from __future__ import annotations

from collections.abc import Iterator
from operator import attrgetter

from sam_repro.config.budget import recipe_epochs
from sam_repro.config.reads import changes_rate, is_text
from sam_repro.config.schema import AugmentConfig, Config, Precision
from sam_repro.data.declared import Source, Split
from sam_repro.errors import UserError
from sam_repro.models.catalog import Architecture
from sam_repro.models.catalog import problems as model_problems
from sam_repro.own import is_named

# What a whole number must not fall below, where it is said.
_AT_LEAST: dict[str, int] = {
    "dataset.classes": 2,
    "dataset.image_size": 1,
    "dataset.pack": 1,
    "dataset.train_images": 1,
    "dataset.test_images": 1,
    "schedule.epochs": 1,
    "schedule.plain_epochs": 1,
    "schedule.warmup_steps": 1,
    "dataset.text.merges": 0,
    "dataset.text.longest": 1,
    "decoding.beam": 1,
    "decoding.limit_extra": 0,
    "augment.crop": 0,
    "augment.cutout": 0,
    "augment.randaugment_ops": 1,
    "dataset.workers": 0,
    "dataset.skip_unreadable": 0,
    "budget.max_epochs": 1,
    "budget.max_steps": 1,
    "budget.max_batch": 1,
    "budget.train_images": 1,
    "budget.test_images": 1,
    "budget.seeds": 1,
    "loop.batch_size": 1,
    "loop.micro_batch": 1,
    "loop.eval_batch": 1,
    "loop.keep_every": 1,
    "loop.probe_steps": 1,
    "runtime.ranks": 1,
    "runtime.threads": 1,
    "runtime.checkpoint_steps": 1,
    "track.every": 1,
    "seed": 0,
}
_WITHIN: dict[str, tuple[float, float]] = {
    "dataset.label_noise.rate": (0.0, 1.0),
    "dataset.validation": (0.0, 0.9),
    "base_optimizer.weight_decay": (0.0, 1e6),
    "base_optimizer.momentum": (0.0, 0.999999),
    "base_optimizer.beta1": (0.0, 0.999999),
    "base_optimizer.beta2": (0.0, 0.999999),
    "base_optimizer.alpha": (0.0, 0.999999),
    "base_optimizer.eps": (0.0, 1.0),
    "schedule.warmup_epochs": (0.0, 1e6),
    "dataset.crop_share": (1e-3, 1.0),
    "dataset.text.ratio": (1.0, 1e6),
    "decoding.length_penalty": (0.0, 10.0),
    "decoding.limit_factor": (0.0, 100.0),
    "augment.resized_crop": (0.0, 1.0),
    "augment.randaugment_magnitude": (0.0, 30.0),
    "augment.mixup": (0.0, 1e3),
    "augment.cutmix": (0.0, 1e3),
    "augment.label_smoothing": (0.0, 0.99),
    "budget.epochs": (1e-9, 1e6),
    "runtime.checkpoint_minutes": (0.0, 1e6),
}


def check(config: Config) -> Config:
    """Raise `UserError` for the first rule between fields that is broken; nothing has been loaded yet."""
    for key, broken, message in _rules(config):
        if broken:
            raise UserError(f"{key} {message}")
    return config


def _rules(c: Config) -> Iterator[tuple[str, bool, str]]:
    """(key, broken, what to do). Written as data so that a rule is a line."""
    for key, problem in c.method.problems():
        yield f"method.{key}", True, problem
    for key, problem in model_problems(c.model, c.dataset.image_size):
        yield f"model.{key}", True, problem
    yield from _ranges(c)
    yield from _between(c)


def _ranges(c: Config) -> Iterator[tuple[str, bool, str]]:
    """Of one field each."""
    for key, least in _AT_LEAST.items():
        value = attrgetter(key)(c)
        yield key, value is not None and value < least, f"must be at least {least}, is {value}"
    for key, (low, high) in _WITHIN.items():
        value = attrgetter(key)(c)
        yield key, not low <= value <= high, f"must be between {low:g} and {high:g}, is {value:g}"

    yield "base_optimizer.lr", not 0 < c.base_optimizer.lr <= 1e6, f"must be positive, is {c.base_optimizer.lr:g}"
    for key, share, what in (
        ("schedule.warmup_start", c.schedule.warmup_start, "nothing warms up"),
        ("schedule.final", c.schedule.final, "that is schedule.decay=constant"),
    ):
        yield key, not 0 <= share < 1, f"must be at least 0 and below 1, is {share:g}: at 1 {what}"
    for key, chance, off in (
        ("augment.mix_probability", c.augment.mix_probability, "without mixing, leave augment.mixup and cutmix out"),
        ("augment.cutout_probability", c.augment.cutout_probability, "without cutout, leave augment.cutout out"),
    ):
        yield key, not 0 < chance <= 1, f"must be above 0 and at most 1, is {chance:g}; {off}"

    clip = c.loop.clip_norm
    no_norm = clip is not None and not 0 < clip < float("inf")
    yield "loop.clip_norm", no_norm, f"must be positive, is {clip}; null: no clipping"
    for key, values in (("dataset.mean", c.dataset.mean), ("dataset.std", c.dataset.std)):
        yield key, len(values) != 3, f"needs three values, one a channel; has {len(values)}"
    yield "dataset.std", any(not v > 0 for v in c.dataset.std), "must be positive"
    yield "seed", c.seed >= 2**63, "must be below 2^63"


def _between(c: Config) -> Iterator[tuple[str, bool, str]]:
    """Of fields of several groups."""
    yield from _of_shares(c)
    yield from _of_text(c)
    yield from _of_images(c)
    optimizer, runtime = c.base_optimizer, c.runtime
    unmoved = optimizer.nesterov and not optimizer.momentum
    yield "base_optimizer.nesterov", unmoved, "needs base_optimizer.momentum > 0"
    unscaled = runtime.precision is Precision.fp16 and not runtime.loss_scaler
    remedy = "small gradients vanish without it; or use bf16"
    yield "runtime.loss_scaler", unscaled, f"must be true for runtime.precision=fp16: {remedy}"
    yield "task", not is_named(c.task or "a:b"), f"must be package.module:attribute, or null; is {c.task!r}"
    recipe = recipe_epochs(c)
    yield "schedule.warmup_epochs", c.schedule.warmup_epochs > recipe, f"exceeds the run's {recipe} epochs"
    twice = c.schedule.warmup_epochs > 0 and c.schedule.warmup_steps is not None
    yield "schedule.warmup_steps", twice, "and schedule.warmup_epochs are the same warm-up: leave one of them out"
    still = c.method.follows_lr and not changes_rate(c)
    needed = "which needs a learning rate that moves: schedule.decay is constant"
    yield "method.radius", still, f"is {c.method.radius}, {needed}"


def _of_shares(c: Config) -> Iterator[tuple[str, bool, str]]:
    """Of a batch: what each rank, shard and pass takes."""
    batch, ranks, m, larger = c.loop.batch_size, c.runtime.ranks, c.method.m, c.method.ascent_batch
    yield "runtime.ranks", ranks > batch, f"is {ranks}, more than loop.batch_size={batch}: a rank would have no sample"
    yield "loop.drop_last", not c.loop.drop_last and ranks > 1, f"must be true with runtime.ranks={ranks}"
    yield "loop.batch_size", batch % ranks != 0, f"is {batch}, not divisible by runtime.ranks={ranks}"
    if m is not None:
        yield "method.m", m > batch or batch % m != 0, f"is {m} and must divide loop.batch_size={batch}"
        shards = f"the {batch // m} shards that method.m={m} makes of a batch"
        yield "runtime.ranks", batch // m % ranks != 0, f"is {ranks} and must divide {shards}"
        yield "loop.drop_last", not c.loop.drop_last, "must be true with method.m: a short batch has no equal shards"
        whole = c.method.ascent == "full"
        yield "method.m", whole, f"is {m}, but the full gradient has no shards: leave method.m out"
    no_larger = larger is not None and larger <= batch
    yield "method.ascent_batch", no_larger, f"is {larger} and must exceed loop.batch_size={batch}"


def _of_text(c: Config) -> Iterator[tuple[str, bool, str]]:
    """Text goes with a Transformer, and with nothing that is done to images; images with other models."""
    if c.task is not None:
        return
    data, name, translates = c.dataset, c.dataset.name.value, c.model.architecture is Architecture.transformer
    if not is_text(c):
        yield "model.architecture", translates, f"is transformer, for text: dataset={name} is images"
        return
    remedy = f"for images: add model=transformer, or model=transformer_small, to dataset={name}"
    yield "model.architecture", not translates, f"is {c.model.architecture.value}, {remedy}"
    lengths = "can't compile text: its batches are of many lengths, each of which would be compiled anew; leave it out"
    yield "runtime.compile", c.runtime.compile, lengths
    for key in ("source", "target"):
        lacking = data.name is Source.parallel and not getattr(data, key)
        yield f"dataset.{key}", lacking, f"must name a language for dataset=parallel, as its files end in it: {key}=de"
    for key in ("crop", "flip", "cutout", "resized_crop", "policy", "mixup", "cutmix"):
        value, off = getattr(c.augment, key), getattr(AugmentConfig(crop=0, flip=False), key)
        yield f"augment.{key}", value != off, f"is for images: leave augment=none for dataset={name}"


def _of_images(c: Config) -> Iterator[tuple[str, bool, str]]:
    """How they are read, cut and held out."""
    data, augment = c.dataset, c.augment
    unnamed = data.name is Source.own and not is_named(data.reader or "")
    yield "dataset.reader", unnamed, f"must be package.module:attribute for dataset=own, is {data.reader!r}"
    size, crop, cutout = data.image_size, augment.crop, augment.cutout
    yield (
        "augment.crop",
        crop >= size,
        f"is {crop} and must be below dataset.image_size={size}: it may show only padding",
    )
    yield "augment.cutout", cutout >= 2 * size, f"is {cutout}: twice dataset.image_size={size} blanks every image"
    yield "augment.cutout", cutout % 2 == 1, f"must be even, is {cutout}: it goes half to either side of a pixel"
    small = data.pack is not None and data.pack < size
    yield "dataset.pack", small, f"is {data.pack}: its pictures are smaller than dataset.image_size={size}"
    in_memory = augment.resized_crop > 0 and not data.stream
    yield "augment.resized_crop", in_memory, "crops images of any size: it needs dataset.stream=true"
    none_held = data.evaluate_on is not Split.test and not data.validation > 0
    yield "dataset.validation", none_held, f"must be > 0 for dataset.evaluate_on={data.evaluate_on.value}"
