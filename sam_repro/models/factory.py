"""From a `ModelConfig` to a module. timm and torchvision are imported only for a model that comes from there."""

from __future__ import annotations

import inspect

import torch
from torch import Tensor, nn

from sam_repro import own
from sam_repro.errors import UserError
from sam_repro.models import catalog
from sam_repro.models.catalog import Architecture, ModelConfig, Stem
from sam_repro.models.layers import slice_narrow
from sam_repro.models.pyramidnet import PyramidNet
from sam_repro.models.resnet_cifar import ResNetCifar
from sam_repro.models.weights import last_linear, load_weights
from sam_repro.models.wrn import WideResNet


def build(config: ModelConfig, classes: int, image_size: int) -> nn.Module:
    """The model in training mode, fp32, on the current default device, drawn from torch's global generator."""
    for field, message in catalog.problems(config, image_size):
        raise UserError(f"model.{field} {message}")
    if config.architecture is Architecture.timm or config.pretrained:
        from sam_repro.models.third_party import timm_model

        model = slice_narrow(timm_model(config, classes, image_size))
    else:
        model = slice_narrow(_untrained(config, classes, image_size))
        if config.weights is not None:
            load_weights(model, config.weights, config.weights_sha256)
    if config.head_bias is not None:
        _start_head(model, config.head_bias)
    return model


def _start_head(model: nn.Module, value: float) -> None:
    """The bias of the classifier, which is the last linear layer."""
    head = next(map(model.get_submodule, last_linear(model)), None)
    if not isinstance(head, nn.Linear) or head.bias is None:
        raise UserError("model.head_bias: this model has no linear layer with a bias: leave it out")
    if (head.bias == value).all():  # said or not, it would be the same run under two ids
        raise UserError(f"model.head_bias={value:g}: this model starts with it anyway: leave it out")
    nn.init.constant_(head.bias, value)


def _untrained(config: ModelConfig, classes: int, image_size: int) -> nn.Module:
    depth, width = config.depth or 0, config.width or 0
    match config.architecture:
        case Architecture.resnet_cifar:
            return ResNetCifar(depth, width, classes, stem_stride=2 if config.stem is Stem.strided else 1)
        case Architecture.wrn:
            return WideResNet(depth, width, classes, config.dropout)
        case Architecture.pyramidnet:
            assert config.alpha is not None
            return PyramidNet(depth, config.alpha, classes, config.bottleneck, config.shakedrop)
        case Architecture.own:
            return _own(config, classes, image_size)
    from sam_repro.models import third_party

    match config.architecture:
        case Architecture.resnet:
            return third_party.resnet(depth, classes, config.stem)
        case Architecture.resnext_cifar:
            assert config.groups is not None
            return third_party.resnext_cifar(depth, config.groups, width, classes)
        case Architecture.densenet:
            return third_party.densenet(depth, classes, config.stem)
        case Architecture.vgg:
            return third_party.vgg(depth, classes, config.head)
    raise AssertionError(config.architecture)


def _own(config: ModelConfig, classes: int, image_size: int) -> nn.Module:
    assert config.name is not None
    name, function = config.name.partition("@")[0], own.load("model.name", config.name)
    try:
        inspect.signature(function).bind(classes=classes, image_size=image_size)
    except TypeError as error:
        raise UserError(f"model.name={name} must take classes= and image_size= ({error})") from error
    made = function(classes=classes, image_size=image_size)
    if not isinstance(made, nn.Module):
        raise UserError(f"model.name={name} returns a {type(made).__name__}: it must return an nn.Module")
    _fits(made, name, classes, image_size)
    return made


@torch.no_grad()
def _fits(model: nn.Module, name: str, classes: int, image_size: int) -> None:
    """Too few outputs are an error of indices in the loss, too many train without a word."""
    images = torch.zeros(2, 3, image_size, image_size)
    if images.is_meta:  # only counted, and a model of the user's own need not run without values
        return
    with torch.random.fork_rng(devices=[]):
        outputs = model.eval()(images)
    model.train()
    found = tuple(outputs.shape) if isinstance(outputs, Tensor) else type(outputs).__name__
    if found != (2, classes):
        raise UserError(
            f"model.name={name} must give dataset.classes={classes} outputs an image; of two it gives {found}"
        )


def count_parameters(model: nn.Module) -> int:
    """Trainable parameters; `build` under `torch.device("meta")` costs no memory for the count."""
    return sum(p.numel() for p in model.parameters() if p.requires_grad)
