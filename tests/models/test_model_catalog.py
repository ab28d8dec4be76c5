"""A wrong model setting is told in one line, without torch, with the nearest valid name."""

import subprocess
import sys

import pytest

from sam_repro.errors import UserError
from sam_repro.models import build, catalog
from sam_repro.models.catalog import Architecture, ModelConfig

WRONG = [
    ("resnet20", {"depth": 21}, "depth"),
    ("resnet20", {"depth": 2}, "depth"),
    ("resnet20", {"width": 0}, "width"),
    ("resnet20", {"width": None}, "width"),
    ("resnet20", {"stem": "imagenet"}, "stem"),
    ("resnet20", {"name": "resnet32"}, "name"),
    ("resnet20", {"dropout": 0.1}, "dropout"),
    ("resnet20", {"pretrained": True}, "pretrained"),
    ("resnet18", {"depth": 20}, "depth"),
    ("resnet18", {"stem": "strided"}, "stem"),
    ("resnet18", {"pretrained": True}, "pretrained"),
    ("wrn_28_10", {"depth": 27}, "depth"),
    ("wrn_28_10", {"dropout": 1.0}, "dropout"),
    ("wrn_28_10", {"dropout": float("nan")}, "dropout"),
    ("wrn_28_10", {"stem": "cifar"}, "stem"),
    ("vgg16_bn", {"depth": 17}, "depth"),
    ("vgg16_bn", {"head": None}, "head"),
    ("resnext29_32x4d", {"groups": None}, "groups"),
    ("resnext29_32x4d", {"depth": 28}, "depth"),
    ("densenet121", {"depth": 120}, "depth"),
    ("pyramidnet110", {"depth": 112}, "depth"),
    ("pyramidnet110_basic", {"depth": 111}, "depth"),
    ("pyramidnet110", {"alpha": None}, "alpha"),
    ("pyramidnet110", {"shakedrop": -0.5}, "shakedrop"),
    ("timm", {}, "name"),
    ("timm", {"name": "convnext_tiny", "depth": 50}, "depth"),
    ("timm", {"name": "convnext_tiny", "pretrained": True, "weights": "w.pth"}, "pretrained"),
]


@pytest.mark.parametrize(("model", "changes", "field"), WRONG)
def test_wrong_setting_names_its_key(model, changes, field, shipped):
    config = shipped(model, **changes)
    assert [key for key, _ in catalog.problems(config)] == [field]
    with pytest.raises(UserError, match=rf"^model\.{field} [^\n]+$"):
        build(config, 10, 32)


@pytest.mark.parametrize(
    ("name", "near"), [("convnxt_tiny", "convnext_tiny"), ("resnt50", "resnet50"), ("hf-hub:a/vit", None), ("", None)]
)
def test_unknown_timm_name_gives_the_nearest(name, near, shipped):
    [(field, message)] = catalog.problems(shipped("timm", name=name))
    assert field == "name"
    suggestion = message.rpartition(" ")[2].strip("'")
    assert suggestion == near if near else suggestion in catalog.timm_names()


def test_unknown_weights_tag_is_told(shipped):
    with pytest.raises(UserError, match=r"^model\.name=convnext_tiny\.nonsense: "):
        build(shipped("timm", name="convnext_tiny.nonsense"), 10, 224)


def test_option_that_a_timm_model_lacks_is_told(shipped):
    with pytest.raises(UserError, match=r"^model\.name=vgg11 does not take"):
        build(shipped("timm", name="vgg11", drop_path=0.1), 10, 224)


def test_names_read_from_the_sources_are_those_that_timm_registers():
    import timm

    assert list(catalog.timm_names()) == sorted(timm.list_models())


def test_vgg_needs_32_pixels(shipped):
    assert catalog.problems(shipped("vgg16_bn"), 32) == []
    assert [field for field, _ in catalog.problems(shipped("vgg16_bn"), 28)] == ["architecture"]


def test_every_architecture_has_its_fields():
    assert set(catalog.TAKES) == set(Architecture)
    assert catalog.problems(ModelConfig()) == []


def test_checking_needs_no_torch():
    code = (
        "import sys; from sam_repro.models import catalog;"
        "print(catalog.unknown_timm_name('convnxt_tiny'), [m for m in ('torch', 'timm') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip().endswith("'convnext_tiny' []")
