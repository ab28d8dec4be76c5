"""Some sentences of the embedded corpus and a Transformer of a few thousand weights: translation at its smallest."""

from __future__ import annotations

import os
import signal
from dataclasses import replace
from pathlib import Path

import torch
from torch import Tensor

from sam_repro.config.schema import Config, DecodingConfig, ModelConfig
from sam_repro.models.catalog import Architecture
from sam_repro.tasks.translation import grammar
from sam_repro.tasks.translation.corpus import Corpus
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
        tiny = ModelConfig(Architecture.transformer, depth=1, width=16, heads=2, ffn=24, dropout=self.dropout)
        config = replace(config, model=tiny, decoding=DecodingConfig(beam=2, limit_factor=0.2, limit_extra=4))
        super().__init__(config, device, Corpus(prepared(root, Preparation(merges=80), root / "cache")))


class Dropped(Small):
    dropout = 0.1
    passes = 0

    def inputs(self, batch: Sentences) -> tuple[Tensor, ...]:
        self.passes += 1
        if str(self.passes) == os.environ.get("STOP_AT_PASS"):  # a test's, to see the run go on from there
            os.kill(os.getpid(), signal.SIGTERM)
        return super().inputs(batch)
