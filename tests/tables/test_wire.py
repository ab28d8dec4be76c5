"""What ranks say to each other, by bytes and FLOPs; the engine's own tests count the same collectives."""

from __future__ import annotations

import pytest

from sam_repro.config.compose import compose
from sam_repro.errors import UserError
from sam_repro.report.__main__ import main
from sam_repro.tables.wire import LINKS, collectives, exchange, link_of

WRN = ("model=wrn_28_10", "dataset=cifar10", "loop.batch_size=128")


@pytest.mark.parametrize(
    ("words", "count"),
    [
        (("method=plain",), 1),
        (("method=sam",), 2),
        (("method=sam", "method.m=16"), 1),
        (("method=asam", "method.m=8"), 1),
        (("method=fsam", "method.ema_shared=true", "method.ema_order=subtract_first", "method.m=8"), 2),
        (("method=sam_full",), 2),
        (("method=sam_noise", "method.m=8"), 2),
        (("method=sam_noise",), 3),
        (("method=lpf_sgd", "method.draws=4"), 4),
    ],
)
def test_a_collective_a_pass_or_one_a_step(words: tuple[str, ...], count: int) -> None:
    assert collectives(compose([*words, "loop.batch_size=16"]), ranks=2) == count


def test_bytes_and_flops_of_a_step() -> None:
    sgd, sam = (exchange(compose([*WRN, f"method={name}"]), "a100", LINKS["pcie"]) for name in ("plain", "sam"))
    assert sgd is not None
    assert sam is not None
    parameters = 36_479_194
    assert sgd.megabytes == pytest.approx(4 * parameters * 2 * 7 / 8 / 1e6)
    assert (sam.megabytes, sam.talking) == (2 * sgd.megabytes, 2 * sgd.talking)
    assert sam.computing == pytest.approx(2 * sgd.computing)
    by_shard = exchange(compose([*WRN, "method=sam", "method.m=16"]), "a100", LINKS["pcie"])
    assert by_shard is not None
    assert by_shard.talking == sgd.talking
    shares = [exchange(compose([*WRN, "method=sam"]), "a100", LINKS[name]) for name in ("nvlink", "pcie", "25gbit")]
    assert sorted(found.share for found in shares if found) == [found.share for found in shares if found]


def test_what_cannot_be_shared_or_is_unknown() -> None:
    assert exchange(compose([*WRN, "method=sam", "method.m=128"]), "a100", LINKS["nvlink"]) is None
    assert exchange(compose(["model=timm", "model.name=resnet26"]), "a100", LINKS["nvlink"]) is None
    with pytest.raises(UserError, match="did you mean 'nvlink'"):
        link_of("nvlinc")


def test_a_plan_shows_it(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["plan", "asam/2", "hardware.link=25gbit", "device=a100"]) == 0
    said = capsys.readouterr().out
    assert "32 ranks, 4 nodes of 8 GPUs on 25 Gbit/s" in said
    (line,) = (x for x in said.splitlines() if "wrn_28_10" in x and x.endswith(" sam asam") and " % " in x)
    assert line.split()[3:5] == ["2", "438"]
