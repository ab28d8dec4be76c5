"""Ranks find out before they join whether their devices fit together. CUDA's answers are patched."""

from __future__ import annotations

import threading
from collections.abc import Callable
from types import SimpleNamespace

import pytest
import torch
from torch._C._distributed_c10d import HashStore

from sam_repro.config.compose import compose
from sam_repro.engine.ranks import agreed, device_of
from sam_repro.errors import Shared, UserError

Gpus = Callable[[dict[int, list[str]]], list[str]]


@pytest.fixture
def meet(monkeypatch: pytest.MonkeyPatch) -> Gpus:
    """What becomes of ranks, threads here, each of which sees GPUs of these serial numbers."""
    seen = dict[str, list[str]]()

    def mine() -> list[str]:
        return seen[threading.current_thread().name]

    monkeypatch.setattr(torch.cuda, "is_available", lambda: bool(mine()))
    monkeypatch.setattr(torch.cuda, "device_count", lambda: len(mine()))
    monkeypatch.setattr(torch.cuda, "set_device", lambda _: None)
    monkeypatch.setattr(torch.cuda, "get_device_properties", lambda d: SimpleNamespace(uuid=mine()[d.index]))

    def run(ranks: dict[int, list[str]], device: str = "auto") -> list[str]:
        runtime, store, found = compose([f"runtime.device={device}"]).runtime, HashStore(), dict[int, str]()

        def one(rank: int) -> None:
            try:
                found[rank] = str(agreed(store, rank, len(ranks), runtime, local=rank))
            except Shared as error:
                found[rank] = f"error: {error}"

        threads = [threading.Thread(target=one, args=(rank,), name=f"rank{rank}") for rank in ranks]
        seen.update({f"rank{rank}": gpus for rank, gpus in ranks.items()})
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join(20)
        return [found.get(rank, "waits for ever") for rank in ranks]

    return run


def test_ranks_of_one_node_take_a_gpu_each(meet: Gpus) -> None:
    assert meet({0: ["a", "b"], 1: ["a", "b"]}) == ["cuda:0", "cuda:1"]
    assert meet({0: [], 1: []}) == ["cpu", "cpu"]


def test_a_task_that_slurm_shows_one_gpu_takes_it(meet: Gpus) -> None:
    assert meet({0: ["a"], 1: ["b"]}) == ["cuda:0", "cuda:0"]


def one_line(found: list[str]) -> str:
    assert len(set(found)) == 1, "every rank raises the same"
    return found[0]


def test_a_node_without_its_gpus_is_named_on_every_rank(meet: Gpus) -> None:
    assert "rank 1 sees no CUDA device and rank 0 has one" in one_line(meet({0: ["a", "b"], 1: []}))
    assert "rank 1: runtime.device=cuda" in one_line(meet({0: ["a", "b"], 1: []}, "cuda"))  # type: ignore[call-arg]


def test_more_ranks_than_gpus_are_refused(meet: Gpus) -> None:
    assert "ranks 0 and 1 share one" in one_line(meet({0: ["a"], 1: ["a"]}))
    assert "more GPUs than the 2" in one_line(meet({0: ["a", "b"], 1: ["a", "b"], 2: ["a", "b"]}))


def test_gpus_that_slurm_granted_and_torch_does_not_see(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(torch.cuda, "is_available", lambda: False)
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "1")
    with pytest.raises(UserError, match="Slurm granted GPUs"):
        device_of(compose([]).runtime, 0)
    assert device_of(compose(["runtime.device=cpu"]).runtime, 0).type == "cpu"
    monkeypatch.setenv("SLURM_GPUS_ON_NODE", "0")
    assert device_of(compose([]).runtime, 0).type == "cpu"
