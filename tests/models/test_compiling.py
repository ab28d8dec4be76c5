"""Every model that a table trains is one graph to torch.compile, and what is none is refused in one line."""

from pathlib import Path

import pytest
import torch
from commands import TINY, Cli
from torch._dynamo.exc import TorchDynamoException

from sam_repro import CONFIGS
from sam_repro.models import build
from sam_repro.tasks.translation.model import Transformer, TransformerConfig

IMAGENET = ("vit_s16", "vit_b16", "deit_s", "resnet50_imagenet")
OTHERS = ("timm", "own", "transformer", "transformer_small")  # of many models, and of text
# Depth adds blocks of the same code: 30 s of 272 layers show no more.
SHORTER = {
    **{"pyramidnet272": 29, "pyramidnet110_basic": 20, "resnet32": 8, "resnet56": 8},
    **{"wrn_28_2": 10, "wrn_28_10": 10, "wrn_34_10": 10},
}
SAME = ("pyramidnet110", "densenet121_cifar")  # the first but for its depth, the second for its first layers
MODELS = sorted({file.stem for file in (CONFIGS / "model").glob("*.yaml")} - {*OTHERS, *SAME})


def in_one_graph(model, *inputs):
    """The output, of a graph without a break; nothing is computed. The engine calls a model so: training, autocast."""
    torch._dynamo.reset()
    with torch.autocast("cpu", torch.bfloat16):
        return torch.compile(model, fullgraph=True, backend="eager")(*inputs)


@pytest.mark.slow  # 60 s, all of them
@pytest.mark.parametrize("name", MODELS)
def test_a_tables_model_is_one_graph(name, shipped):
    size, classes = (224, 1000) if name in IMAGENET else (32, 10)
    with torch.device("meta"):
        model = build(shipped(name, **({"depth": SHORTER[name]} if name in SHORTER else {})), classes, size)
        images = torch.randn(2, 3, size, size).to(memory_format=torch.channels_last)
    logits = in_one_graph(model, images)
    assert logits.shape == (2, classes)
    logits.sum().backward()


@pytest.mark.slow  # 3 s
def test_a_model_of_text_is_none():
    """Where padding ends is a matter of the batch's values: runtime.compile refuses text."""
    model = Transformer(TransformerConfig(8, 8, 2, 1, 0.0), 9, 9)
    tokens = torch.ones(2, 5, dtype=torch.int64)
    with pytest.raises(TorchDynamoException):
        in_one_graph(model, tokens, tokens)


@pytest.mark.slow  # 10 s
def test_a_machine_without_a_compiler_is_one_line(tmp_path: Path, cli: Cli) -> None:
    lacking = {"CXX": "/nonexistent", "TORCHINDUCTOR_CACHE_DIR": str(tmp_path / "cache")}
    done = cli(*TINY, "runtime.compile=true", env=lacking)
    assert done.returncode == 2
    assert "Traceback" not in done.stderr
    (error,) = [line for line in done.stderr.splitlines() if line.startswith("error:")]
    assert "runtime.compile=true: torch can't compile this model here (InvalidCxxCompiler" in error
