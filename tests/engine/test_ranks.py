"""Two real processes and one process with two shards are the same training."""

from __future__ import annotations

import os
import socket
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from every import METHODS, QUICK, of
from nursery import Nursery
from rig import CPU, Net, buffers, config, net, rigged, stepper, train, weights
from torch import Tensor, nn

from sam_repro.config.schema import RuntimeConfig
from sam_repro.engine import reduction
from sam_repro.engine.gradient import GradFn
from sam_repro.engine.ranks import Ranks
from sam_repro.methods import Pass
from sam_repro.tasks.classification.task import Classification

STEPS = 6
# (overrides, collectives a step that two ranks need)
SHARED = ["method=fsam", "method.ema_shared=true", "method.ema_order=subtract_first"]
SETTINGS = {
    # One perturbation a shard, each on its rank: as many collectives as SGD needs.
    **{method: (["method.m=8", *of(method)], 1) for method in METHODS if method not in ("sam_full", "sam_noise")},
    "two_shards_a_rank": (["method.m=4", "method=asam"], 1),
    "clipped": (["method.m=8", "loop.clip_norm=0.05"], 1),
    # The full gradient is everybody's.
    "sam_noise": (["method.m=8", "method=sam_noise"], 2),
    "fsam_shared": (["method.m=8", *SHARED], 2),
    # One perturbation for the whole batch: a collective a pass.
    "synchronised": (["loop.micro_batch=8"], 2),
    "synchronised_plain": (["loop.micro_batch=8", "method=plain"], 1),
    "sam_full": (["loop.micro_batch=8", "method=sam_full"], 2),
    # Half of 64 samples are whole forward passes, half of 68 are not.
    "sam_full_across": (["loop.micro_batch=8", "method=sam_full", "budget.train_images=68"], 2),
    "sam_noise_across": (["method.m=8", "method=sam_noise", "budget.train_images=68"], 2),
}
PROBED = {"shards": ["method=fsam", "method.m=8"], "synchronised": ["method=fsam", "loop.micro_batch=8"]}
# Without m the gradients of every pass leave during it. These choose samples on each rank, others train as one process.
BY_RANK = ("esam", "lpf_sgd")
OVERLAPPED = {
    **{method: [*of(method), "loop.micro_batch=8"] for method in QUICK},
    "uneven": ["method=fsam", "loop.micro_batch=3", "loop.clip_norm=0.05"],
    "bf16": ["method=asam", "runtime.precision=bf16", "runtime.channels_last=true"],
    "fp16": ["method=gsam", "runtime.precision=fp16"],
}


class Partly(Net):
    """Has a parameter, the first whose gradient comes, that one of two ranks does not use."""

    def __init__(self, used: bool) -> None:
        super().__init__()
        self.used, self.shift = used, nn.ParameterList([torch.ones(10)])

    def forward(self, x: Tensor) -> Tensor:
        return super().forward(x) + self.shift[0] if self.used else super().forward(x)


def overlap(ranks: Ranks, folder: Path) -> None:
    """Each bucket a parameter, the sums are those of one buffer, to the bit: of two ranks, they have one order."""
    reduction.LEAST, reduction.MOST = 1, 1_000
    for name, overrides in OVERLAPPED.items():
        c, found, sent = config(*overrides), [], []
        task = Classification.load(c, CPU)
        for overlaps in (False, True):
            torch.manual_seed(1)
            n, way = Partly(used=ranks.rank == 0), replace(ranks, overlaps=overlaps, bytes_reduced=0)
            s = rigged(c, n, task, way)
            sums = s.setting.reduction
            left = []
            for p in s.parameters:
                p.register_post_accumulate_grad_hook(lambda _: left.append(len(sums.on_their_way)))  # noqa: B023
            train(s, 2)
            assert len(sums.early) == (len(s.parameters) - 1 if overlaps else 0)
            # Whatever the other rank has, the one without the first gradient lets none leave before it.
            assert max(left) == (len(sums.early) if n.used else 0), (name, left)
            found.append(weights(n))
            sent.append(way.bytes_reduced)
        torch.testing.assert_close(*found, rtol=0, atol=0)
        assert sent[0] == sent[1] > 0
        if name in QUICK:
            n = net()
            train(rigged(c, n, task, ranks), 2)
            torch.save(weights(n), folder / f"overlapped_{name}{ranks.rank}.pt")


