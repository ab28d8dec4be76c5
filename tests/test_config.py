"""The configuration as an interface: what it says to a user's mistake, and how fast."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest
from commands import Cli, hydras
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from sam_repro import CONFIGS
from sam_repro.config.compose import compose, keys
from sam_repro.config.help import NOT_GROUPS
from sam_repro.errors import UserError

MISTAKES = {
    "sed=3": ["sed", "seed"],
    "method.rhoo=1": ["method.rhoo", "method.rho"],
    "model=resnt8": ["model=resnt8", "resnet8"],
    "mdel=resnet8": ["mdel", "model"],
    "experiment=asam_cifar100_wrn": ["+experiment=NAME"],
    "+experiment=asam_cifar100_wnr": ["asam_cifar100_wnr", "asam_cifar100_wrn"],
    "runtime.precision=fp17": ["runtime.precision", "fp16"],
    "base_optimizer.lr=abc": ["base_optimizer.lr", "abc"],
    "seed=x": ["seed", "x"],
    "method.rho=-1": ["method.rho", "negative"],
    "method.rho=nan": ["method.rho", "finite"],
    "runtime.ranks=300": ["runtime.ranks", "loop.batch_size"],
    "runtime.ranks=3": ["loop.batch_size", "runtime.ranks"],
    "method.m=48": ["method.m", "divide"],
    "dataset.label_noise.rate=1.5": ["dataset.label_noise.rate", "between"],
    "dataset.std=[0.1,0.1]": ["dataset.std", "three"],
    "method=[sam": ["sam"],
    "method=asam,sam": ["--multirun"],
    "on_divergence=go": ["on_divergence", "stop"],
    "+method.rhoo=0.1": ["method.rhoo", "method.rho"],
    "++loop.bach_size=3": ["loop.bach_size", "loop.batch_size"],
    "+dataset.label_noise.rat=0.4": ["dataset.label_noise.rat", "dataset.label_noise.rate"],
    "+foo=1": ["foo: there is no such key"],
    "+foo.bar=1": ["foo: there is no such key"],
}


def test_a_mistake_is_one_line_with_the_key_and_the_fix() -> None:
    for mistake, expected in MISTAKES.items():
        with pytest.raises(UserError) as caught:
            compose([mistake])
        message = str(caught.value)
        assert "\n" not in message, message
        for part in expected:
            assert part in message, (mistake, message)


def test_impossible_combinations_are_refused() -> None:
    for overrides, key in {
        ("runtime.precision=fp16", "runtime.loss_scaler=false"): "runtime.loss_scaler",
        ("method=plain", "method.rho=0.1"): "method.rho",
        ("method=sam", "method.descent=gsam", "method.fraction=0.5"): "method.fraction",
        ("base_optimizer.momentum=0", "base_optimizer.nesterov=true"): "base_optimizer.nesterov",
        ("method.m=64", "runtime.ranks=4"): "runtime.ranks",
        ("method=sam_full", "method.m=32"): "method.m",
    }.items():
        with pytest.raises(UserError, match=re.escape(key)):
            compose(overrides)


def test_a_mistake_exits_with_2_and_writes_nothing(cli: Cli, tmp_path: Path) -> None:
    done = cli("method.rhoo=1")
    assert done.returncode == 2
    assert done.stdout == ""
    assert done.stderr.count("\n") == 1
    assert "Traceback" not in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_typo_in_an_experiment_file_names_key_and_file(tmp_path: Path) -> None:
    import shutil

    configs = tmp_path / "configs"
    shutil.copytree(CONFIGS, configs)
    (configs / "experiment" / "mine.yaml").write_text("# @package _global_\nschedule:\n  epochz: 3\n")
    code = (
        "import sam_repro, pathlib; sam_repro.CONFIGS = pathlib.Path('configs').resolve()\n"
        "import sys; from sam_repro.__main__ import main; sys.exit(main())"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, "+experiment=mine"], cwd=tmp_path, capture_output=True, text=True
    )
    assert done.returncode == 2, done.stderr
    assert "schedule.epochz" in done.stderr
    assert "schedule.epochs" in done.stderr
    assert "Traceback" not in done.stderr


QUICK = (["--help"], ["--cfg", "job"], ["method.rhoo=1"])


def test_help_config_and_errors_start_without_torch(tmp_path: Path) -> None:
    for arguments in QUICK:
        trace = subprocess.run(
            [sys.executable, "-X", "importtime", "-m", "sam_repro", *arguments],
            cwd=tmp_path,
            capture_output=True,
            text=True,
        )
        for heavy in ("torch", "torchvision", "timm", "wandb", "matplotlib", "numpy", "scipy"):
            assert not re.search(rf"\| +{heavy}$", trace.stderr, re.M), f"{arguments} imports {heavy}"


@pytest.mark.timing
def test_help_config_and_errors_start_fast() -> None:
    assert hydras("-m", "sam_repro", "--help") <= 1
    assert hydras("-m", "sam_repro", "--cfg", "job") <= 3.3
    assert hydras("-m", "sam_repro", "method.rhoo=1") <= 5


# What an option leaves to its user: a name, images that are worth cropping, or how many classes an absent folder has.
NEEDS = {
    "model/timm": ["model.name=convnext_tiny"],
    "model/own": ["model.name=collections:OrderedDict"],
    "augment": ["dataset=imagenet"],
    "dataset/folder": ["dataset.classes=2"],
    "profile/official": ["method=asam"],
    "dataset/own": ["dataset.reader=collections:OrderedDict"],
    "dataset/grammar": ["model=transformer_small"],
    "dataset/iwslt14": ["model=transformer"],
    "dataset/parallel": ["model=transformer", "dataset.source=de", "dataset.target=en"],
    "model/transformer": ["dataset=iwslt14"],
    "model/transformer_small": ["dataset=grammar"],
}


@pytest.mark.slow
def test_every_option_composes_alone() -> None:
    for group in sorted(d.name for d in CONFIGS.iterdir() if d.is_dir() and d.name not in NOT_GROUPS):
        for file in sorted((CONFIGS / group).rglob("*.yaml")):
            option = str(file.relative_to(CONFIGS / group).with_suffix(""))
            plus = "+" if group == "experiment" else ""
            try:
                compose([f"{plus}{group}={option}", *NEEDS.get(f"{group}/{option}", NEEDS.get(group, []))])
            except UserError as error:
                pytest.fail(f"{plus}{group}={option}: {error}")


KEYS = keys()
VALUES = st.one_of(
    st.sampled_from(
        ["", "null", "true", "[]", "{}", "[1", "-1", "1e400", "nan", "fp16", "cuda", "${seed}", "'", "a,b", "a=b", "\\"]
    ),
    st.integers().map(str),
    st.floats(allow_nan=True).map(repr),
    st.text(alphabet=st.characters(min_codepoint=32, max_codepoint=0x2FF), max_size=8),
)
BROKEN_KEYS = st.one_of(
    st.sampled_from(KEYS),
    st.builds(lambda k, i: k[:i] + k[i + 1 :], st.sampled_from(KEYS), st.integers(0, 30)),
    st.builds(lambda k, s: k + s, st.sampled_from(KEYS), st.sampled_from(["x", ".y", "@z", "[0]", "="])),
    st.sampled_from(
        [
            "model",
            "method",
            "dataset",
            "experiment",
            "hydra.run.dir",
            "hydra/launcher",
            "+experiment",
            "~seed",
            "++a",
            "",
            "-m",
        ]
    ),
)


@pytest.mark.slow
@settings(max_examples=500, deadline=None, derandomize=True, suppress_health_check=list(HealthCheck))
@given(st.lists(st.tuples(BROKEN_KEYS, VALUES), min_size=1, max_size=3))
def test_no_broken_config_gives_a_traceback(pairs: list[tuple[str, str]]) -> None:
    message = "fine"
    try:
        compose([f"{key}={value}" for key, value in pairs])
    except UserError as error:
        message = str(error)
    assert message.strip()
    assert "\n" not in message
