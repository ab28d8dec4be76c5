"""Overrides as users type them: texts arrive as they are, mistakes are ours to tell, nothing is called."""

from __future__ import annotations

import io
import os
import random
from collections.abc import Iterator
from contextlib import redirect_stderr, redirect_stdout, suppress
from pathlib import Path

import pytest
from commands import within
from hydra.core.override_parser.overrides_parser import OverridesParser
from omegaconf import OmegaConf

from sam_repro import start
from sam_repro.config.compose import compose, keys
from sam_repro.config.compose_many import compose_all
from sam_repro.config.groups import groups
from sam_repro.config.overrides import quoted, readable
from sam_repro.errors import UserError

TEXTS = [
    "~/a", "a=b", "a b", "(a", "[a", "{a:1}", "a,b", "é/ü", "0.10", "2026.10", "1e3", "1_0", "true", "Null", "nan",
    "-1", "a\\b", "a\\", "it's", "a\\'b", "$", ":", ".5",
]  # fmt: skip


def test_a_text_is_the_text_that_was_typed() -> None:
    for text in TEXTS:
        assert compose([f"results_dir={text}"]).results_dir == text
    draw = random.Random(0)
    node = OmegaConf.create({})
    for _ in range(500):
        text = "".join(draw.choice("a1.'\"\\${}[](),=~é :/-_\t") for _ in range(draw.randint(1, 9)))
        OmegaConf.update(node, "k", OverridesParser.create().parse_override(f"k={quoted(text)}").value())
        assert str(node.k) == text


def test_many_at_once_read_texts_alike() -> None:
    wanted = [("dataset=cifar10", f"dataset.root={text}") for text in TEXTS[:12]]
    for overrides, config in compose_all(wanted).items():
        assert not isinstance(config, UserError)
        assert f"dataset.root={config.dataset.root}" == overrides[1]


def test_quotes_of_ones_own_and_null_stay() -> None:
    config = compose(["results_dir='a, b'", "track.entity=null", 'dataset.root="c"'])
    assert (config.results_dir, config.track.entity, config.dataset.root) == ("a, b", None, "c")


def test_a_whole_number_may_be_written_with_an_exponent() -> None:
    config = compose(["schedule.epochs=1e3", "budget.max_steps=2.5E+2", "seed=3e0", "base_optimizer.lr=1e-3"])
    assert (config.schedule.epochs, config.budget.max_steps, config.seed, config.base_optimizer.lr) == (
        1000,
        250,
        3,
        1e-3,
    )
    with pytest.raises(UserError, match=r"schedule\.epochs"):
        compose(["schedule.epochs=1.5e0"])
    assert readable(["seed=1e1,2e1", "loop.batch_size=choice(1e1,16)"], several=True) == [
        "seed=10,20", "loop.batch_size=choice(10,16)",
    ]  # fmt: skip


MISTAKES = {
    "seed": "write KEY=VALUE. Did you mean 'seed=VALUE'?",
    "metod": "Did you mean 'method'?",
    "method=[sam,asam]": "write one option, method=NAME. Did you mean 'asam'?",
    "~method": "nothing can be taken out",
    "~method.rho": "nothing can be taken out",
    "results_dir=a${b}": "results_dir: ${...} is filled in by a shell",
    "dataset.mean=${seed}": "dataset.mean: ${...} is filled in by a shell",
    "seed='${budget.seeds}'": "seed: ${...} is filled in by a shell",
    "results_dir=": "results_dir= needs a value",
    "seed=(": "seed: '(' can't be read as a value",
    "seed=é": "seed: 'é' can't be read as a value",
    "method=sam,asam": "method: several values are several runs, which --multirun (-m) starts",
    "+hydra.callbacks.x={_target_: os.system}": "calls code",
    "++hydra.callbacks.x._target_=os.system": "calls code",
    "hydra.job_logging.handlers.x.class=os.system": "calls code",
    "hydra.sweeper.sampler._target_=os.system": "calls code",
    "hydra.sweeper.custom_search_space=os.system": "calls code",
    "hydra.launcher._target_=os.system": "calls code",
    "hydra.searchpath=[pkg://os]": "calls code",
    "+model.x={_target_: os.system}": "calls no code",
    "hydra={callbacks: 1}": "calls code",
}


