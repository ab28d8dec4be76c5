"""The table of costs is the models', and its estimates are what a real pass does."""

import json
import subprocess
import sys
from dataclasses import replace

import pytest
import torch

from sam_repro import CONFIGS
from sam_repro.models import build, cost, count_parameters
from sam_repro.models.measure import measure, table

QUICK = ("resnet8", "wrn_28_2", "vgg16_bn_fsam", "vit_s16")


@pytest.mark.parametrize("name", QUICK)
@pytest.mark.parametrize("classes", [10, 100])
def test_lookup_is_the_measurement(name, classes, shipped):
    size = 224 if name == "vit_s16" else 32
    assert cost.lookup(shipped(name), classes, size) == measure(shipped(name), classes, size)


@pytest.mark.parametrize(("name", "width"), [("resnet8", 16), ("resnet8", 5), ("resnet20", 24)])
def test_two_widths_say_what_another_costs(name, width, shipped):
    """Of resnet8 in width 16 the price list is made."""
    found = replace(shipped(name), width=width)
    assert cost.lookup(found, 10, 32) == measure(found, 10, 32)


@pytest.mark.slow
def test_whole_table_is_up_to_date():
    assert table() == json.loads(cost.TABLE.read_text(encoding="utf-8"))


def test_every_shipped_model_has_a_row():
    rows = json.loads(cost.TABLE.read_text(encoding="utf-8"))
    others = {"timm", "own", "transformer", "transformer_small"}  # of many models, and of text
    shipped = {file.stem for file in (CONFIGS / "model").glob("*.yaml")} - others
    assert {row["model"] for row in rows} == shipped


@pytest.mark.parametrize(
    ("name", "size", "giga"),
    # As published: He et al. 2016 table 1 (ResNet-50) and table 6 (ResNet-20), timm's results (ViT-S/16, ViT-B/16).
    [("resnet50_imagenet", 224, 4.09), ("resnet20", 32, 0.041), ("vit_s16", 224, 4.6), ("vit_b16", 224, 17.6)],
)
def test_work_is_the_published(name, size, giga, shipped):
    found = cost.lookup(shipped(name), 1000, size)
    assert found is not None
    assert found.macs / 1e9 == pytest.approx(giga, rel=0.01)


@pytest.mark.parametrize("half", [False, True])
@pytest.mark.parametrize("name", ["resnet8", "wrn_28_2", "vgg16_bn"])
def test_activations_are_those_of_a_real_pass(name, half, shipped):
    """A real forward pass whose saved tensors are weighed, two batch sizes apart."""
    torch.manual_seed(0)
    model = build(shipped(name), 10, 32)

    def weigh(samples: int) -> int:
        own = {t.data_ptr() for t in [*model.parameters(), *model.buffers()]}
        saved: dict[int, torch.Tensor] = {}

        def pack(tensor: torch.Tensor) -> torch.Tensor:
            if tensor.untyped_storage().data_ptr() not in own:
                saved[tensor.untyped_storage().data_ptr()] = tensor
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(pack, lambda t: t), torch.autocast("cpu", enabled=half):
            model(torch.randn(samples, 3, 32, 32))
        return sum(t.untyped_storage().nbytes() for t in saved.values())

    found = cost.lookup(shipped(name), 10, 32)
    assert found is not None
    real = (weigh(12) - weigh(4)) / 8
    assert real == pytest.approx(found.activations_half if half else found.activations_fp32, rel=0.001)


def test_training_bytes_by_hand():
    one = cost.ModelCost(parameters=1000, macs=0, activations_fp32=40, activations_half=20)
    assert one.training_bytes(samples=8, half=False, bytes_a_parameter=12) == 8 * 40 + 12_000
    assert one.training_bytes(samples=8, half=True, bytes_a_parameter=12) == 8 * 20 + 14_000


def test_regularisation_does_not_change_the_row(shipped):
    assert cost.lookup(shipped("wrn_28_10", dropout=0.3), 10, 32) == cost.lookup(shipped("wrn_28_10"), 10, 32)


def test_unknown_models_and_sizes_have_no_row(shipped):
    assert cost.lookup(shipped("wrn_28_10", width=4), 10, 32) is None
    assert cost.lookup(shipped("wrn_28_10"), 10, 64) is None


def test_row_follows_the_classes(shipped):
    with torch.device("meta"):
        model = build(shipped("resnet18"), 37, 32)
    found = cost.lookup(shipped("resnet18"), 37, 32)
    assert found is not None
    assert found.parameters == count_parameters(model)


def test_lookup_needs_no_torch():
    code = (
        "import sys; from sam_repro.models import cost; from sam_repro.config.schema import ModelConfig;"
        "print(cost.lookup(ModelConfig(), 10, 32).parameters, 'torch' in sys.modules)"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "308650 False"
