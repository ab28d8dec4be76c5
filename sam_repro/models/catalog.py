"""Which models there are and which settings they take. Without torch: mistakes are told before anything is loaded."""

from __future__ import annotations

import difflib
import importlib.util
import re
from dataclasses import dataclass, fields
from enum import Enum
from functools import cache
from pathlib import Path

from sam_repro import own


class Architecture(Enum):
    resnet_cifar = "resnet_cifar"  # 6n+2 layers, 1x1 shortcuts (ResNet-20/32/56); ResNet-8 with a strided stem
    wrn = "wrn"  # WRN-depth-width, pre-activation
    resnet = "resnet"  # ResNet-18/50, as on ImageNet but for the stem
    resnext_cifar = "resnext_cifar"  # 9n+2 layers, `groups` x `width`d (ResNeXt29-32x4d)
    densenet = "densenet"  # DenseNet-121
    vgg = "vgg"  # VGG16/19 with batch norm, head by `head`
    pyramidnet = "pyramidnet"  # widened by `alpha` in equal parts over its blocks
    transformer = "transformer"  # Vaswani et al.'s, for text: `depth` layers each in its encoder and its decoder
    timm = "timm"  # any model of timm, by its `name`: ViT and DeiT too
    own = "own"  # the user's, by its `name`: package.module:attribute, called with `classes` and `image_size`


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
    """The default is ResNet-8. `TAKES`, below, says which architecture takes which field (null: not)."""

    architecture: Architecture = Architecture.resnet_cifar
    name: str | None = None  # timm: the model's name there, `convnext_tiny` say; own: where it is; null for all others
    depth: int | None = 8  # layers
    width: int | None = (
        32  # resnet_cifar: of stage 1; wrn: widening factor; resnext_cifar: of a group; transformer: of a state
    )
    stem: Stem | None = Stem.strided  # resnet_cifar, resnet, densenet
    groups: int | None = None  # resnext_cifar
    head: Head | None = None  # vgg
    heads: int | None = None  # transformer: of an attention
    ffn: int | None = None  # transformer: hidden units of a feed-forward layer
    bottleneck: bool = False  # pyramidnet: blocks of 1x1, 3x3, 1x1 and not of two 3x3
    alpha: int | None = None  # pyramidnet: channels added from the first block to the last
    shakedrop: float = 0.0  # pyramidnet: chance that the last block is shaken, rising linearly with depth; 0: never
    dropout: float = 0.0  # wrn: inside the blocks; timm: before the classifier; transformer: of every sublayer
    drop_path: float = 0.0  # timm: stochastic depth
    pretrained: bool = False  # resnet with its ImageNet stem, timm: timm's published weights, downloaded
    head_bias: float | None = None  # of the classifier at the start, for every class; null: as the model has it
    weights: str | None = None  # a file to start from, .safetensors or torch; a head of other classes starts afresh
    weights_sha256: str | None = None  # what is in that file, which the run is known by; null: found when it is made


# The fields of ModelConfig that an architecture reads, besides `architecture` and what every one does.
TAKES: dict[Architecture, frozenset[str]] = {
    Architecture.resnet_cifar: frozenset({"depth", "width", "stem"}),
    Architecture.wrn: frozenset({"depth", "width", "dropout"}),
    Architecture.resnet: frozenset({"depth", "stem", "pretrained"}),
    Architecture.resnext_cifar: frozenset({"depth", "width", "groups"}),
    Architecture.densenet: frozenset({"depth", "stem"}),
    Architecture.vgg: frozenset({"depth", "head"}),
    Architecture.pyramidnet: frozenset({"depth", "alpha", "bottleneck", "shakedrop"}),
    Architecture.transformer: frozenset({"depth", "width", "heads", "ffn", "dropout"}),
    Architecture.timm: frozenset({"name", "dropout", "drop_path", "pretrained"}),
    Architecture.own: frozenset({"name"}),
}
NEEDS = ("name", "depth", "width", "stem", "groups", "head", "heads", "ffn", "alpha")  # never null where they are taken
EVERY = frozenset({"head_bias", "weights", "weights_sha256"})
NEUTRAL = {"bottleneck": False, "shakedrop": 0.0, "dropout": 0.0, "drop_path": 0.0, "pretrained": False}
NAMED = {Architecture.timm: "convnext_tiny", Architecture.own: "mypkg.nets:tiny"}  # examples of a name
DEPTHS = {
    Architecture.resnet: (18, 34, 50, 101, 152),
    Architecture.densenet: (121, 161, 169, 201),
    Architecture.vgg: (11, 13, 16, 19),
}
STEMS = {
    Architecture.resnet_cifar: (Stem.cifar, Stem.strided),
    Architecture.resnet: (Stem.cifar, Stem.imagenet),
    Architecture.densenet: (Stem.cifar, Stem.imagenet),
}

# timm's families without batch norm, but for the members with a convolutional part.
WITHOUT_BATCH_NORM = ("vit_", "deit", "swin")
BUT_WITH = ("_resnet", "_mci")


def mixes_samples(model: ModelConfig) -> bool:
    """Whether a sample's output in training depends on those that share its forward pass: by batch norm, or because
    dropout and its like draw once for all of them. Where a name does not tell, yes."""
    if model.architecture is Architecture.transformer:
        return model.dropout > 0
    if model.architecture is not Architecture.timm or model.dropout or model.drop_path:
        return True
    name = model.name or ""
    return not name.startswith(WITHOUT_BATCH_NORM) or any(part in name for part in BUT_WITH)


