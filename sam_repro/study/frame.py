"""How a study is run: its settings, its runs, its cost before it starts; then numbers, picture and claims.

A module of this package that measures has

    Settings            a dataclass: what `settings:` of its files and the command line may say
    RUNS                whether it looks at trained runs: NONE, at their RECORDS alone, or at their WEIGHTS
    measure(job)        -> Measured

and may have `check(settings)`, which raises a UserError. It measures in parts, `job.parts.get(name, function)`, so that
it goes on where it was killed.
"""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import yaml
from omegaconf import OmegaConf
from omegaconf.errors import OmegaConfBaseException

from sam_repro.config.budget import epochs
from sam_repro.config.reads import is_text
from sam_repro.errors import UserError, hint
from sam_repro.files.digest import file_sha256
from sam_repro.report import studies
from sam_repro.report.figures.panel import Panel
from sam_repro.report.studies import Judged, Stored
from sam_repro.runs.run import Run
from sam_repro.study.parts import Parts
from sam_repro.tables import spec
from sam_repro.tables.plan import PAPER
from sam_repro.tables.studies import Part, Study
from sam_repro.tables.table import Table
from sam_repro.words import Words

if TYPE_CHECKING:
    from sam_repro.engine.ranks import Ranks

S = TypeVar("S")
NONE, RECORDS, WEIGHTS = "", "records", "weights"
NAMED = "named"  # in place of a budget, of runs that the user named
MOST_NETS = 3  # that a caption describes
OF_THE_COMMAND = ("run", "runs", "budget", "results_dir", "ranks")


@dataclass(frozen=True)
class Subject:
    """A trained run that is looked at."""

    id: str
    label: str
    results: Path
    row: str = ""  # of the table whose cell it is
    column: str = ""

    @property
    def unit(self) -> str:
        """What it was trained on."""
        return "pairs" if is_text(Run.at(self.results, self.id).stored()) else "images"

    @property
    def trained(self) -> str:
        """What was trained, on what, for how long."""
        config = Run.at(self.results, self.id).stored()
        net = config.model.name or f"{config.model.architecture.value} of depth {config.model.depth}"
        return f"{net} on {config.dataset.name.value}, {epochs(config)} epochs"


@dataclass(frozen=True)
class Job(Generic[S]):
    settings: S
    runs: Sequence[Subject]
    parts: Parts
    table: Table | None = None  # whose cells the runs are
    ranks: Ranks | None = None  # that share what is computed; None: one process


@dataclass(frozen=True)
class Measured:
    numbers: Mapping[str, Any]
    panels: Sequence[Panel]
    claims: Mapping[str, Judged]  # of the study's file, by name
    caption: str  # n and settings; the budget is said in front of it
    runs: Sequence[Mapping[str, Any]] = field(default=())  # what is to be known of each run


@dataclass(frozen=True)
class Asked:
    """What is to be measured, its words checked. Ranks are sent it."""

    study: Study
    part: Part  # whose settings and time were asked for
    budget: str
    settings: Any
    subjects: Sequence[Subject]
    table: Table | None  # whose cells they are
    results: Path


def run(study: Study, given: Words) -> Stored:
    """Measure, and write numbers and picture."""
    return measured(asked(study, given))


def asked(study: Study, given: Words) -> Asked:
    """Finds the mistakes in the words before torch is imported or a process started."""
    words = dict(given.settings)
    part, module = study.part(words.get("budget", PAPER)), import_module(f"sam_repro.study.{study.module}")
    results = Path(words.get("results_dir", "results"))
    own = {key: text for key, text in words.items() if key not in OF_THE_COMMAND}
    settings = settings_of(module.Settings, part.settings, own)
    if check := getattr(module, "check", None):
        check(settings)
    subjects = _subjects(study, part, words, results, wants=module.RUNS)
    budget, table = part.budget, spec.load(part.runs.table).at(part.runs.budget) if part.runs else None
    if {"run", "runs"} & words.keys():  # a figure of the user's own, which does not replace the paper's
        budget, table = NAMED, None
    return Asked(study, part, budget, settings, subjects, table, results)