def a_rank(number: str, port: str, folder: str) -> None:
    rank = int(number)
    os.environ |= {"RANK": number, "WORLD_SIZE": "2", "LOCAL_RANK": number, "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": port}  # fmt: skip
    torch.set_num_threads(1)
    ranks = Ranks.join(RuntimeConfig())
    for name, (overrides, collectives) in SETTINGS.items():
        n = net()
        s = stepper(config("method=sam", *overrides), n, ranks)
        ranks.collectives = ranks.bytes_reduced = 0
        train(s, STEPS)
        assert ranks.collectives == collectives * STEPS, (name, ranks.collectives)
        if name == "plain":  # a gradient and a few numbers: two losses, the request and what the task counts
            numbers = weights(n).numel() + 3 + s.task.counted
            assert ranks.bytes_reduced == STEPS * numbers * weights(n).element_size()
        s.statistics.average_over(ranks)
        torch.save({"weights": weights(n), "buffers": buffers(n)}, Path(folder) / f"{name}{rank}.pt")

    s = stepper(config("method=sam", "method.m=8"), net(), ranks)
    (shard,) = next(s.shards([s.data.order(0)[:16]], 0, 0))
    GradFn(s.setting, shard)(Pass())
    local = torch.cat([p.grad.reshape(-1) for p in s.parameters if p.grad is not None])
    torch.save(local, Path(folder) / f"local{rank}.pt")
    # What a step counts is summed over the ranks once, in however many parts a pass was.
    words = ["method=lpf_sgd", "method.draws=3", "method.gamma=1e-12", "method.gamma_end=null"]
    split, plain = (stepper(config(*w), net(norm=False), ranks) for w in (words, ["method=plain"]))
    one, other = (s(s.data.order(0)[:16], 0, 0) for s in (split, plain))
    assert one.counts == other.counts > 0
    torch.testing.assert_close(one.loss, other.loss, rtol=1e-6, atol=0)
    for name, words in PROBED.items():
        seen = train(stepper(config(*words), net(), ranks), 2, probe=True)
        torch.save([outcome.probed for outcome in seen], Path(folder) / f"probed_{name}{rank}.pt")
    assert ranks.any(rank == 1)
    assert not ranks.any(False)
    assert ranks.share(rank) == 0
    overlap(ranks, Path(folder))
    ranks.leave()


@pytest.fixture(scope="module")
def two_ranks(tmp_path_factory: pytest.TempPathFactory, nursery: Nursery) -> Path:
    folder = tmp_path_factory.mktemp("ranks")
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    ranks = [nursery.function(folder, "test_ranks:a_rank", str(rank), str(port), str(folder)) for rank in (0, 1)]
    try:
        for rank in ranks:
            out, err = rank.communicate(600)
            assert rank.returncode == 0, out + err
    finally:
        for rank in ranks:
            rank.end()
    return folder


@pytest.mark.parametrize("name", SETTINGS)
def test_two_ranks_equal_one_process_with_the_same_shards(name: str, two_ranks: Path) -> None:
    n = net()
    train(stepper(config("method=sam", *SETTINGS[name][0]), n, Ranks(0, 1, CPU)), STEPS)
    for rank in (0, 1):
        saved = torch.load(two_ranks / f"{name}{rank}.pt", weights_only=True)
        torch.testing.assert_close(saved["weights"], weights(n), rtol=1e-9, atol=1e-11)
        torch.testing.assert_close(saved["buffers"], buffers(n), rtol=1e-9, atol=1e-11)


@pytest.mark.parametrize("name", PROBED)
def test_two_ranks_probe_what_one_process_does(name: str, two_ranks: Path) -> None:
    alone = train(stepper(config(*PROBED[name]), net()), 2, probe=True)
    for rank in (0, 1):
        saved = torch.load(two_ranks / f"probed_{name}{rank}.pt")
        torch.testing.assert_close(saved, [outcome.probed for outcome in alone], rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("method", [m for m in QUICK if m not in BY_RANK])
def test_gradients_that_leave_during_the_backward_pass_are_those_of_one_process(method: str, two_ranks: Path) -> None:
    n = net()
    train(stepper(config(*OVERLAPPED[method]), n), 2)
    for rank in (0, 1):
        saved = torch.load(two_ranks / f"overlapped_{method}{rank}.pt", weights_only=True)
        torch.testing.assert_close(saved, weights(n), rtol=1e-9, atol=1e-11)


def test_buckets_are_fixed_and_small_models_have_one() -> None:
    def sizes(*elements: int) -> list[int]:
        parameters = [nn.Parameter(torch.empty(count)) for count in elements]
        return [sum(p.numel() for p in bucket) for bucket in reduction.buckets(parameters)]

    least = reduction.LEAST
    assert sizes(10, least, least - 11) == [2 * least - 1]
    assert sizes(10, least, least - 11, 1) == [2 * least - 10, 10]
    assert sizes(*[least] * 40) == [3 * least] * 13 + [least]  # 40 / 16 of them and more are a bucket


def test_trap_ddp_no_sync_local_ascent_gradients_differ(two_ranks: Path) -> None:
    first, second = (torch.load(two_ranks / f"local{rank}.pt", weights_only=True) for rank in (0, 1))
    assert not torch.allclose(first, second)


def test_perturbing_by_shard_is_not_perturbing_the_whole_batch() -> None:
    """Or the test above could not fail."""
    whole, sharded = net(norm=False), net(norm=False)
    train(stepper(config("method=sam", "method.rho=0.5"), whole), STEPS)
    train(stepper(config("method=sam", "method.rho=0.5", "method.m=8"), sharded), STEPS)
    assert not torch.allclose(weights(whole), weights(sharded), rtol=1e-6)
