"""Translation as a configuration says it: what goes with text and what does not, what a run is known by, its cost."""

from __future__ import annotations

import gzip
import json
import re
from pathlib import Path

import pytest
import torch
from commands import Cli

from sam_repro.config.compose import compose
from sam_repro.config.identity import run_id, science
from sam_repro.errors import UserError
from sam_repro.models import count_parameters
from sam_repro.record.metrics import read
from sam_repro.runs.run import config_of, stored_runs
from sam_repro.tables.cost import model_cost, train_examples
from sam_repro.tasks.translation import grammar
from sam_repro.tasks.translation.declared import DICTIONARIES, PAIRS, TOKENS
from sam_repro.tasks.translation.model import Transformer
from sam_repro.tasks.translation.task import Translation, shape_of
from sam_repro.tasks.translation.text import SPLITS
from sam_repro.train import task_of

TEXT = ["dataset=grammar", "model=transformer_small"]
REFUSED = {
    ("dataset=grammar",): "model.architecture is resnet_cifar, for images: add model=transformer, or",
    ("model=transformer",): "model.architecture is transformer, for text: dataset=embedded is images",
    (*TEXT, "runtime.compile=true"): "runtime.compile can't compile text: its batches are of many lengths",
    (*TEXT, "augment=basic"): "augment.crop is for images: leave augment=none for dataset=grammar",
    (*TEXT, "augment.mixup=1"): "augment.mixup is for images",
    (*TEXT, "dataset.label_noise.rate=0.2"): "dataset.label_noise.rate is not read by dataset=grammar: it is",
    (*TEXT, "dataset.image_size=32"): "dataset.image_size is not read by dataset=grammar: it is for images",
    (*TEXT, "dataset.validation=0.2"): "dataset.validation is not read by dataset=grammar, which has a validation set",
    (*TEXT, "loop.loss=sigmoid"): "loop.loss is not read by dataset=grammar: it is for images",
    (*TEXT, "dataset.source=fr"): "dataset.source is not read here: it goes with dataset=parallel",
    (*TEXT, "model.head_bias=1"): "model.head_bias is not taken by transformer",
    (*TEXT, "model.width=100"): "model.width must be a multiple of twice model.heads=4, is 100",
    (*TEXT, "model.ffn=null"): "model.ffn must have a value for transformer",
    (*TEXT, "decoding.beam=0"): "decoding.beam must be at least 1, is 0",
    ("dataset=parallel", "model=transformer"): "dataset.source must name a language for dataset=parallel",
    ("decoding.beam=3",): "decoding.beam is not read here: it goes with text",
    ("dataset.text.merges=3",): "dataset.text.merges is not read here: it goes with text",
    ("model.heads=3",): "model.heads is not taken by resnet_cifar: set it to null",
    ("schedule=warmup_cosine", "schedule.warmup_steps=9"): "schedule.warmup_steps and schedule.warmup_epochs are the",
}  # fmt: skip


@pytest.mark.parametrize("words", REFUSED, ids=" ".join)
def test_what_does_not_go_together_is_one_line(words: tuple[str, ...]) -> None:
    with pytest.raises(UserError, match=f"^{re.escape(REFUSED[words])}"):
        compose(words)


def write(folder: Path, number: int = 0, packed: bool = False) -> list[str]:
    """A corpus of one's own, and the words that take it."""
    folder.mkdir(exist_ok=True)
    for split in SPLITS:
        pairs = [grammar.sentence(SPLITS.index(split), number + i) for i in range(30)]
        for side, language in enumerate(("de", "en")):
            text = "".join(pair[side] + "\n" for pair in pairs).encode()
            path = folder / f"{split}.{language}"
            path.unlink(missing_ok=True)
            if packed:
                path.with_name(path.name + ".gz").write_bytes(gzip.compress(text))
            else:
                path.write_bytes(text)
    languages = ["dataset.source=de", "dataset.target=en"]
    return ["dataset=parallel", "model=transformer_small", f"dataset.root={folder}", *languages]


