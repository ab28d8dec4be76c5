"""Models of timm and torchvision, with the stems and heads that the papers' code gave them."""

from __future__ import annotations

from typing import Any

from torch import nn

from sam_repro.errors import UserError
from sam_repro.models.catalog import Architecture, Head, ModelConfig, Stem
from sam_repro.models.layers import SquarePool, conv3x3
from sam_repro.models.weights import keep_own_head, last_linear, misfit, read_weights


def resnet(depth: int, classes: int, stem: Stem | None) -> nn.Module:
    """timm's ResNet. Its zero initialisation of each block's last batch norm is off: neither the paper nor the authors
    of the methods use it, and ASAM cannot move a weight that is zero."""
    import timm

    model: nn.Module = timm.create_model(f"resnet{depth}", num_classes=classes, zero_init_last=False)
    return _cifar_stem(model) if stem is Stem.cifar else model


def resnext_cifar(depth: int, groups: int, width: int, classes: int) -> nn.Module:
    """ResNeXt of 9n+2 layers in three stages (Xie et al. 2017, section 5.3), CIFAR stem."""
    from timm.models.resnet import Bottleneck, ResNet

    blocks = (depth - 2) // 9
    block: Any = Bottleneck  # timm's annotation asks for an instance where it takes the class
    model = ResNet(
        block,
        (blocks, blocks, blocks),
        channels=(64, 128, 256),
        num_classes=classes,
        cardinality=groups,
        base_width=width,
        zero_init_last=False,
    )
    model.layer4 = nn.Identity()  # timm's forward pass always asks for a fourth stage
    return _cifar_stem(model)


def _cifar_stem(model: Any) -> nn.Module:
    model.conv1 = conv3x3(3, 64)
    nn.init.kaiming_normal_(model.conv1.weight, mode="fan_out", nonlinearity="relu")
    model.maxpool = nn.Identity()
    return model  # type: ignore[no-any-return]


def densenet(depth: int, classes: int, stem: Stem | None) -> nn.Module:
    """torchvision's DenseNet and its initialisation (He, fan-in). The CIFAR stem is the paper's: the bare convolution,
    since the first dense layer starts with batch norm and relu of its own."""
    import torchvision

    model: Any = torchvision.models.get_model(f"densenet{depth}", weights=None, num_classes=classes)
    if stem is Stem.cifar:
        model.features.conv0 = conv3x3(3, model.features.conv0.out_channels)
        nn.init.kaiming_normal_(model.features.conv0.weight)
        for name in ("norm0", "relu0", "pool0"):
            setattr(model.features, name, nn.Identity())
    return model  # type: ignore[no-any-return]


def vgg(depth: int, classes: int, head: Head | None) -> nn.Module:
    """torchvision's VGG with batch norm and its initialisation (He, fan-out; linear layers N(0, 0.01)); the F-SAM
    authors' head keeps PyTorch's default, as theirs."""
    import torchvision

    # From its parts, so that a classifier of 120 M parameters is drawn only where it is used.
    layers = torchvision.models.vgg.cfgs[{11: "A", 13: "B", 16: "D", 19: "E"}[depth]]
    features = torchvision.models.vgg.make_layers(layers, batch_norm=True)
    if head is Head.torchvision:
        model: nn.Module = torchvision.models.VGG(features, num_classes=classes)
        model.avgpool = SquarePool(7)
        return model
    for module in features.modules():
        if isinstance(module, nn.Conv2d):
            nn.init.kaiming_normal_(module.weight, mode="fan_out", nonlinearity="relu")
            assert module.bias is not None
            nn.init.zeros_(module.bias)
    last = nn.Linear(512, classes)
    if head is Head.linear:
        nn.init.normal_(last.weight, 0, 0.01)
        nn.init.zeros_(last.bias)
        classifier = nn.Sequential(last)
    else:
        hidden = [nn.Dropout(), nn.Linear(512, 512), nn.ReLU(), nn.Dropout(), nn.Linear(512, 512), nn.ReLU()]
        classifier = nn.Sequential(*hidden, last)
    return nn.Sequential(features, nn.AdaptiveAvgPool2d(1), nn.Flatten(), classifier)


def timm_model(config: ModelConfig, classes: int, image_size: int) -> nn.Module:
    """A model of timm by its name, with its published weights, a local file's, or none.

    A model with position embeddings is built for `image_size` and stretches those of the weights to it. A head for
    another number of classes starts afresh.
    """
    import timm

    name = config.name if config.architecture is Architecture.timm else f"resnet{config.depth}"
    assert name is not None
    options: dict[str, Any] = {"num_classes": classes}
    options |= {"drop_rate": config.dropout} if config.dropout else {}
    options |= {"drop_path_rate": config.drop_path} if config.drop_path else {}
    try:
        published = timm.models.get_pretrained_cfg(name)
    except RuntimeError as error:  # the model is known but not the tag after its dot
        raise UserError(f"model.name={name}: {error}") from error
    if published is not None and published.fixed_input_size:
        options["img_size"] = image_size
    if config.pretrained:
        return _downloaded(name, options)
    model = _created(name, options)
    if config.weights is None:
        return model
    named = published.classifier if published is not None else None
    heads = (named,) if isinstance(named, str) else tuple(named or last_linear(model))
    state = keep_own_head(read_weights(config.weights, config.weights_sha256), model, heads)
    # Handed to timm, whose loader knows how each family stretches and renames; it demands that everything fits.
    overlay = {"state_dict": state, "num_classes": classes, "label_offset": 0}
    try:
        return timm.create_model(name, pretrained=True, pretrained_cfg_overlay=overlay, **options)
    except RuntimeError as error:
        raise misfit(config.weights, error) from error


def _created(name: str, options: dict[str, Any]) -> nn.Module:
    import timm

    try:
        return timm.create_model(name, **options)
    except TypeError as error:
        raise UserError(f"model.name={name} does not take one of {', '.join(options)} ({error})") from error


def _downloaded(name: str, options: dict[str, Any]) -> nn.Module:
    import timm

    try:
        return timm.create_model(name, pretrained=True, **options)
    except Exception as error:  # the network, the hub's client and timm each have their own
        reason = (str(error).strip() or type(error).__name__).splitlines()[0][:200]
        raise UserError(
            f"model.pretrained=true: no weights of {name} could be had ({reason}); give a file by model.weights=<path>"
        ) from error
