"""A small problem with every kind of parameter: a module for the methods, a flat function for the references."""

import copy

import torch
from reference import Slot
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.functional import cross_entropy

from sam_repro.methods import Pass

STEPS = 5


def net(dtype: torch.dtype = torch.float32) -> nn.Sequential:
    torch.manual_seed(7)
    model = nn.Sequential(
        nn.Conv2d(3, 6, 3, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 3, bias=False), nn.BatchNorm2d(4),
        nn.ReLU(), nn.Flatten(), nn.Linear(4 * 36, 12), nn.ReLU(), nn.Linear(12, 5),
    )  # fmt: skip
    with torch.no_grad():
        for p in model.parameters():
            if p.dim() == 1:
                p.add_(0.1 * torch.randn_like(p))
    return model.to(dtype)


class Data:
    """Batches by step: of the current one, another, a larger one that holds it, and all there is."""

    def __init__(self, size: int = 24, steps: int = STEPS) -> None:
        source = torch.Generator().manual_seed(3)
        self.images = torch.randn(size * (steps + 1), 3, 8, 8, generator=source).double()
        self.targets = torch.randint(0, 5, (size * (steps + 1),), generator=source)
        self.size = size

    def ids(self, data: str, t: int, fraction: float = 1.0) -> Tensor:
        lo = t * self.size
        return {
            "batch": torch.arange(lo, lo + round(self.size * fraction)),
            "other": torch.arange(lo + self.size, lo + 2 * self.size),
            "larger": torch.arange(lo, lo + 2 * self.size),
            "full": torch.arange(len(self.targets)),
        }[data]


def risen_most(before: Tensor, after: Tensor, share: float) -> Tensor:
    return (after - before).argsort(descending=True)[: max(1, round(share * len(after)))]


class Loop:
    """The `grad_fn` of a plain loop over `Data`, in the dtype of the model."""

    def __init__(self, model: nn.Module, data: Data) -> None:
        self.model, self.data, self.t = model, data, 0
        self.seen: list[Pass] = []
        self.dtype = next(model.parameters()).dtype

    def __call__(self, wanted: Pass) -> Tensor:
        self.seen.append(wanted)
        loss = self.loss(wanted)
        torch.autograd.backward(loss)
        return loss.detach()

    def loss(self, wanted: Pass) -> Tensor:
        ids = self.data.ids(wanted.data, self.t, wanted.fraction)
        size = len(ids)
        losses = self.losses(ids.tensor_split(wanted.parts)[wanted.part])
        if wanted.index == 0:
            self.first = losses.detach()
        if wanted.keep < 1:
            losses = self.losses(ids[risen_most(self.first, losses.detach(), wanted.keep)])
        return losses.sum() / size if wanted.parts > 1 else losses.mean()

    def losses(self, ids: Tensor) -> Tensor:
        return cross_entropy(self.model(self.data.images[ids].to(self.dtype)), self.data.targets[ids], reduction="none")


class Flat:
    """The same as a function of one fp64 vector; gradients are evaluated in `dtype`, as the method's own are."""

    first: Tensor  # the losses of the step's first pass

    def __init__(
        self, model: nn.Module, data: Data, dtype: torch.dtype, fraction: float = 1.0, keep: float = 1.0
    ) -> None:
        self.model = copy.deepcopy(model).to(dtype)
        self.data, self.dtype, self.fraction, self.keep, self.t = data, dtype, fraction, keep, 0
        self.layout: list[Slot] = []
        lo = 0
        for name, p in self.model.named_parameters():
            self.layout.append(Slot(name, tuple(p.shape), lo, lo + p.numel()))
            lo += p.numel()

    def vector(self) -> Tensor:
        return torch.cat([p.detach().reshape(-1).double() for p in self.model.parameters()])

    def losses(self, w: Tensor, ids: Tensor) -> Tensor:
        leaves = {s.name: w[s.lo : s.hi].view(s.shape) for s in self.layout}
        out = functional_call(self.model, leaves, (self.data.images[ids].to(self.dtype),))
        return cross_entropy(out, self.data.targets[ids], reduction="none")

    def grad(self, w: Tensor, data: str) -> Tensor:
        w = w.to(self.dtype).requires_grad_()
        share = self.fraction if data == "part" else 1.0
        ids = self.data.ids("batch" if data in ("kept", "part") or "/" in data else data, self.t, share)
        if "/" in data:  # the place of a part, and how many there are
            part, parts = map(int, data.split("/"))
            losses = self.losses(w, ids.tensor_split(parts)[part])
            (g,) = torch.autograd.grad(losses.sum() / len(ids), w)
            return g.double()
        losses = self.losses(w, ids)
        if data == "kept":
            losses = self.losses(w, ids[risen_most(self.first, losses.detach(), self.keep)])
        else:
            self.first = losses.detach()
        (g,) = torch.autograd.grad(losses.mean(), w)
        return g.double()
