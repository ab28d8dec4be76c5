"""A method: one point of the algebra, run as an estimator of the final gradient.

The story of a step, `_step` below: start -> ascent pass -> direction, geometry -> w + eps -> descent pass -> descent.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Any

import torch
from torch import Tensor

from sam_repro.methods import descent
from sam_repro.methods.direction import DIRECTIONS, Rule, gradient, minus_shared_ema
from sam_repro.methods.geometry import is_normalised
from sam_repro.methods.passes import GradFn, Overflow, Passes, owns_storage
from sam_repro.methods.perturb import Group, Weights, climb
from sam_repro.methods.schedule import Moment, ascends, noise_size, radius
from sam_repro.methods.spec import Ascent, Between, Descent, Direction, Spec, Start
from sam_repro.methods.start import generator, kept, kernel_noise
from sam_repro.methods.state import Memory, State
from sam_repro.methods.vector import Scalar, Tensors, dot, ratio, root


class Method:
    """See `build`. `report` is what a log may want of the last step: floats or 0-dim tensors, nothing waited for."""

    def __init__(
        self,
        spec: Spec,
        named_parameters: Iterable[tuple[str, Tensor]],
        *,
        seed: int = 0,
        foreach: bool | None = None,
        swap: bool = True,
        rollback: bool = True,
        observe: bool = True,
    ):
        """
        foreach: one `torch._foreach_*` call over all tensors, not a loop; None: where parameters are not on a CPU.
        swap: let weights and gradients exchange memory. Off for CUDA graphs, whose addresses must not move.
        rollback: keep a copy of the averages so that a skipped step can be undone. Only a loss scaler skips steps.
        observe: norms of gradient and perturbation, and the distance to SAM's perturbation, in `report`.
        """
        found = spec.problems()
        if found:
            raise ValueError("; ".join(f"method.{field} {message}" for field, message in found))
        named = [(name, p) for name, p in named_parameters if p.requires_grad]
        if not named:
            raise ValueError("the model has no parameter that requires a gradient")
        self.spec = spec
        self.seed = seed
        self.observe = observe
        self.report: dict[str, Scalar] = {}
        self._names = [name for name, _ in named]
        self._params = [p for _, p in named]
        self._lazy = any(p.device.type != "cpu" for p in self._params) if foreach is None else foreach
        self._weights = Weights(self._params, swap)
        self._normalised = [is_normalised(spec, name) for name in self._names]
        self._memory = Memory(spec, dict(named), rollback)

    @property
    def passes(self) -> float:
        """Cost of a step in forward and backward passes over the batch; NaN where it depends on other sizes."""
        return self.spec.passes()

    # ---------------------------------------------------------------- a step

    def estimate(self, grad_fn: GradFn, at: Moment | None = None, shard: int = 0, scaler: Any = None) -> Tensor:
        """Leave this step's final gradient in `.grad`, the weights as they were; return the loss of the first pass.

        grad_fn: called with a `Pass`, leaves the mean gradient of that data in `.grad` and returns the detached mean
            loss; a closure without arguments will do where only the batch is asked for. Old gradients are gone already.
        shard: which part of the batch this is, if each has its own perturbation: state and random numbers go with it.
        scaler: a `torch.amp.GradScaler`, if grad_fn scales the loss by it: the final gradient is left scaled, as
            `scaler.step(optimizer)` expects it, and inf where a pass overflowed, so that it skips the step.
        """
        state = self._memory.begin(shard)
        run = Passes(grad_fn, self._params, scaler)
        self.report = {}
        try:
            with torch.no_grad():
                self._step(run, state, at, state.steps if at is None else at.step, shard)
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

    def _step(self, run: Passes, state: State, at: Moment | None, step: int, shard: int) -> None:
        spec = self.spec
        if spec.ascent is Ascent.none:
            return self._mean_over_noise(run, at, step, shard)
        reuses = spec.between is Between.reuse
        if not ascends(spec, step) and (state.of("look") or not reuses):
            return self._between(run, state)

        noise = self._noise(at, step, shard, draw=0)
        self._move_by_noise(noise)
        run(spec.ascent.value, fraction=spec.fraction)
        self._weights.restore()

        where = self._with_gradient()
        g = self._gradients(where)
        first = [x.clone() for x in g] if reuses or spec.descent is Descent.gsam else []
        self._ascend(run, state, where, g, noise, radius(spec, at), (step, shard))
        run(keep=spec.keep)
        self._weights.restore()
        if first:
            self._descend(state, dict(zip(where, first, strict=True)))

    def _ascend(
        self, run: Passes, state: State, where: list[int], g: Tensors, noise: dict[int, Tensor], rho: float, key: Any
    ) -> None:
        """Move the weights to w + eps."""
        spec = self.spec
        if spec.ascent_decay:
            torch._foreach_add_(g, [self._params[i].detach() for i in where], alpha=spec.ascent_decay)
        aids, coefficient = noise, 0.0  # type: dict[int, Tensor], Scalar
        if spec.direction is Direction.residual:
            g, aids, coefficient = self._against_full_gradient(run, where, g)
        up = climb(spec, self._groups(state, where, g, aids), rho, coefficient, self._lazy, self.observe)
        if spec.perturb < 1:
            draw = generator(self._params[0].device, self.seed, *key, "mask")
            for u in g:
                u.mul_(kept(u, spec.perturb, draw))
            if self.observe:
                up.report["perturbation_norm"] = up.scale * root(dot(g, g, self._lazy))
        self.report |= up.report
        self._weights.move(where, g, up.scale)

    def _groups(self, state: State, where: list[int], g: Tensors, aids: dict[int, Tensor]) -> list[Group]:
        """Sort the parameters by what T and the direction do to them, each with the helpers of its direction."""
        groups: dict[tuple[bool, Rule], Group] = {}
        of_spec = DIRECTIONS[self.spec.direction]
        for i, x in zip(where, g, strict=True):
            direction, helpers = of_spec, []  # type: Rule, Tensors
            if self.spec.direction is Direction.minus_ema:
                m, total = self._memory.average(state, self._names[i], x)
                helpers = [] if m is None else [m] if total is None else [m, total]
                direction = gradient if m is None else direction if total is None else minus_shared_ema
            elif i in aids and direction is not gradient:
                helpers = [aids[i]]
            key = (self._normalised[i], direction)
            group = groups.get(key)
            if group is None:
                group = groups[key] = Group(*key, aids=[[] for _ in helpers])
            group.w.append(self._params[i])
            group.g.append(x)
            for k, helper in enumerate(helpers):
                group.aids[k].append(helper)
        return list(groups.values())

    def _against_full_gradient(
        self, run: Passes, where: list[int], g: Tensors
    ) -> tuple[Tensors, dict[int, Tensor], Scalar]:
        """The batch's gradient, the full one, and <g, full> / <full, full>."""
        g = [x if owns_storage(x) else x.clone() for x in g]
        for i, x in zip(where, g, strict=True):
            if self._params[i].grad is x:
                self._params[i].grad = None
        run("full")
        everywhere = self._with_gradient()
        full = dict(zip(everywhere, self._gradients(everywhere), strict=True))
        beside = [full[i] if i in full else torch.zeros_like(x) for i, x in zip(where, g, strict=True)]
        everything = list(full.values())
        coefficient = ratio(dot(g, beside, self._lazy), dot(everything, everything, self._lazy))
        return g, dict(zip(where, beside, strict=True)), coefficient

    # ---------------------------------------------------------------- the other ways through a step

    def _mean_over_noise(self, run: Passes, at: Moment | None, step: int, shard: int) -> None:
        """LPF-SGD: the mean of the gradients at w + d0 over the draws of d0. Without noise: the plain gradient."""
        total: dict[int, Tensor] = {}
        for draw in range(self.spec.draws):
            self._move_by_noise(self._noise(at, step, shard, draw))
            run()
            self._weights.restore()
            if self.spec.draws == 1:
                return
            for i in self._with_gradient():
                (g,) = self._gradients([i])
                total[i] = total[i].add_(g) if i in total else g.clone()
        for i, mean in total.items():
            self._set_gradient(i, mean.div_(self.spec.draws))

    def _between(self, run: Passes, state: State) -> None:
        run()
        if self.spec.between is Between.reuse:
            look = state.of("look")
            where = [i for i in self._with_gradient() if self._names[i] in look]
            descent.reuse(self._gradients(where), [look[self._names[i]] for i in where], self.spec.look, self._lazy)

    def _descend(self, state: State, first: dict[int, Tensor]) -> None:
        """What the descent makes of both gradients; one that a parameter did not get counts as zero."""
        where = sorted({*first, *self._with_gradient()})
        for i in where:
            if self._params[i].grad is None:
                self._set_gradient(i, torch.zeros_like(self._params[i]))
        g_adv = self._gradients(where)
        g = [first[i] if i in first else torch.zeros_like(x) for i, x in zip(where, g_adv, strict=True)]
        if self.spec.between is Between.reuse:
            v = descent.orthogonal_direction(g_adv, g, self._lazy)
            state.tensors["look"] = {self._names[i]: x for i, x in zip(where, v, strict=True)}
        if self.spec.descent is Descent.gsam:
            descent.gsam(g_adv, g, self.spec.alpha, self._lazy)

    # ---------------------------------------------------------------- gradients and noise

    def _with_gradient(self) -> list[int]:
        return [i for i, p in enumerate(self._params) if p.grad is not None]

    def _gradients(self, where: list[int]) -> Tensors:
        return [g for i in where if (g := self._params[i].grad) is not None]

    def _set_gradient(self, i: int, value: Tensor) -> None:
        p = self._params[i]
        if p.grad is None:
            p.grad = value
        else:
            p.grad.copy_(value)  # it may be a view that has to stay

    def _noise(self, at: Moment | None, step: int, shard: int, draw: int) -> dict[int, Tensor]:
        """d0 for every parameter, empty where there is none."""
        gamma = noise_size(self.spec, at) if self.spec.start is Start.kernel_noise else 0.0
        if gamma == 0:
            return {}
        weights = [p.detach() for p in self._params]
        source = generator(weights[0].device, self.seed, step, shard, f"noise{draw}")
        return dict(enumerate(kernel_noise(weights, gamma, self.spec.noise_scale, source)))

    def _move_by_noise(self, noise: dict[int, Tensor]) -> None:
        if noise:
            # Copies, for `move` consumes them and the direction may need d0 again.
            self._weights.move(list(noise), [d0.clone() for d0 in noise.values()], 1.0)

    # ---------------------------------------------------------------- state

    def end_step(self, all_reduce_mean: Callable[[list[Tensor]], object] | None = None, skipped: bool = False) -> None:
        """After the last shard of a step. `skipped`: the optimizer takes no step, so every shard's state goes back.

        all_reduce_mean averages a list of tensors over the ranks, in place: for the average that all shards share.
        """
        self._memory.end_step(all_reduce_mean, skipped)

    def state_dict(self) -> dict[str, Any]:
        """Everything that the next steps depend on, by shard. Random numbers follow from the step and need nothing."""
        return self._memory.state_dict()

    def load_state_dict(self, saved: dict[str, Any]) -> None:
        self._memory.load_state_dict(saved)
