"""Some sentences of the embedded corpus and a Transformer of a few thousand weights: translation at its smallest."""

from __future__ import annotations

import os
import signal
from pathlib import Path

import torch
from torch import Tensor

from sam_repro.config.schema import Config
from sam_repro.tasks.translation import grammar
from sam_repro.tasks.translation.corpus import Corpus
from sam_repro.tasks.translation.decode import Search
from sam_repro.tasks.translation.model import TransformerConfig
from sam_repro.tasks.translation.prepare import Preparation, prepared
from sam_repro.tasks.translation.task import Sentences, Translation

SIZES = {"train": 96, "valid": 6, "test": 6}


class Small(Translation):
    dropout = 0.0  # the masks of a batch that is cut are others

    def __init__(self, config: Config, device: torch.device) -> None:
        root = Path(config.dataset.root)
        root.mkdir(parents=True, exist_ok=True)
        for split, size in SIZES.items():
            for side, language in enumerate(("de", "en")):
                path = root / f"{split}.{language}"
                if not path.exists():
                    sentences = (grammar.sentence(0, i + 1000 * (split != "train")) for i in range(size))
                    path.write_text("".join(pair[side] + "\n" for pair in sentences))
        corpus = Corpus(prepared(root, Preparation(merges=80), root / "cache"))
        shape = TransformerConfig(width=16, inner=24, heads=2, layers=1, dropout=self.dropout)
        super().__init__(config, device, corpus, shape, Search(beam=2, a=0.2, b=4))


class Dropped(Small):
    dropout = 0.1
    passes = 0

    def inputs(self, batch: Sentences) -> tuple[Tensor, ...]:
        self.passes += 1
        if str(self.passes) == os.environ.get("STOP_AT_PASS"):  # a test's, to see the run go on from there
            os.kill(os.getpid(), signal.SIGTERM)
        return super().inputs(batch)