@pytest.mark.parametrize("word", MISTAKES)
def test_a_mistake_in_our_words(word: str) -> None:
    with pytest.raises(UserError) as told:
        compose([word])
    assert MISTAKES[word] in str(told.value)
    assert "\n" not in str(told.value)


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["--experimental-rerun=x.pickle"], "--experimental-rerun: there is no such flag"),
        (["--multirum"], "Did you mean '--multirun'?"),
        (["--cfg", "jb"], "--cfg jb: did you mean 'job'?"),
        (["--cfg"], "--cfg needs a value"),
    ],
)
def test_hydras_flags_are_known(words: list[str], says: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert start.main(words) == 2
    err = capsys.readouterr().err
    assert says in err
    assert err.count("\n") == 1


def test_what_no_run_takes_is_not_printed(capsys: pytest.CaptureFixture[str]) -> None:
    for word, says in (("profile=official", "profile="), ("base_optimizer.lr=0", "lr")):
        assert start.main(["method=sam", word, "--cfg", "job"]) == 2
        out, err = capsys.readouterr()
        assert says in err
        assert out == ""


def hostile(draw: random.Random) -> Iterator[list[str]]:
    """Command lines that no user means well with."""
    plus = ["", "", "", "+", "++", "~", "-", "--"]
    odd = [
        "hydra.callbacks.x", "hydra.job_logging", "hydra/launcher", "hydra.run.dir", "hydra.mode", "experiment", "a.b",
        "seed.x", "method.rho@x", "", "=", "é", "[0]", "method/rho", "hydra", "hydra.sweep.dir", "_target_",
    ]  # fmt: skip
    calls = [
        "{_target_: os.mkdir, path: CANARY}", "${oc.env:HOME}", "${hydra:x}", "!!python/object/apply:os.mkdir [CANARY]",
        "glob(*)", "choice(1,2)", "range(1,9)", "[[[[", "{{", "\\", "'", '"', "null", "???", "${", "${seed}", "1e999",
        "nan", "a,b", "[1,2]", "{a:1}", "(", "~", "%", "\n", "\t", "0x1f", "str(1)", "int(x)", "extend_list(1)", "",
        "9" * 5000, "[" * 300, "../../x", "é" * 40,
    ]  # fmt: skip
    while True:
        if draw.random() < 0.1:  # alone, so that no other word is what it is refused for
            yield [draw.choice(["", "+", "++"]) + draw.choice(odd) + "=" + draw.choice(calls[:4])]
        words = []
        for _ in range(draw.randint(1, 3)):
            key = draw.choice([draw.choice(keys()), draw.choice(groups()), draw.choice(odd)])
            value = draw.choice(calls) if draw.random() < 0.8 else "".join(chr(draw.randint(1, 700)) for _ in range(6))
            words.append(draw.choice(plus) + key + draw.choice(["=", "=", "=", "", "=="]) + value)
        yield words


@pytest.mark.slow
def test_hostile_overrides_are_one_line_or_a_configuration(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.argv", ["sam-repro"])
    source = hostile(random.Random(20))
    for _ in range(1200):
        words = [word.replace("CANARY", "canary") for word in next(source)]
        with within(20, words):
            out, err = io.StringIO(), io.StringIO()
            with redirect_stdout(out), redirect_stderr(err):
                code = start.main([*words, "--cfg", "job"])
            assert code in (0, 2), words
            assert err.getvalue().count("\n") == (code == 2), (words, err.getvalue())
            assert out.getvalue().strip() or code == 2, words
            assert code == 2 or not any("_target_" in word or "hydra.callbacks" in word for word in words), words
            with suppress(UserError):
                compose(words)
            assert os.listdir(tmp_path) == [], words