def measured(asked: Asked, ranks: Ranks | None = None) -> Stored:
    """The same on each rank; the main one writes."""
    budget, subjects, results = asked.budget, asked.subjects, asked.results
    study = asked.study.of_named_runs() if budget == NAMED else asked.study
    module, main = import_module(f"sam_repro.study.{study.module}"), ranks is None or ranks.main
    said = dataclasses.asdict(asked.settings)
    what = {"settings": said, "runs": [s.id for s in subjects], "code": file_sha256(Path(str(module.__file__)))}
    parts = Parts(study.folder(results, budget), what, ranks=ranks)
    if main:
        at = f"at its own settings, {asked.part.budget} budget"
        print(f"{study.figure}: takes {asked.part.takes} {at}", file=sys.stderr, flush=True)
    found: Measured = module.measure(Job(asked.settings, subjects, parts, asked.table, ranks))
    if ranks is not None:
        found = dataclasses.replace(found, caption=f"{found.caption} Computed on {ranks.world} ranks.")
    looked_at = found.runs or [{"id": s.id, "label": s.label} for s in subjects]
    caption = f"{_made_of(budget, subjects)}; {found.caption}"
    stored = Stored(
        study.name, study.figure, budget, said, looked_at, caption, found.claims, found.panels, found.numbers
    )
    if main:
        for path in studies.write(study, stored, results):
            print(path, file=sys.stderr)
        parts.forget()
    return stored


def _made_of(budget: str, subjects: Sequence[Subject]) -> str:
    """Which runs these are. Of a paper's figure its title says it."""
    if budget == PAPER:
        return "Paper budget"
    nets = list(dict.fromkeys(one.trained for one in subjects))
    told = "; ".join(nets[:MOST_NETS]) + (f"; and {len(nets) - MOST_NETS} more" if len(nets) > MOST_NETS else "")
    return told if budget == NAMED else ": ".join(["In miniature", *([told] if told else [])])


def settings_of(kind: type[S], stated: Mapping[str, Any], words: Mapping[str, str]) -> S:
    """The dataclass's defaults, then the file's, then the command line's."""
    known = [one.name for one in dataclasses.fields(kind)]  # type: ignore[arg-type]
    node = OmegaConf.structured(kind)
    for key, value in [*stated.items(), *((key, _value(key, text)) for key, text in words.items())]:
        if key not in known:
            raise UserError(f"no setting {key!r}, {hint(key, known)}")
        try:
            node[key] = value
        except OmegaConfBaseException as error:
            raise UserError(f"{key}={value}: {str(error).splitlines()[0]}") from error
    typed = OmegaConf.to_object(node)
    assert isinstance(typed, kind)
    return typed


def _value(key: str, text: str) -> Any:
    try:
        return OmegaConf.from_dotlist([f"value={text}"]).value
    except (OmegaConfBaseException, yaml.YAMLError) as error:
        raise UserError(f"{key}={text}: {str(error).splitlines()[0]}") from error


def _subjects(study: Study, part: Part, words: Mapping[str, str], results: Path, *, wants: str) -> list[Subject]:
    named = [words[key] for key in ("run", "runs") if key in words]
    if not wants:
        if named:
            raise UserError(f"run: study {study.name} looks at no trained run")
        return []
    from sam_repro.study import subjects

    if len(named) == 2:
        raise UserError("run and runs= exclude each other: give one of them")
    if named:
        return subjects.of_words([word.strip() for word in named[0].strip("[]").split(",")], results, wants)
    return subjects.of_cells(study, part, results, wants)


def printed(study: Study, stored: Stored, *, as_json: bool) -> str:
    if as_json:
        return json.dumps(stored.as_json(), ensure_ascii=False, allow_nan=False)
    if stored.budget == NAMED:
        study = study.of_named_runs(stored.claims)
    return "\n".join(
        [f"{study.title_at(stored.budget)} ({study.source})", stored.caption, *studies.claims(study, stored)]
    )
