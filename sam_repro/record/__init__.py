"""What a run leaves behind: metrics.jsonl (the truth), events.jsonl, summary.json, env.json; console and W&B mirror it.

Nothing here imports torch.
"""

from sam_repro.files.atomic import open_atomic, write_atomic
from sam_repro.record.recorder import Recorder
from sam_repro.record.summary import summarise

__all__ = ["Recorder", "open_atomic", "summarise", "write_atomic"]
