"""What ranks ask of each other is read a step late, by all of them at the same step."""

from __future__ import annotations

import torch

from sam_repro.engine.requests import NOTHING, SAVE, STOP, Answer, Answers


def asked(value: float) -> Answer:
    return Answer(torch.tensor(value))


def test_an_answer_is_read_a_step_late_and_at_once_where_the_step_is_waited_for_anyway() -> None:
    answers = Answers()
    assert answers.after(asked(SAVE), now=False) == NOTHING
    assert answers.after(asked(NOTHING), now=False) == SAVE
    assert answers.after(asked(STOP), now=True) == STOP
    assert answers.after(asked(NOTHING), now=False) == NOTHING
    assert answers.after(asked(SAVE), now=False) == NOTHING
    assert answers.after(asked(STOP + SAVE), now=True) == STOP + SAVE


def test_one_process_alone_has_nothing_to_wait_for() -> None:
    answers = Answers()
    assert answers.after(STOP, now=False) == STOP
    assert answers.after(NOTHING, now=False) == NOTHING


def test_a_checkpoint_answers_what_was_asked_before_it() -> None:
    """The clock of the main rank asks in every step until something is saved, and again until that is read."""
    answers = Answers()
    answers.after(asked(SAVE), now=False)
    assert answers.after(asked(SAVE), now=False) == SAVE
    answers.forget()
    assert answers.after(asked(NOTHING), now=False) == NOTHING
