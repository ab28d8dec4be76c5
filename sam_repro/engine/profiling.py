"""debug=profile: a trace of a few steps, for chrome://tracing or Perfetto."""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from pathlib import Path
from typing import Any


def profiler(wanted: bool, file: Path) -> AbstractContextManager[Any]:
    """A context whose value is None, or a profiler whose `step` is called after every training step."""
    if not wanted:
        return nullcontext()
    from torch.profiler import ProfilerActivity, profile, schedule

    def save(p: Any) -> None:
        p.export_chrome_trace(str(file))
        print(p.key_averages().table(sort_by="self_cpu_time_total", row_limit=12), flush=True)
        print(f"the trace of 5 steps is {file}", flush=True)

    activities = [ProfilerActivity.CPU, ProfilerActivity.CUDA]
    return profile(activities=activities, schedule=schedule(wait=3, warmup=2, active=5, repeat=1), on_trace_ready=save)
