"""debug=profile: a trace of a few steps, for chrome://tracing or Perfetto, and what a step says to other ranks."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any

from sam_repro.engine.ranks import Ranks

WAIT, WARM_UP, STEPS = 3, 2, 5


def profiler(wanted: bool, file: Path, ranks: Ranks) -> AbstractContextManager[Any]:
    """A context whose value is None, or a profiler whose `step` is called after every training step."""
    if not wanted:
        return nullcontext()
    from torch.profiler import ProfilerActivity, profile, schedule

    collectives, size = ranks.collectives, ranks.bytes_reduced

    def save(p: Any) -> None:
        done = WAIT + WARM_UP + STEPS
        each, megabytes = (ranks.collectives - collectives) / done, (ranks.bytes_reduced - size) / done / 1e6
        p.export_chrome_trace(str(file))
        print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=12), flush=True)
        if ranks.world > 1:
            print(f"a step: {each:g} all-reduces, {megabytes:.3f} MB, between {ranks.world} ranks", flush=True)
        print(f"the trace of {STEPS} steps is {file}", flush=True)

    steps = schedule(wait=WAIT, warmup=WARM_UP, active=STEPS, repeat=1)
    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    return profile(activities=activities, schedule=steps, on_trace_ready=save)
