"""What a kernel is, layer by layer, against loops written out; and what the paths of a model have no say in."""

import pytest
import torch
from torch import nn

from sam_repro.methods import build
from sam_repro.methods.geometries.elementwise import Elementwise
from sam_repro.methods.geometries.filterwise import Filterwise
from sam_repro.methods.kernels import kernels
from sam_repro.methods.leaves import leaves


class Vit(nn.Module):
    """The parameters that a vision transformer holds outside of layers, and a fused attention."""

    def __init__(self):
        super().__init__()
        self.pos_embed = nn.Parameter(torch.randn(1, 5, 4))
        self.cls_token = nn.Parameter(torch.randn(1, 1, 4))
        self.gamma = nn.Parameter(torch.randn(4))
        self.attention = nn.MultiheadAttention(4, 2)


def leaf(model, name):
    return next(leaf for leaf in leaves(model) if leaf.name == name)


def rows(w):
    return [w[i] for i in range(w.shape[0])], lambda n: n.view(-1, *[1] * (w.dim() - 1))


def transposed(groups):
    """By output channel, group by group: the inputs of a group feed its outputs alone."""

    def split(w):
        inputs = w.shape[0] // groups
        cut = [w[g * inputs : (g + 1) * inputs, o] for g in range(groups) for o in range(w.shape[1])]

        def spread(n):
            each = n.view(groups, w.shape[1])
            return torch.stack([each[i // inputs] for i in range(w.shape[0])]).view(*w.shape[:2], 1, 1)

        return cut, spread

    return split


def channels(w):
    return [w[..., i] for i in range(w.shape[-1])], lambda n: n


def whole(w):
    return [w], lambda n: n[0]


LAYERS = {
    "convolution": (nn.Conv2d(3, 6, 3), "weight", rows),
    "grouped convolution": (nn.Conv2d(4, 6, 3, groups=2), "weight", rows),
    "1-D convolution": (nn.Conv1d(3, 6, 3), "weight", rows),
    "transposed convolution": (nn.ConvTranspose2d(4, 6, 3), "weight", transposed(1)),
    "grouped transposed convolution": (nn.ConvTranspose2d(4, 6, 3, groups=2), "weight", transposed(2)),
    "linear": (nn.Linear(3, 5), "weight", rows),
    "fused attention": (Vit(), "attention.in_proj_weight", rows),
    "embedding": (nn.Embedding(7, 3), "weight", channels),
    "position embedding": (Vit(), "pos_embed", channels),
    "class token": (Vit(), "cls_token", channels),
    "layer scale": (Vit(), "gamma", whole),
    "bias": (nn.Conv2d(3, 6, 3), "bias", whole),
    "batch norm": (nn.BatchNorm2d(3), "weight", whole),
}


@pytest.mark.parametrize("case", LAYERS)
def test_a_kernel_is_what_makes_one_output_channel(case):
    model, name, split = LAYERS[case]
    own = leaf(model, name)
    w = own.tensor.detach()
    parts, spread = split(w)
    expected = spread(torch.stack([part.square().sum().sqrt() for part in parts]))
    norms = kernels(own).norms(w)
    torch.testing.assert_close(norms.expand_as(w), expected.expand_as(w))


@pytest.mark.parametrize("case", LAYERS)
def test_filter_wise_is_of_convolutions_alone(case):
    """ASAM eq. 5: l2(f) on a filter, abs(w) on every other weight, 1 on what is no weight."""
    model, name, _ = LAYERS[case]
    own, geometry = leaf(model, name), Filterwise()
    w, kind = own.tensor.detach(), geometry.kind(own)
    if "weight" not in name:
        assert kind is None
        return
    (t,) = geometry.operator(kind, [w], [w])
    expected = kernels(own).norms(w) if "convolution" in case else w.abs()
    assert torch.equal(t, expected)


def test_what_is_normalised_follows_from_the_layer_and_not_from_the_path():
    model = nn.ModuleDict({"weights": nn.Linear(2, 2), "attention": nn.MultiheadAttention(2, 1)})
    model["parametrized"] = nn.utils.parametrizations.weight_norm(nn.Linear(2, 2))
    normalised = {leaf.name for leaf in leaves(model) if Elementwise().kind(leaf)}
    assert normalised == {
        "weights.weight", "attention.in_proj_weight", "attention.out_proj.weight",
        "parametrized.parametrizations.weight.original0", "parametrized.parametrizations.weight.original1",
    }  # fmt: skip


def test_names_alone_say_as_much_as_they_can():
    """Without a module a weight of three dimensions and more is a filter, and rows are its kernels."""
    model = nn.Conv2d(3, 6, 3)
    for given in (model, list(model.named_parameters())):
        own, bias = leaves(given)
        assert kernels(own).axis == 0
        assert Filterwise().kind(own) == kernels(own)
        assert Filterwise().kind(bias) is None
    build("asam_filter", list(model.named_parameters()))
