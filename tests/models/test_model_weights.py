"""Starting from a file: it fits, its head is exchanged where the classes differ, and it can't run code."""

import os
import pickle
import zipfile

import pytest
import torch
from safetensors.torch import save_file

from sam_repro.errors import UserError
from sam_repro.models import build
from sam_repro.models.catalog import ModelConfig
from sam_repro.models.weights import read_weights


def saved(tmp_path, config: ModelConfig, suffix: str = ".safetensors"):
    torch.manual_seed(7)
    state = build(config, 10, 32).state_dict()
    path = tmp_path / f"weights{suffix}"
    if suffix == ".safetensors":
        save_file(state, path)
    else:  # as a training script leaves it: wrapped, under DDP, beside its optimizer
        torch.save({"model": {f"module.{k}": v for k, v in state.items()}, "epoch": 3}, path)
    return str(path), state


@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_same_classes_load_whole(suffix, tmp_path, shipped):
    path, state = saved(tmp_path, shipped("resnet8"), suffix)
    loaded = build(shipped("resnet8", weights=path), 10, 32).state_dict()
    assert all(torch.equal(loaded[key], state[key]) for key in state)


@pytest.mark.parametrize(
    ("model", "changes", "head"),
    [("resnet8", {}, "head"), ("timm", {"name": "vit_tiny_patch16_224"}, "head"), ("resnet18", {}, "fc")],
)
def test_other_classes_draw_a_fresh_head(model, changes, head, tmp_path, shipped):
    path, state = saved(tmp_path, shipped(model, **changes))
    torch.manual_seed(3)
    fresh = build(shipped(model, **changes), 7, 32).state_dict()
    torch.manual_seed(3)
    loaded = build(shipped(model, weights=path, **changes), 7, 32).state_dict()
    assert set(loaded) == set(state)
    for key in state:
        expected = fresh if key.startswith(f"{head}.") else state
        assert torch.equal(loaded[key], expected[key]), key


def test_position_embedding_is_stretched_to_the_image(tmp_path, shipped):
    path, state = saved(tmp_path, shipped("deit_s"))
    loaded = build(shipped("deit_s", weights=path), 10, 64).state_dict()
    assert state["pos_embed"].shape[1] == 2 * 2 + 1
    assert loaded["pos_embed"].shape[1] == 4 * 4 + 1
    assert torch.equal(loaded["head.weight"], state["head.weight"])


def test_weights_of_another_model_are_refused(tmp_path, shipped):
    path, _ = saved(tmp_path, shipped("resnet8"))
    for name in ("resnet20", "deit_s"):
        with pytest.raises(UserError, match=r"^model\.weights=.* is of another model \(.+\)$"):
            build(shipped(name, weights=path), 10, 32)


class Bomb:
    def __init__(self, target: str) -> None:
        self.target = target

    def __reduce__(self):
        return os.mkdir, (self.target,)


@pytest.mark.parametrize("writer", ["torch", "pickle"])
@pytest.mark.parametrize("name", ["resnet8", "deit_s"])
def test_a_pickle_that_runs_code_is_refused(name, writer, tmp_path, shipped):
    marker, path = tmp_path / "pwned", tmp_path / "bad.pth"
    if writer == "torch":
        torch.save({"model": Bomb(str(marker))}, path)
    else:
        path.write_bytes(pickle.dumps(Bomb(str(marker))))
    with pytest.raises(UserError, match=r"^model\.weights=.* is refused"):
        build(shipped(name, weights=str(path)), 10, 32)
    assert not marker.exists()


NO_WEIGHTS = [
    b"",
    b"nonsense",
    b"root:x:0:0:root:/root:/bin/sh\n",
    b"s",
    b"\n\n",
    pickle.dumps([1]),
    b"PK\5\6" + bytes(18),
]


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("content", NO_WEIGHTS)
@pytest.mark.parametrize("suffix", [".safetensors", ".pth"])
def test_a_broken_file_is_named_and_no_parser_speaks(content, suffix, tmp_path, shipped):
    path = tmp_path / f"broken{suffix}"
    path.write_bytes(content)
    with pytest.raises(
        UserError, match=r"broken.* is refused: not a plain file of tensors \(torch\.save\(.*writes one"
    ):
        build(shipped("resnet8", weights=str(path)), 10, 32)


def test_a_whole_model_in_a_file_is_told_from_its_weights(tmp_path, shipped):
    torch.save(torch.nn.Linear(1, 1), tmp_path / "model.pth")
    with pytest.raises(UserError, match=r"\(it holds a torch\.nn\.modules\.linear\.Linear\)$"):
        build(shipped("resnet8", weights=str(tmp_path / "model.pth")), 10, 32)


def test_a_missing_file_is_named(shipped):
    with pytest.raises(UserError, match=r"^model\.weights=/nowhere/w\.pth: there is no such file$"):
        build(shipped("resnet8", weights="/nowhere/w.pth"), 10, 32)


def test_a_file_whose_tensors_are_compressed_is_refused_before_they_unfold(tmp_path):
    torch.save({"weight": torch.zeros(4_000_000)}, tmp_path / "plain.pt")
    with zipfile.ZipFile(tmp_path / "plain.pt") as plain, zipfile.ZipFile(tmp_path / "bomb.pt", "w") as bomb:
        for info in plain.infolist():
            bomb.writestr(info.filename, plain.read(info), zipfile.ZIP_DEFLATED)
    assert (tmp_path / "bomb.pt").stat().st_size < 100_000
    with pytest.raises(UserError, match="its tensors are compressed"):
        read_weights(str(tmp_path / "bomb.pt"))
    assert read_weights(str(tmp_path / "plain.pt"))["weight"].numel() == 4_000_000


@pytest.mark.parametrize(("model", "head"), [("resnet8", "head"), ("vit_s16", "head"), ("vgg16_bn_fsam", "3.6")])
def test_a_head_starts_from_the_bias_that_is_said(model, head, shipped):
    config = shipped(model, head_bias=-10.0)
    bias = build(config, 10, 224 if model == "vit_s16" else 32).get_submodule(head).bias
    assert bias.tolist() == [-10.0] * 10


def test_a_head_that_starts_from_weights_has_a_bias(tmp_path, shipped):
    path, _ = saved(tmp_path, shipped("resnet8"))
    with pytest.raises(UserError, match="head_bias must be null where the model starts from weights"):
        build(shipped("resnet8", weights=path, head_bias=-10.0), 10, 32)
    with pytest.raises(UserError, match="starts with it anyway"):
        build(shipped("resnet8", head_bias=0.0), 10, 32)
