"""Which fields a configuration reads.

A field that a run does not read can't change its numbers: saying one is a mistake, which `said` tells, and `identity`
leaves it out of the run's id. So every field whose value is part of an id stands here, with what reads it, but for the
fields of a model and of a method, whose own rooms declare that: `models.catalog.TAKES` and `methods.spec`.
"""

from __future__ import annotations

from collections.abc import Callable

from sam_repro.config.schema import Config, Decay, Optimizer, Policy
from sam_repro.data.declared import OF_FILES, TEXT, Fit, Source, Split
from sam_repro.models.catalog import draws

# None where the field is read, else the end of the sentence "KEY is not read ...".
Reason = Callable[[Config], str | None]


def unread(config: Config) -> dict[str, str]:
    """The fields that this configuration does not read, dotted, and why."""
    return {key: why for key, reason in READ_BY.items() if (why := reason(config)) is not None}


def _of(*optimizers: Optimizer) -> Reason:
    names = " and ".join(optimizer.value for optimizer in optimizers)
    verb = "read" if len(optimizers) > 1 else "reads"

    def reason(c: Config) -> str | None:
        chosen = c.base_optimizer.name
        return None if chosen in optimizers else f"by {chosen.value}: {names} {verb} it"

    return reason


def _with(belongs_to: str, holds: Callable[[Config], bool]) -> Reason:
    return lambda c: None if holds(c) else f"here: it goes with {belongs_to}"


def _decodes(c: Config) -> bool:
    """Whether images are fitted to `image_size` one by one; arrays that lie in memory are taken as they are."""
    return c.dataset.name in OF_FILES or c.dataset.stream or c.augment.policy is not Policy.none


def mixing(c: Config) -> bool:
    return c.augment.mixup > 0 or c.augment.cutmix > 0


def is_text(c: Config) -> bool:
    """Whether sentences are translated; a task of one's own may read what it likes."""
    return c.task is None and c.dataset.name in TEXT


def warms_up(c: Config) -> bool:
    return c.schedule.warmup_epochs > 0 or c.schedule.warmup_steps is not None


def changes_rate(c: Config) -> bool:
    return c.schedule.decay is not Decay.constant or warms_up(c)


def _has_final(c: Config) -> bool:
    """A radius that follows the rate takes its smallest value from `final` too."""
    return c.schedule.decay is not Decay.constant or (c.method.follows_lr and changes_rate(c))


def _passes(c: Config) -> bool:
    return c.method.several_passes


def draws_at_random(c: Config) -> bool:
    """Whether the model that is trained may draw at random; of a task's own model nothing is known, so it may."""
    return c.task is not None or draws(c.model)


def _masks(c: Config) -> bool:
    return _passes(c) and draws_at_random(c)


def _text(c: Config) -> str | None:
    return None if is_text(c) or c.task is not None else "here: it goes with text, dataset=parallel, iwslt14 or grammar"


def _image(c: Config) -> str | None:
    return f"by dataset={c.dataset.name.value}: it is for images" if is_text(c) else None


def _held_out(c: Config) -> str | None:
    if is_text(c):
        return f"by dataset={c.dataset.name.value}, which has a validation set of its own"
    return _with("dataset.evaluate_on=validation or both", lambda c: c.dataset.evaluate_on is not Split.test)(c)


_SEVERAL = "a method of several passes a step"
_MIXING = _with("augment.mixup or augment.cutmix above 0", mixing)
_RANDAUGMENT = _with("augment.policy=randaugment", lambda c: c.augment.policy is Policy.randaugment)
_LANGUAGE = _with("dataset=parallel", lambda c: c.dataset.name is Source.parallel)
_NOISE = _with("dataset.label_noise.rate above 0", lambda c: c.dataset.label_noise.rate > 0)

READ_BY: dict[str, Reason] = {
    "dataset.reader": _with("dataset=own", lambda c: c.dataset.name is Source.own),
    "dataset.fit": _with("image files and dataset.stream=true", _decodes),
    "dataset.crop_share": _with("dataset.fit=crop of image files or with dataset.stream=true",
                                lambda c: _decodes(c) and c.dataset.fit is Fit.crop),
    "dataset.pack": _with("dataset=imagenet", lambda c: c.dataset.name is Source.imagenet),
    "dataset.decoder": _with("image files", lambda c: c.dataset.name in OF_FILES),
    "dataset.validation": _held_out,
    "dataset.source": _LANGUAGE,
    "dataset.target": _LANGUAGE,
    **{f"dataset.text.{name}": _text for name in ("merges", "joint", "moses", "lower", "longest", "ratio")},
    **{f"decoding.{name}": _text for name in ("beam", "length_penalty", "limit_factor", "limit_extra")},
    **{f"dataset.{name}": _image for name in ("classes", "image_size", "mean", "std", "stream")},
    "dataset.label_noise.rate": _image,
    "loop.loss": _image,
    "loop.drop_last": _image,
    "dataset.label_noise.include_true": _NOISE,
    "dataset.label_noise.seed": _NOISE,
    "base_optimizer.decay_norm_and_bias": _with("base_optimizer.weight_decay above 0",
                                                lambda c: c.base_optimizer.weight_decay > 0),
    "base_optimizer.momentum": _of(Optimizer.sgd, Optimizer.rmsprop),
    "base_optimizer.nesterov": _of(Optimizer.sgd),
    "base_optimizer.beta1": _of(Optimizer.adam, Optimizer.adamw),
    "base_optimizer.beta2": _of(Optimizer.adam, Optimizer.adamw),
    "base_optimizer.alpha": _of(Optimizer.rmsprop),
    "base_optimizer.eps": _of(Optimizer.rmsprop, Optimizer.adam, Optimizer.adamw),
    "schedule.per": _with("a rate that changes: another schedule.decay, or schedule.warmup_epochs", changes_rate),
    "schedule.warmup_start": _with("schedule.warmup_epochs above 0", warms_up),
    "schedule.final": _with("a schedule.decay other than constant", _has_final),
    "augment.cutout_probability": _with("augment.cutout above 0", lambda c: c.augment.cutout > 0),
    "augment.randaugment_ops": _RANDAUGMENT,
    "augment.randaugment_magnitude": _RANDAUGMENT,
    "augment.mix_probability": _MIXING,
    "loop.batchnorm": _with(_SEVERAL, _passes),
    "loop.masks": _with(f"{_SEVERAL} and a model with dropout, drop-path or ShakeDrop", _masks),
}  # fmt: skip

# Read by every run. A schedule's two lengths belong together: a recipe says both, and the method chooses.
ALWAYS = frozenset({
    "dataset.name", "dataset.train_images", "dataset.test_images", "dataset.evaluate_on",
    "base_optimizer.name", "base_optimizer.lr", "base_optimizer.weight_decay",
    "schedule.epochs", "schedule.plain_epochs", "schedule.decay", "schedule.warmup_epochs", "schedule.warmup_steps",
    "augment.crop", "augment.flip", "augment.cutout", "augment.label_smoothing", "augment.resized_crop",
    "augment.policy", "augment.mixup", "augment.cutmix",
    "budget.epochs", "budget.max_epochs", "budget.train_images", "budget.test_images", "budget.max_steps",
    "budget.max_batch", "budget.overfit",
    "loop.batch_size", "loop.micro_batch", "loop.clip_norm",
    "runtime.precision", "task", "seed", "on_divergence",
})  # fmt: skip
