"""Forward and backward of every model: on its own image size in the slow suite, the small ones here too."""

import math
import subprocess
import sys

import pytest
import torch
import torch.nn.functional as F
from commands import TINY
from torch import nn

from sam_repro import CONFIGS
from sam_repro.models import build
from sam_repro.models.layers import Sliced, slice_narrow
from sam_repro.models.pyramidnet import PyramidNet

IMAGENET = ("vit_s16", "vit_b16", "deit_s", "resnet50_imagenet")
OTHERS = ("timm", "own", "transformer", "transformer_small")  # of many models, and of text
CIFAR = sorted({file.stem for file in (CONFIGS / "model").glob("*.yaml")} - {*OTHERS, *IMAGENET})
SMALL = ("resnet8", "resnet20", "wrn_28_2", "vgg16_bn_fsam", "densenet121_cifar", "resnext29_32x4d")


def check_pass(model: nn.Module, classes: int, size: int, samples: int = 2) -> None:
    """One bf16, channels-last pass: logits of the right shape, a finite gradient for every parameter."""
    model = model.to(memory_format=torch.channels_last)
    images = torch.randn(samples, 3, size, size).to(memory_format=torch.channels_last)
    with torch.autocast("cpu", torch.bfloat16):
        logits = model(images)
    assert logits.shape == (samples, classes)
    F.cross_entropy(logits.float(), torch.arange(samples) % classes).backward()
    for name, p in model.named_parameters():
        assert p.grad is not None, name
        assert p.grad.isfinite().all(), name
    # Some bias and scale gradients are tiny in bf16, but no weight of a layer may be cut off from the loss.
    dead = [n for n, p in model.named_parameters() if p.ndim > 1 and "pos_embed" not in n and not p.grad.any()]
    assert not dead


@pytest.mark.parametrize("name", SMALL)
def test_small_models_train(name, shipped):
    torch.manual_seed(0)
    check_pass(build(shipped(name), 10, 32), 10, 32)


def test_a_small_pyramidnet_trains():
    torch.manual_seed(0)
    check_pass(PyramidNet(29, 20, 10, bottleneck=True, shaken=0.5), 10, 32, samples=8)


@pytest.mark.slow
@pytest.mark.parametrize("name", CIFAR)
def test_cifar_models_train_on_their_input(name, shipped):
    torch.manual_seed(0)
    # ShakeDrop may block one sample's gradient in a block; eight samples together reach every weight.
    check_pass(build(shipped(name), 100, 32), 100, 32, samples=8)


@pytest.mark.slow
@pytest.mark.parametrize("name", IMAGENET)
def test_imagenet_models_train_on_their_input(name, shipped):
    torch.manual_seed(0)
    check_pass(build(shipped(name), 1000, 224), 1000, 224)


def test_a_position_embedding_fits_the_image_size(shipped):
    torch.manual_seed(0)
    model = build(shipped("timm", name="vit_tiny_patch16_224"), 10, 32)
    assert model(torch.randn(1, 3, 32, 32)).shape == (1, 10)


@pytest.mark.parametrize("name", ["resnet8", "wrn_28_2", "resnext29_32x4d", "vgg16_bn", "densenet121_cifar"])
def test_the_global_seed_draws_the_weights(name, shipped):
    def draw(seed: int) -> dict[str, torch.Tensor]:
        torch.manual_seed(seed)
        return build(shipped(name), 10, 32).state_dict()

    one, again, other = draw(1), draw(1), draw(2)
    assert all(torch.equal(one[key], again[key]) for key in one)
    drawn = [key for key in one if one[key].ndim > 1]
    assert drawn
    assert not any(torch.equal(one[key], other[key]) for key in drawn)


