"""The algebra of sharpness-aware methods: one point of it is a `Spec`.

Every method of the papers computes one *final gradient* by answering the same few questions, the axes below:

    start      where the first gradient is taken: at w, or at w + d0 with kernel-wise Gaussian noise d0
    ascent     on which data the ascent gradient g is taken
    direction  how the ascent direction d follows from g
    geometry   the diagonal operator T that shapes the ball: eps = rho * T^2 d / l2(T d)
    radius     how rho moves during training
    descent    how the final gradient follows from the gradient at w + eps
    cadence    on which steps all this happens, and what the other steps do

Nothing here imports torch: the configuration shares this vocabulary and its rules.
"""

from __future__ import annotations

from dataclasses import dataclass
from enum import Enum


class Start(Enum):
    none = "none"
    kernel_noise = "kernel_noise"


class Ascent(Enum):
    none = "none"  # no perturbation: the base optimizer alone, or LPF-SGD's mean over noise
    batch = "batch"  # the current batch, or `fraction` of it
    other = "other"  # another random batch of the same size (SAM-db)
    larger = "larger"  # a batch of `ascent_batch` samples that holds the current one (F-SAM figure A1)
    full = "full"  # the whole training set (SAM-full)


class Direction(Enum):
    gradient = "gradient"  # d = g
    minus_ema = "minus_ema"  # d = g - sigma * m, m an exponential moving average of g (F-SAM)
    residual = "residual"  # d = g minus its projection on the full gradient (SAM-noise)
    noise_plus_gradient = "noise_plus_gradient"  # d = d0 + mix * g(w + d0) (R-SAM)


class EmaOrder(Enum):
    update_first = "update_first"  # the paper: m_t = decay m_{t-1} + (1 - decay) g_t, then d = g_t - sigma m_t
    subtract_first = "subtract_first"  # the released code: d = g_t - sigma m_{t-1}, then the update


class EmaStart(Enum):
    zero = "zero"  # m_0 = 0
    first = "first"  # m_1 = g_1, and the first step is a plain SAM step


class Geometry(Enum):
    identity = "identity"
    elementwise = "elementwise"  # T = abs(w) + eta
    filterwise = "filterwise"  # T = l2(filter) + eta for convolutions, abs(w) + eta elsewhere
    fisher = "fisher"  # T = (1 + eta g^2)^(-1/2)


class Ball(Enum):
    l2 = "l2"  # eps = rho * T^2 d / l2(T d)
    linf = "linf"  # eps = rho * T sign(d)


class Normalised(Enum):
    weights = "weights"  # T = 1 for every parameter whose name does not contain "weight": biases above all
    all = "all"


class Radius(Enum):
    constant = "constant"
    follow_lr = "follow_lr"  # rho_min + (rho - rho_min) * (lr - lr_min) / (lr_max - lr_min), never below rho_min


class Descent(Enum):
    plain = "plain"  # g_adv = g(w + eps)
    gsam = "gsam"  # g_adv - alpha * (part of g orthogonal to g_adv)


class Between(Enum):
    plain = "plain"  # the steps between are plain steps
    # LookSAM: g + look * |g| / |v| * v, v the part of the last g_adv orthogonal to its g. With every=1 it is the method
    # without it, for there is no step between; v is taken all the same.
    reuse = "reuse"


class NoiseScale(Enum):
    filter = "filter"  # gamma * l2 of the output channel; 1-D tensors by their whole norm
    sqrt_filter = "sqrt_filter"  # R-SAM's algorithm 1 read literally: gamma^2 * l2 is the variance


