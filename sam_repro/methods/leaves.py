"""A model's parameters, each with the layer that holds it: what kind it is follows from the layer, not from a path."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.modules.batchnorm import _NormBase

NORMALISATION = (_NormBase, nn.LayerNorm, nn.GroupNorm, nn.RMSNorm)
OTHERWISE = (nn.Linear, nn.Bilinear, nn.modules.conv._ConvNd)  # whatever they are called


@dataclass(frozen=True, eq=False)
class Leaf:
    name: str
    tensor: Tensor
    attribute: str  # what its layer calls it
    layer: nn.Module | None  # None where names and tensors are all that was given

    @property
    def is_weight(self) -> bool:
        """Of a layer's weights: its scale, too, but no bias, and nothing that a model holds outside of layers."""
        return "weight" in self.attribute

    @property
    def is_normalisation(self) -> bool:
        """Scale or shift of a normalisation: of torch's own, or of a class of another library that is called so."""
        if isinstance(self.layer, OTHERWISE):
            return False
        return isinstance(self.layer, NORMALISATION) or "norm" in type(self.layer).__name__.lower()


def leaves(model: nn.Module | Iterable[tuple[str, Tensor]]) -> list[Leaf]:
    """The parameters that require a gradient, in the order of `named_parameters`."""
    layers: dict[str, nn.Module] = {}
    if isinstance(model, nn.Module):
        layers, model = dict(model.named_modules()), model.named_parameters()
    found = []
    for name, tensor in model:
        path, _, attribute = name.rpartition(".")
        if ".parametrizations." in f".{name}":  # weight norm and its like keep a weight in parts
            path, _, part = f".{name}".rpartition(".parametrizations.")
            path, attribute = path.removeprefix("."), part.partition(".")[0]
        if tensor.requires_grad:
            found.append(Leaf(name, tensor, attribute, layers.get(path)))
    return found
