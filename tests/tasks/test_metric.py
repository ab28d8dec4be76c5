"""Results are read by their descriptions, whatever a run learnt."""

import math
from dataclasses import asdict

import pytest

from sam_repro.runs.outcome import in_words
from sam_repro.tasks.classification.declared import of_images
from sam_repro.tasks.described import described, recorded
from sam_repro.tasks.metric import Metric

BLEU = Metric("test_bleu", result=True, chance=0.0)
LOSS = Metric("test_loss", higher_is_better=False, chance=9.0)


def test_the_first_of_equal_values_is_the_best_and_not_a_number_never() -> None:
    records = [{"epoch": e, "test_loss": v} for e, v in enumerate([math.nan, 3.0, 2.0, 2.0, None], start=1)]
    best = LOSS.best(records)
    assert best is not None
    assert best["epoch"] == 3
    assert BLEU.best(records) is None


def test_chance_is_on_the_side_that_is_worse() -> None:
    accuracy = of_images(100)[0]
    assert accuracy.at_chance(1.5, 1.5)
    assert not accuracy.at_chance(1.51, 1.5)
    of_two = of_images(2)[0]
    assert of_two.at_chance(55.0, 1.5)
    assert not of_two.at_chance(56.0, 1.5), "75 % of two classes is no chance"
    assert LOSS.at_chance(9.0, 1.5)
    assert not LOSS.at_chance(8.9, 1.5)
    assert not Metric("test_perplexity").at_chance(0.0, 1.5)


def test_a_run_that_is_no_classification_is_told_in_its_own_words() -> None:
    summary = {
        "status": "done", "last": {"test_bleu": 34.1}, "best": {"test_bleu": 34.567, "epoch": 9},
        "described": recorded([BLEU, LOSS]),
    }  # fmt: skip
    assert in_words(summary) == "test bleu 34.10 at the last epoch, 34.57 at the best (epoch 9)"


def test_what_was_recorded_before_there_were_descriptions_is_of_images() -> None:
    assert described({}) == of_images(10)
    assert described({"config": {"dataset": {"classes": 100}}})[0].chance == 1.0
    assert described({"described": recorded([LOSS, BLEU])}) == (LOSS, BLEU)


@pytest.mark.parametrize(
    "record",
    [
        {"described": []}, {"described": 3}, {"described": [3]}, {"described": [{"name": 3}]}, {"described": None},
        {"described": [asdict(BLEU) | {"_target_": "os.system"}]}, {"config": {"dataset": {"classes": 0}}},
        {"config": {"dataset": []}}, {"described": [asdict(BLEU) | {"chance": "high"}]},
    ],
)  # fmt: skip
def test_an_odd_description_is_a_value_error(record: dict) -> None:
    with pytest.raises(ValueError, match="its metrics are not described"):
        described(record)
