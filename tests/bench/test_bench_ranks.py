"""`bench ranks`: what it compares gives the same numbers, and the network it makes is gone afterwards."""

from __future__ import annotations

import os
import shutil
import socket
from pathlib import Path

import pytest
import torch
from rig import config, net, stepper, train, weights
from torch.multiprocessing.spawn import spawn

from sam_repro.bench import ranks
from sam_repro.bench.overlap import Overlapped
from sam_repro.config.schema import RuntimeConfig
from sam_repro.engine.ranks import Ranks

STEPS = 3


def a_rank(rank: int, port: int, folder: str) -> None:
    os.environ |= {"RANK": str(rank), "WORLD_SIZE": "2", "LOCAL_RANK": str(rank), "MASTER_ADDR": "127.0.0.1",
                   "MASTER_PORT": str(port)}  # fmt: skip
    torch.set_num_threads(1)
    flat = Ranks.join(RuntimeConfig())
    for method in ("plain", "gsam"):
        found = []
        for way in (flat, Overlapped(flat.rank, flat.world, flat.device)):
            n = net(torch.float32)
            if isinstance(way, Overlapped):
                way.watch(list(n.parameters()), 500)
                assert len(way.buckets) > 1
                way.active = True
            train(stepper(config(f"method={method}"), n, way), STEPS)
            found.append(weights(n))
        torch.testing.assert_close(*found, rtol=0, atol=0)  # of two ranks, a sum has one order
        torch.save(found[0], Path(folder) / f"{method}{rank}.pt")
    flat.leave()


@pytest.mark.slow
def test_overlapped_sums_are_the_flat_ones(tmp_path: Path) -> None:
    with socket.socket() as s:
        s.bind(("127.0.0.1", 0))
        port = s.getsockname()[1]
    spawn(a_rank, args=(port, str(tmp_path)), nprocs=2)
    for method in ("plain", "gsam"):
        one, other = (torch.load(tmp_path / f"{method}{rank}.pt", weights_only=True) for rank in (0, 1))
        assert torch.equal(one, other)


@pytest.mark.slow
@pytest.mark.skipif(os.geteuid() != 0 or shutil.which("tc") is None, reason="takes root and iproute2")
def test_it_measures_every_way_and_leaves_no_network() -> None:
    before = set(os.listdir("/run/netns")) if os.path.isdir("/run/netns") else set()
    result = ranks.run("resnet8", 1, 8, ["plain", "sam+m"], worlds=[2], rates=[1])
    assert set(result["results"]) == {"2 ranks, 1 Gbit/s"}
    by_method = result["results"]["2 ranks, 1 Gbit/s"]
    assert set(by_method["plain"]["milliseconds"]) == {"flat", "overlapped", "alone"}
    assert set(by_method["sam+m"]["milliseconds"]) == {"flat", "alone"}
    assert len(result["bars"]) == 1
    assert "overlapped" in ranks.table(result)
    assert set(os.listdir("/run/netns")) <= before


def test_bars_are_about_what_can_overlap() -> None:
    measured = {"overlapped, times faster": 1.1}
    found = ranks.bars({f"2 ranks, {rate} Gbit/s": {"plain": measured, "sam+m": measured} for rate in (1, 10)})
    assert [(bar.what.split(":")[0], bar.bar, bar.met) for bar in found] == [
        ("plain, 2 ranks, 1 Gbit/s", 1.25, False),
        ("plain, 2 ranks, 10 Gbit/s", 0.97, True),
    ]
