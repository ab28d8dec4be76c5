"""Every shipped model has the size that its source has."""

import pytest
import torch

from sam_repro import CONFIGS
from sam_repro.models import build, count_parameters

# model: (image size, {classes: parameters}).
COUNTS = {
    "resnet8": (32, {10: 308_650}),
    "resnet18": (32, {10: 11_173_962, 100: 11_220_132}),
    "resnet50": (32, {10: 23_520_842, 100: 23_705_252}),
    "resnet20": (32, {10: 272_474, 100: 278_324}),
    "resnet32": (32, {10: 466_906, 100: 472_756}),
    "resnet56": (32, {10: 855_770, 100: 861_620}),
    "resnext29_32x4d": (32, {10: 4_775_754, 100: 4_868_004}),
    "wrn_10_1": (32, {10: 77_850, 100: 83_700}),
    "wrn_28_2": (32, {10: 1_467_610, 100: 1_479_220}),
    "wrn_16_8": (32, {10: 10_961_370, 100: 11_007_540}),
    "wrn_28_10": (32, {10: 36_479_194, 100: 36_536_884}),
    "wrn_34_10": (32, {10: 46_160_474, 100: 46_218_164}),
    "vgg16_bn": (32, {10: 14_728_266, 100: 14_774_436}),
    "vgg16_bn_fsam": (32, {10: 15_253_578, 100: 15_299_748}),
    "vgg19_bn": (32, {10: 20_040_522, 100: 20_086_692}),
    "vgg19_bn_torchvision": (32, {10: 139_622_218, 100: 139_990_948}),
    "densenet121_cifar": (32, {10: 6_956_298}),
    "densenet121": (32, {10: 6_964_106, 100: 7_056_356}),
    "pyramidnet110_basic": (32, {10: 28_485_477, 100: 28_511_307}),
    "pyramidnet110": (32, {10: 18_323_787, 100: 18_426_837}),
    "pyramidnet272": (32, {10: 26_210_842, 100: 26_288_692}),
    "vit_s16": (224, {1000: 22_050_664}),
    "deit_s": (224, {1000: 22_050_664}),
    "vit_b16": (224, {1000: 86_567_656}),
    "resnet50_imagenet": (224, {1000: 25_557_032}),
}


@pytest.mark.parametrize("name", COUNTS)
def test_parameter_count(name, shipped):
    size, counts = COUNTS[name]
    for classes, expected in counts.items():
        with torch.device("meta"):
            assert count_parameters(build(shipped(name), classes, size)) == expected


def test_every_shipped_model_is_counted_here():
    shipped = {file.stem for file in (CONFIGS / "model").glob("*.yaml")}
    assert shipped - {"timm", "own", "transformer", "transformer_small"} == set(COUNTS)


def test_third_party_model_by_name(shipped):
    with torch.device("meta"):
        model = build(shipped("timm", name="convnext_tiny"), 1000, 224)
    assert count_parameters(model) == 28_589_128  # as timm publishes it