def test_convolutions_start_with_he_fan_out(shipped):
    torch.manual_seed(0)
    for name in ("resnet20", "wrn_28_2", "resnet18", "resnext29_32x4d", "vgg16_bn"):
        model = build(shipped(name), 10, 32)
        for layer in (m for m in model.modules() if isinstance(m, nn.Conv2d) and m.weight.numel() > 4000):
            std = math.sqrt(2 / (layer.out_channels // layer.groups * layer.kernel_size[0] ** 2))
            if layer.groups > 1:  # PyTorch's fan-out counts all output channels
                std = math.sqrt(2 / (layer.out_channels * layer.kernel_size[0] ** 2))
            assert layer.weight.std().item() == pytest.approx(std, rel=0.08)
        assert all((m.weight == 1).all() for m in model.modules() if isinstance(m, nn.BatchNorm2d))


def test_dropout_of_a_wide_resnet(shipped):
    torch.manual_seed(0)
    model = build(shipped("wrn_28_2", dropout=0.3), 10, 32)
    images = torch.randn(2, 3, 32, 32)
    assert sum(isinstance(m, nn.Dropout) for m in model.modules()) == 12
    torch.manual_seed(5)
    one = model(images)
    torch.manual_seed(5)
    again = model(images)
    torch.manual_seed(6)
    assert torch.equal(one, again)
    assert not torch.equal(one, model(images))


@pytest.mark.slow
@pytest.mark.parametrize("small", ["resnet8", "pyramidnet"])
def test_compiled_model_is_one_graph_and_equal(small, shipped):
    torch.manual_seed(0)
    model = build(shipped("resnet8"), 10, 32) if small == "resnet8" else PyramidNet(29, 20, 10, True, 0.5)
    images = torch.randn(4, 3, 32, 32)
    compiled = torch.compile(model, fullgraph=True, backend="aot_eager")
    torch.manual_seed(1)
    expected = model(images)
    torch.manual_seed(1)
    torch.testing.assert_close(compiled(images), expected)


def test_own_models_import_neither_timm_nor_torchvision():
    code = (
        "import sys; from sam_repro.models import build; from sam_repro.config.schema import ModelConfig;"
        "build(ModelConfig(), 10, 32);"
        "print([m for m in ('timm', 'torchvision', 'wandb') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


ODD_BATCHES = """
import torch
from torch import nn
from sam_repro.models.layers import slice_narrow
torch.set_num_threads(2)
for channels in (3, 4, 12, 15):
    strided = slice_narrow(nn.Sequential(nn.Conv2d(channels, 24, 1, stride=2))).to(memory_format=torch.channels_last)
    for samples in 3 * (7, 31):
        images = torch.randn(samples, channels, 32, 32).to(memory_format=torch.channels_last).requires_grad_()
        strided(images).sum().backward()
print("alive")
"""


def test_narrow_strided_convolutions_live_through_odd_batches_on_two_threads():
    """Torch's own corrupts memory there, so it takes a process of its own."""
    out = subprocess.run([sys.executable, "-c", ODD_BATCHES], capture_output=True, text=True, check=False)
    assert (out.returncode, out.stdout) == (0, "alive\n"), out.stderr


def test_a_sliced_convolution_is_the_strided_one():
    torch.manual_seed(0)
    strided = nn.Conv2d(4, 8, 1, stride=2, dtype=torch.float64)
    images = torch.randn(2, 4, 9, 9, dtype=torch.float64)
    expected = strided(images)
    (sliced,) = slice_narrow(nn.Sequential(strided))
    assert isinstance(sliced, Sliced)
    torch.testing.assert_close(sliced(images), expected, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(("model", "narrow"), [({"width": 4}, 2), ({"width": 16}, 0), ({"name": "fastvit_t8"}, 1)])
def test_every_narrow_strided_convolution_of_a_model_is_sliced(model, narrow, shipped):
    with torch.device("meta"):
        made = build(shipped("timm" if "name" in model else "resnet8", **model), 10, 32)
    assert sum(isinstance(module, Sliced) for module in made.modules()) == narrow


@pytest.mark.slow
@pytest.mark.parametrize("batches", [["loop.micro_batch=7"], ["loop.batch_size=31"]])
def test_a_narrow_run_of_odd_batches_ends_on_two_threads(batches, cli):
    out = cli(*TINY, "runtime.threads=2", "budget.train_images=496", *batches, timeout=300)
    assert out.returncode == 0, out.stderr