def draws(model: ModelConfig) -> bool:
    """Whether the model draws at random in training, as dropout does. Where a name does not tell, yes."""
    if model.dropout or model.drop_path or model.shakedrop or model.architecture is Architecture.own:
        return True
    if model.architecture is Architecture.vgg:
        return model.head is not Head.linear
    return model.architecture is Architecture.timm and not (model.name or "").startswith(WITHOUT_BATCH_NORM)


def problems(model: ModelConfig, image_size: int | None = None) -> list[tuple[str, str]]:
    """(field, what is wrong and how to mend it, to be read after the field), for every rule that this model breaks."""
    found: list[tuple[str, str]] = []
    takes, kind = TAKES[model.architecture], model.architecture.value
    for field in (f.name for f in fields(model) if f.name != "architecture" and f.name not in EVERY):
        value, neutral = getattr(model, field), NEUTRAL.get(field)
        if field in takes:
            if field in NEEDS and value is None:
                example = f", {NAMED[model.architecture]} say" if field == "name" else ""
                found.append((field, f"must have a value for {kind}{example}"))
        elif value != neutral:
            unset = "null" if neutral is None else str(neutral).lower()
            hint = "; choose one of our models by model=<id>" if field == "name" else ""
            found.append((field, f"is not taken by {kind}: set it to {unset}{hint}"))
    return found or _values(model) or _images(model, image_size)


def _values(model: ModelConfig) -> list[tuple[str, str]]:
    """Rules on values, once every field that is needed is there."""
    found: list[tuple[str, str]] = []
    kind, architecture = model.architecture.value, model.architecture
    if architecture in DEPTHS and model.depth not in DEPTHS[architecture]:
        found.append(
            ("depth", f"must be one of {', '.join(map(str, DEPTHS[architecture]))} for {kind}, is {model.depth}")
        )
    layers = _layers_per_step(model)
    if layers is not None and model.depth is not None:
        step, base = layers
        if model.depth < step + base or (model.depth - base) % step:
            found.append(("depth", f"must be {step} n + {base} for {kind}, is {model.depth}"))
    if architecture in STEMS and model.stem not in STEMS[architecture]:
        names = " or ".join(stem.value for stem in STEMS[architecture])
        found.append(("stem", f"must be {names} for {kind}"))
    for field in ("width", "groups", "heads", "ffn", "alpha"):
        value = getattr(model, field)
        if value is not None and value < 1:
            found.append((field, f"must be at least 1, is {value}"))
    for field in ("dropout", "drop_path", "shakedrop"):
        share = getattr(model, field)
        if not 0 <= share < 1:
            found.append((field, f"must be in [0, 1), is {share:g}"))
    if model.architecture is Architecture.transformer:
        if (model.width or 0) % (2 * (model.heads or 1)):
            found.append(("width", f"must be a multiple of twice model.heads={model.heads}, is {model.width}"))
        for field in ("head_bias", "weights"):
            if getattr(model, field) is not None:
                found.append((field, f"is not taken by {kind}: set it to null"))
    if model.weights is None and model.weights_sha256 is not None:
        found.append(("weights_sha256", "goes with model.weights: leave it out"))
    if model.head_bias is not None and (model.pretrained or model.weights is not None):
        found.append(("head_bias", "must be null where the model starts from weights, which have one"))
    if model.pretrained and model.weights is not None:
        found.append(("pretrained", "must be false where model.weights names a file"))
    if model.pretrained and model.stem is Stem.cifar:
        found.append(("pretrained", "needs model.stem=imagenet, for which the published weights are"))
    if model.name is not None and (message := _wrong_name(model.architecture, model.name)):
        found.append(("name", message))
    return found


def _layers_per_step(model: ModelConfig) -> tuple[int, int] | None:
    """(a, b) where the depth must be a n + b."""
    if model.architecture is Architecture.pyramidnet:
        return (9, 2) if model.bottleneck else (6, 2)
    return {
        Architecture.resnet_cifar: (6, 2),
        Architecture.wrn: (6, 4),
        Architecture.resnext_cifar: (9, 2),
    }.get(model.architecture)


def _images(model: ModelConfig, image_size: int | None) -> list[tuple[str, str]]:
    if model.architecture is Architecture.vgg and image_size is not None and image_size < 32:
        return [
            ("architecture", f"vgg halves the image five times and needs 32 pixels: dataset.image_size is {image_size}")
        ]
    return []


def _wrong_name(architecture: Architecture, name: str) -> str | None:
    if architecture is not Architecture.own:
        return unknown_timm_name(name)
    return None if own.is_named(name) else f"must be package.module:attribute for own, is {name!r}"


def unknown_timm_name(name: str) -> str | None:
    """None for a model of the installed timm, `convnext_tiny` or with a weights tag `convnext_tiny.fb_in22k`."""
    known = timm_names()
    base = name.partition(".")[0]
    if base in known:
        return None
    near = difflib.get_close_matches(base, known, n=1, cutoff=0.0)
    return f"is {name!r}, which timm does not have; the nearest is {near[0]!r}" if near else "needs timm"


@cache
def timm_names() -> tuple[str, ...]:
    """Every model that timm registers, read from its source text: importing timm takes torch and two more seconds."""
    spec = importlib.util.find_spec("timm")
    if spec is None or not spec.submodule_search_locations:
        return ()
    names: set[str] = set()
    for file in Path(spec.submodule_search_locations[0], "models").glob("*.py"):
        names.update(re.findall(r"^@register_model\s+def (\w+)\(", file.read_text(encoding="utf-8"), re.MULTILINE))
    return tuple(sorted(names))