def test_text_of_ones_own_is_known_by_its_lines(tmp_path: Path) -> None:
    config = compose(write(tmp_path / "one"))
    one = run_id(config)
    assert run_id(compose(write(tmp_path / "elsewhere"))) == one
    assert run_id(compose(write(tmp_path / "packed", packed=True))) == one
    assert run_id(compose(write(tmp_path / "other", number=1))) != one
    back = [*write(tmp_path / "one")[:-2], "dataset.source=en", "dataset.target=de"]
    assert run_id(compose(back)) != one
    recorded = json.loads(json.dumps(science(config)))
    assert run_id(*config_of(recorded, "a line of the ledger")) == one, "the files need not be there"


def test_settings_of_text_are_part_of_the_id_and_of_images_ids_they_are_none() -> None:
    one = run_id(compose(TEXT))
    for word in ("decoding.beam=4", "decoding.length_penalty=0.6", "dataset.text.merges=200",
                 "dataset.text.joint=false",
                 "model.ffn=128", "schedule.warmup_steps=10"):  # fmt: skip
        assert run_id(compose([*TEXT, word])) != one, word
    assert run_id(compose([*TEXT, "loop.eval_batch=9", "dataset.root=elsewhere"])) == one
    assert not {"decoding", "text", "source"} & {*science(compose([])), *science(compose([])).get("dataset", {})}


def test_a_corpus_may_be_cut_to_its_first_pairs() -> None:
    words = [*TEXT, "dataset.train_images=50", "budget.test_images=20", "decoding.beam=2", "decoding.limit_factor=0.5"]
    task = task_of(compose(words), torch.device("cpu"))
    assert isinstance(task, Translation)
    assert (task.train.size, task.facts["train"], task.facts["evaluated_pairs"]) == (50, 50, 20)
    assert sum(len(batch.ids) for batch in task.test.batches(200)) == 20
    assert (task.how.beam, task.how.a, task.how.b) == (2, 0.5, 10)
    held = task_of(compose([*words, "dataset.evaluate_on=validation"]), torch.device("cpu"))
    assert held.facts["evaluated"] == "valid"


def test_what_a_plan_says_of_a_transformer_is_what_it_has() -> None:
    for words in (["dataset=iwslt14", "model=transformer"], TEXT):
        config = compose(words)
        name = config.dataset.name.value
        with torch.device("meta"):
            net = Transformer(shape_of(config.model), *DICTIONARIES[name])
        found = model_cost(config)
        assert found is not None
        assert found.parameters == count_parameters(net)
        weights = sum(p.numel() for n, p in net.named_parameters() if p.ndim == 2 and n != "source.weight")
        assert weights < found.macs < 1.2 * weights, "a product a weight, and the attention's own"
    assert model_cost(compose(["dataset=iwslt14", "model=transformer"])).parameters == 39_469_056  # type: ignore[union-attr]


def test_what_a_plan_takes_for_the_size_of_the_grammar_is_its_size() -> None:
    task = task_of(compose(TEXT), torch.device("cpu"))
    assert isinstance(task, Translation)
    assert task.facts["dictionaries"] == list(DICTIONARIES["grammar"])
    assert task.train.size == PAIRS["grammar"]
    longer = torch.maximum(*(torch.tensor(side.lengths) for side in (task.train.pairs.source, task.train.pairs.target)))
    assert int(longer.sum()) == pytest.approx(TOKENS["grammar"], rel=0.05), "which is with padding"
    assert train_examples(compose([*TEXT, "dataset.train_images=3000"])) == TOKENS["grammar"] // 2


@pytest.mark.slow
def test_the_grammar_is_learnt(cli: Cli, tmp_path: Path) -> None:
    """About 45 s: a third of the recipe, which reaches 90 in five epochs of all pairs."""
    words = ["schedule.epochs=3", "method=plain", "dataset.test_images=60", "track=none", "runtime.threads=1"]
    done = cli("+experiment=recipe/grammar", *words, "runtime.precision=fp32", timeout=500)
    assert done.returncode == 0, done.stderr
    (run,) = stored_runs(tmp_path / "results")
    epochs = [record for record in read(run.path) if record["kind"] == "epoch"]
    assert epochs[-1]["test_bleu"] > 75, [record["test_bleu"] for record in epochs]
    assert epochs[-1]["test_bleu"] > epochs[0]["test_bleu"] + 40
