"""A method: one point of the algebra, run as an estimator of the final gradient.

The story of a step, `_step` below: start -> ascent pass -> direction, geometry -> w + eps -> descent pass -> descent.
Which options there are this file does not know: the folders beside it have them, a file each.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable
from contextlib import nullcontext
from typing import Any

import torch
from torch import Tensor, nn

from sam_repro.methods.draws import generator, kept
from sam_repro.methods.leaves import leaves
from sam_repro.methods.moment import Moment
from sam_repro.methods.others import Others
from sam_repro.methods.passes import GradFn, Overflow, Passes
from sam_repro.methods.perturb import Group, Weights, climb, distance_to_sam
from sam_repro.methods.spec import Spec
from sam_repro.methods.state import Memory
from sam_repro.methods.vector import Scalar, dot, root, stretch
from sam_repro.methods.work import Work


class Method:
    """See `build`. `report` is what a log may want of the last step: floats or 0-dim tensors, nothing waited for."""

    def __init__(
        self,
        spec: Spec,
        model: nn.Module | Iterable[tuple[str, Tensor]],
        *,
        seed: int = 0,
        foreach: bool | None = None,
        swap: bool = True,
        rollback: bool = True,
    ):
        """
        model: a module, or names and parameters of one, which may have others, too.
        foreach: one `torch._foreach_*` call over all tensors, not a loop; None: where parameters are not on a CPU.
        swap: let weights and gradients exchange memory. Off for CUDA graphs, whose addresses must not move.
        rollback: keep a copy of the averages so that a skipped step can be undone. Only a loss scaler skips steps.
        """
        found = spec.problems()
        if found:
            raise ValueError("; ".join(f"method.{field} {message}" for field, message in found))
        self._leaves = leaves(model)
        if not self._leaves:
            raise ValueError("the model has no parameter that requires a gradient")
        self.spec = spec
        self.seed = seed
        self.report: dict[str, Scalar] = {}
        self._point = spec.point
        self._names = [leaf.name for leaf in self._leaves]
        self._params = [leaf.tensor for leaf in self._leaves]
        self._lazy = any(p.device.type != "cpu" for p in self._params) if foreach is None else foreach
        self._weights = Weights(self._params, swap)
        self._kinds = [self._point.geometry.kind(leaf) for leaf in self._leaves]
        self._scope = self._point.scope.chosen(self._leaves)
        copied = [kind for option in self._point.options() for kind in option.copied] if rollback else []
        self._around = nullcontext if isinstance(model, nn.Module) else Others(self._params).watched
        self._memory = Memory(dict(zip(self._names, self._params, strict=True)), copied)

    @property
    def passes(self) -> float:
        """Cost of a step in forward and backward passes over the batch; NaN where it depends on other sizes."""
        return self.spec.passes()

    # ---------------------------------------------------------------- a step

    def estimate(
        self, grad_fn: GradFn, at: Moment | None = None, shard: int = 0, scaler: Any = None, observe: bool = True
    ) -> Tensor:
        """Leave this step's final gradient in `.grad`, the weights as they were; return the loss of the first pass.

        grad_fn: called with a `Pass`, leaves the mean gradient of that data in `.grad` and returns the detached mean
            loss; a closure without arguments will do where only the batch is asked for. Old gradients are gone already.
        shard: which part of the batch this is, if each has its own perturbation: state and random numbers go with it.
        scaler: a `torch.amp.GradScaler`, if grad_fn scales the loss by it: the final gradient is left scaled, as
            `scaler.step(optimizer)` expects it, and inf where a pass overflowed, so that it skips the step.
        observe: norms of gradient and perturbation, and the distance to SAM's with that gradient, in `report`.
        """
        state = self._memory.begin(shard)
        run = Passes(grad_fn, self._params, scaler, self._around)
        work = Work(run, state, self._memory.shared, self._names, self._params, self._scope, self._lazy, observe)
        self.report = {}
        try:
            with torch.no_grad():
                self._step(work, at, (state.steps if at is None else at.step, shard))
                run.rescale()
        except BaseException as error:
            self._weights.restore()
            self._memory.undo(shard)
            if not (run.scaled and isinstance(error, Overflow)):
                raise
        else:
            state.steps += 1
        loss = run.losses[0] if run.batch_loss is None else run.batch_loss
        self.report["loss"] = loss
        if len(run.losses) > 1:
            self.report["loss_perturbed"] = run.losses[-1]
        return loss

    def _step(self, work: Work, at: Moment | None, key: tuple[int, int]) -> None:
        """key: the step and the shard, which random numbers follow from."""
        ascent, cadence = self._point.ascent, self._point.between
        if not ascent.ascends:
            return self._mean_over_noise(work, at, key)
        if not cadence.ascends(key[0], work.state):
            work.run()
            return cadence.between(work)

        work.noise = self._noise(at, key, draw=0)
        self._move_by(work.noise)
        work.run(ascent.data, fraction=ascent.share)
        self._weights.restore()

        everywhere = work.with_gradient() if self._point.needs_first else []
        first = {i: g.clone() for i, g in zip(everywhere, work.gradients(everywhere), strict=True)}
        work.where = work.in_scope()
        work.g = work.gradients(work.where)
        self._ascend(work, self._point.radius.at(at), key)
        work.run(keep=ascent.kept)
        self._weights.restore()
        if first:
            self._descend(work, first)

    def _ascend(self, work: Work, rho: float, key: tuple[int, int]) -> None:
        """Move the weights to w + eps."""
        spec, masked = self.spec, self.spec.perturb is not None and self.spec.perturb < 1
        partial = len(self._scope) < len(self._params)
        departs = self._point.direction.bends or spec.ascent_decay or masked or partial  # from SAM in more than T
        everything = work.with_gradient() if work.observe and departs else []
        sam = [x.clone() for x in work.gradients(everything)]
        if spec.ascent_decay:
            torch._foreach_add_(work.g, [self._params[i].detach() for i in work.where], alpha=spec.ascent_decay)
        bend, beside = self._point.direction.prepare(work)
        groups = self._groups(work, beside)
        up = climb(self._point.geometry, bend, groups, rho, self._lazy, work.observe)
        if masked:
            draw = generator(self._params[0].device, self.seed, *key, "mask")
            for u in work.g:
                u.mul_(kept(u, spec.perturb, draw))
        if self._point.direction.from_noise and work.noise:
            stretch(work.g, up.scale)
            torch._foreach_add_(work.g, [work.noise[i] for i in work.where])
            up.scale = 1.0
        if sam:
            if masked or self._point.direction.from_noise:
                up.report["perturbation_norm"] = up.scale * root(dot(work.g, work.g, self._lazy))
            if partial:
                up.report["gradient_norm"] = root(dot(sam, sam, self._lazy))
            place = {i: k for k, i in enumerate(everything)}
            moved = [place[i] for i in work.where]
            up.report["distance_to_sam"] = distance_to_sam(sam, moved, work.g, up.scale, rho, self._lazy)
        self.report |= up.report
        self._weights.move(work.where, work.g, up.scale)

    def _groups(self, work: Work, beside: list[list[Tensor]]) -> list[Group]:
        """The parameters that T and the direction treat alike: of one kind, with as many tensors beside them."""
        groups: dict[tuple[Hashable, int], Group] = {}
        for i, g, helpers in zip(work.where, work.g, beside, strict=True):
            key = (self._kinds[i], len(helpers))
            group = groups.setdefault(key, Group(key[0], beside=[[] for _ in helpers]))
            group.w.append(self._params[i])
            group.g.append(g)
            for column, helper in zip(group.beside, helpers, strict=True):
                column.append(helper)
        return list(groups.values())

    # ---------------------------------------------------------------- the other ways through a step

    def _mean_over_noise(self, work: Work, at: Moment | None, key: tuple[int, int]) -> None:
        """LPF-SGD: the mean of the gradients at w + d0 over the draws of d0. Without noise: the plain gradient.

        Each draw is over its own part of the batch, or over all of it.
        """
        draws, parts = self.spec.draws or 1, self._point.ascent.parts
        total: dict[int, Tensor] = {}
        for draw in range(draws):
            self._move_by(self._noise(at, key, draw))
            work.run(part=draw % parts, parts=parts)
            self._weights.restore()
            if draws == 1:
                return
            for i in work.with_gradient():
                (g,) = work.gradients([i])
                total[i] = total[i].add_(g) if i in total else g.clone()
        for i, summed in total.items():
            work.set_gradient(i, summed.div_(draws / parts))

    def _descend(self, work: Work, first: dict[int, Tensor]) -> None:
        """What the descent makes of both gradients; one that a parameter did not get counts as zero."""
        where = sorted({*first, *work.with_gradient()})
        for i in where:
            if self._params[i].grad is None:
                work.set_gradient(i, torch.zeros_like(self._params[i]))
        g_adv = work.gradients(where)
        g = [first[i] if i in first else torch.zeros_like(x) for i, x in zip(where, g_adv, strict=True)]
        self._point.between.remember(work, where, g_adv, g)
        self._point.descent.combine(g_adv, g, self._lazy)

    # ---------------------------------------------------------------- noise

    def _noise(self, at: Moment | None, key: tuple[int, int], draw: int) -> dict[int, Tensor]:
        """d0 for every parameter in scope, empty where there is none."""
        size = self._point.start.size(at)
        if size == 0:
            return {}
        source = generator(self._params[0].device, self.seed, *key, f"noise{draw}")
        noise = self._point.start.noise([self._leaves[i] for i in self._scope], size, source)
        return dict(zip(self._scope, noise, strict=True))

    def _move_by(self, noise: dict[int, Tensor]) -> None:
        if noise:
            # Copies, for `move` consumes them and the direction may need d0 again.
            self._weights.move(list(noise), [d0.clone() for d0 in noise.values()], 1.0)

    # ---------------------------------------------------------------- state

    def end_step(self, all_reduce_mean: Callable[[list[Tensor]], object] | None = None, skipped: bool = False) -> None:
        """After the last shard of a step. `skipped`: the optimizer takes no step, so every shard's state goes back.

        all_reduce_mean averages a list of tensors over the ranks, in place: for the average that all shards share.
        """
        self._memory.end_step(all_reduce_mean, skipped, self._point.direction.absorb)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next steps depend on, by shard. Random numbers follow from the step and need nothing."""
        return self._memory.state_dict()

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self._memory.load_state_dict(saved)