@dataclass
class Spec:
    """One point of the algebra. The defaults are the plain base optimizer."""

    start: Start = Start.none
    gamma: float = 0.0  # standard deviation of the noise, relative to the norm of its kernel
    gamma_end: float | None = None  # cosine ramp from gamma to here over the run; null: constant
    noise_scale: NoiseScale = NoiseScale.filter
    draws: int = 1  # gradients averaged over that many draws of the noise (LPF-SGD's M); only without ascent

    ascent: Ascent = Ascent.none
    fraction: float = 1.0  # of the batch, for ascent=batch
    ascent_batch: int | None = None  # samples, for ascent=larger
    ascent_decay: float = 0.0  # adds this times w to the ascent gradient (the l2 term of the original JAX SAM)

    direction: Direction = Direction.gradient
    sigma: float = 1.0
    ema_decay: float = 0.6  # the papers' lambda
    ema_order: EmaOrder = EmaOrder.update_first
    ema_start: EmaStart = EmaStart.zero
    ema_shared: bool = False  # with m set: one average for all shards instead of one a shard
    mix: float = 1.0  # R-SAM's lambda, the weight of g beside the noise

    geometry: Geometry = Geometry.identity
    eta: float = 0.0
    p: Ball = Ball.l2
    normalise: Normalised = Normalised.weights

    rho: float = 0.0
    rho_min: float = 0.0
    radius: Radius = Radius.constant
    perturb: float = 1.0  # share of the weights that a step perturbs (ESAM's beta)

    descent: Descent = Descent.plain
    alpha: float = 0.0
    keep: float = 1.0  # share of the batch, the samples whose loss rose most, in the descent pass (ESAM's gamma)

    every: int = 1
    between: Between = Between.plain
    look: float = 0.0

    m: int | None = None  # samples that share one perturbation (m-sharpness); null: the whole batch

    def problems(self) -> list[tuple[str, str]]:
        """(field, what is wrong and how to mend it), for every rule that this point breaks."""
        s, found = self, list[tuple[str, str]]()

        def rule(broken: bool, field: str, message: str) -> None:
            if broken:
                found.append((field, message))

        for field in ("fraction", "keep", "perturb"):
            value = getattr(s, field)
            rule(not 0 < value <= 1, field, f"must be in (0, 1], is {value:g}")
        rule(not 0 <= s.sigma <= 1, "sigma", f"must be in [0, 1], is {s.sigma:g}")
        rule(not 0 <= s.ema_decay < 1, "ema_decay", f"must be in [0, 1), is {s.ema_decay:g}")
        for field in ("rho", "rho_min", "gamma", "eta", "alpha", "mix", "ascent_decay", "look"):
            value = getattr(s, field)
            rule(not 0 <= value < float("inf"), field, f"must be a finite number, not negative; is {value:g}")
        rule(s.gamma_end is not None and not 0 <= s.gamma_end < float("inf"), "gamma_end",
             f"must be a finite number, not negative; is {s.gamma_end}")  # fmt: skip
        rule(s.draws < 1, "draws", f"must be at least 1, is {s.draws}")
        rule(s.every < 1, "every", f"must be at least 1, is {s.every}")
        rule(s.m is not None and s.m < 1, "m", f"must be at least 1 sample, is {s.m}")

        ascends = s.ascent is not Ascent.none
        noisy = s.start is Start.kernel_noise
        for field, set_ in (
            ("rho", s.rho > 0),
            ("geometry", s.geometry is not Geometry.identity),
            ("direction", s.direction is not Direction.gradient),
            ("descent", s.descent is not Descent.plain),
            ("keep", s.keep < 1),
            ("perturb", s.perturb < 1),
            ("every", s.every > 1),
            ("between", s.between is not Between.plain),
            ("p", s.p is not Ball.l2),
            ("radius", s.radius is not Radius.constant),
            ("ascent_decay", s.ascent_decay > 0),
        ):
            rule(set_ and not ascends, field,
                 "has no meaning without an ascent: set method.ascent=batch or leave it out")  # fmt: skip
        rule(noisy != (s.gamma > 0 or bool(s.gamma_end)) and s.direction is not Direction.noise_plus_gradient, "gamma",
             "goes with start=kernel_noise, and start=kernel_noise needs gamma > 0")  # fmt: skip
        rule(s.direction is Direction.noise_plus_gradient and not noisy, "direction",
             "noise_plus_gradient needs start=kernel_noise")  # fmt: skip
        rule(
            s.draws > 1 and (ascends or not noisy),
            "draws",
            "averages over noise without ascent: start=kernel_noise, ascent=none",
        )
        rule(s.fraction < 1 and s.ascent is not Ascent.batch, "fraction", "is a fraction of the batch: ascent=batch")
        rule(
            (s.ascent is Ascent.larger) != (s.ascent_batch is not None),
            "ascent_batch",
            "goes with ascent=larger, which needs it",
        )
        rule(s.direction is Direction.residual and s.ascent not in (Ascent.batch, Ascent.none), "ascent",
             "direction=residual subtracts the full gradient from the batch's: ascent=batch")  # fmt: skip
        rule(s.descent is Descent.gsam and s.ascent is not Ascent.batch and ascends, "descent",
             "gsam compares both gradients of one batch: ascent=batch")  # fmt: skip
        rule(
            s.descent is Descent.gsam and s.fraction < 1,
            "fraction",
            "gsam compares both gradients of one batch: fraction=1",
        )
        rule(s.keep < 1 and (s.ascent is not Ascent.batch or s.fraction < 1) and ascends, "keep",
             "compares the losses of one batch before and after: ascent=batch, fraction=1")  # fmt: skip
        rule(s.alpha > 0 and s.descent is not Descent.gsam, "alpha", "goes with descent=gsam")
        rule(s.rho_min > 0 and s.radius is not Radius.follow_lr, "rho_min", "goes with radius=follow_lr")
        rule(s.rho_min > s.rho, "rho_min", f"must not exceed rho={s.rho:g}")
        rule(s.look > 0 and s.between is not Between.reuse, "look", "goes with between=reuse")
        rule(s.between is Between.reuse and ((s.ascent is not Ascent.batch and ascends) or s.fraction < 1), "between",
             "reuse splits both gradients of one batch: ascent=batch, fraction=1")  # fmt: skip
        plain = Spec()
        for field, direction in (
            ("sigma", Direction.minus_ema),
            ("ema_decay", Direction.minus_ema),
            ("ema_order", Direction.minus_ema),
            ("ema_start", Direction.minus_ema),
            ("mix", Direction.noise_plus_gradient),
        ):
            unused = s.direction is not direction and getattr(s, field) != getattr(plain, field)
            rule(unused, field, f"goes with direction={direction.value}")
        rule(s.geometry is Geometry.fisher and s.p is Ball.linf, "p", "linf is not defined with geometry=fisher: p=l2")
        rule(s.geometry is Geometry.identity and s.eta > 0, "eta", "goes with a geometry other than identity")
        rule(s.ema_shared and (s.direction is not Direction.minus_ema or s.m is None), "ema_shared",
             "goes with direction=minus_ema and m set: without m there is one average anyway")  # fmt: skip
        rule(s.ema_shared and s.direction is Direction.minus_ema and s.ema_order is EmaOrder.update_first, "ema_shared",
             "needs ema_order=subtract_first: this step's average is known only after every shard's pass")  # fmt: skip
        return found

    def passes(self, batch: int | None = None, train: int | None = None) -> float:
        """Cost of a step in forward and backward passes over the batch, the mean over steps with and without ascent.

        NaN where it depends on a size that is not given: the batch's and the training set's.
        """
        unknown = float("nan")
        if self.ascent is Ascent.none:
            return float(self.draws)
        first = {
            Ascent.batch: self.fraction,
            Ascent.other: 1.0,
            Ascent.larger: self.ascent_batch / batch if self.ascent_batch and batch else unknown,
            Ascent.full: train / batch if train and batch else unknown,
        }[self.ascent]
        if self.direction is Direction.residual:
            shards = batch / self.m if batch and self.m else 1.0  # each takes the full gradient anew
            first += shards * train / batch if train and batch else unknown
        # Choosing the samples takes a forward pass over all of them, about a third of a forward and backward pass.
        second = 1.0 if self.keep == 1 else 1 / 3 + self.keep
        return (first + second + self.every - 1) / self.every

    def vectors(self) -> int:
        """Parameter-sized tensors that a step holds beside weights and gradient: what a plan of its memory needs."""
        noisy = self.start is Start.kernel_noise  # d0, or w + d0
        if self.ascent is Ascent.none:
            return noisy + (self.draws > 1)  # and the sum
        reuses = self.between is Between.reuse
        return (
            1  # w and w + eps at once
            + noisy
            + (self.direction is Direction.minus_ema)
            + (self.direction is Direction.residual)  # the full gradient
            + (reuses or self.descent is Descent.gsam)  # the first gradient, until the second is there
            + reuses  # its direction, for the steps between
        )
