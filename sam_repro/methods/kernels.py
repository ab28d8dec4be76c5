"""What one kernel of a parameter is: the part whose length noise and filter-wise geometry are relative to.

It is what makes one output channel: docs/methods.md says it layer by layer, beside what the released code does.
"""

from __future__ import annotations

from dataclasses import dataclass

from torch import Tensor, nn
from torch.nn.modules.conv import _ConvNd, _ConvTransposeNd

from sam_repro.methods.leaves import Leaf


@dataclass(frozen=True)
class Kernels:
    """One a place along `axis`; with `groups`, one a place in each of the equal parts of the first axis."""

    axis: int
    groups: int = 1

    def norms(self, w: Tensor) -> Tensor:
        """l2 of each kernel, in a shape that broadcasts over w; of the whole for 0-D and 1-D tensors."""
        if w.dim() < 2:
            whole: Tensor = w.norm()
            return whole
        if self.groups > 1:
            each = w.view(self.groups, -1, *w.shape[1:]).movedim(self.axis + 1, 1).flatten(2).norm(dim=2)
            rows: Tensor = each.repeat_interleave(w.shape[0] // self.groups, dim=0)
            return rows.view(*rows.shape, *[1] * (w.dim() - 2))
        shape = [1] * w.dim()
        shape[self.axis] = w.shape[self.axis]
        rows = w.movedim(self.axis, 0).flatten(1).norm(dim=1)
        return rows.view(shape)


def kernels(leaf: Leaf) -> Kernels:
    """Rows of what a layer calls its weight, and channels, the last axis, of tables: embeddings, positions, tokens."""
    if isinstance(leaf.layer, _ConvTransposeNd) and leaf.is_weight:
        return Kernels(1, leaf.layer.groups)
    table = isinstance(leaf.layer, (nn.Embedding, nn.EmbeddingBag)) or not leaf.is_weight
    return Kernels(-1 if table else 0)


def is_filter(leaf: Leaf) -> bool:
    """Whether this is a convolution's weight, whose kernels are filters. Without layers, its dimensions tell."""
    convolution = leaf.tensor.dim() > 2 if leaf.layer is None else isinstance(leaf.layer, _ConvNd)
    return convolution and leaf.is_weight
