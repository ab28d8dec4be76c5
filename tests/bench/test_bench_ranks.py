"""`bench ranks` measures every way, and the network it makes is gone afterwards."""

from __future__ import annotations

import os
import shutil

import pytest

from sam_repro.bench import ranks


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
    much, little = ({"overlapped, times faster": 1.1, "communication": share} for share in (0.33, 0.2))
    found = ranks.bars({f"2 ranks, {r} Gbit/s": {"plain": much, "sam": little, "sam+m": much} for r in (1, 10)})
    assert [(bar.what.split(":")[0], bar.bar, bar.met) for bar in found] == [
        ("plain, 2 ranks, 1 Gbit/s", 1.25, False),
        ("sam, 2 ranks, 1 Gbit/s", 0.97, True),
        ("plain, 2 ranks, 10 Gbit/s", 0.97, True),
        ("sam, 2 ranks, 10 Gbit/s", 0.97, True),
    ]
