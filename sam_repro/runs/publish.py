"""A finished run as a folder to give away: weights, configuration, metrics, and a model card that says what they are.

The card's head is the model index that model registries read. Nothing in the folder says where the run was trained: no
path, host or account. `sam-repro evaluate run=FOLDER` and `sam_repro.open_run(FOLDER)` take it as they take a run.
"""

from __future__ import annotations

import shlex
import shutil
from dataclasses import replace
from pathlib import Path
from typing import Any

import yaml
from omegaconf import OmegaConf

from sam_repro.config.identity import as_values
from sam_repro.config.reads import is_text
from sam_repro.config.schema import Config
from sam_repro.data.declared import Split
from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.record.folder import RunFolder
from sam_repro.runs import ledger
from sam_repro.runs.digest import digest
from sam_repro.runs.entry import Entry
from sam_repro.runs.faults import usable
from sam_repro.runs.run import Run
from sam_repro.tasks.described import described

CARD = "README.md"


def publish(run: Run, out: Path) -> Path:
    """The folder, which must be new or empty."""
    if not run.done.exists():
        raise UserError(f"run {run.id} is not finished: start it again to let it go on")
    entry = next((e for e in usable(ledger.read(run.results)[0])[0] if e["run_id"] == run.id), None)
    if entry is None:
        raise UserError(f"run {run.id} has no line in the ledger: start it once more, that writes it")
    weights = digest(run.weights)
    if (recorded := entry.get("weights_sha256", weights)) != weights or weights is None:
        raise UserError(f"{run.weights} is not what the run ended with ({recorded}): train it again with force=true")
    config = run.stored()
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise UserError(f"out={out} is there already: name a new folder")
    try:
        out.mkdir(parents=True, exist_ok=True)
        target = RunFolder(out)
        shutil.copyfile(run.weights, target.weights)
        shutil.copyfile(run.metrics, target.metrics)
        shutil.copyfile(run.summary, target.summary)
        write_atomic(target.config, OmegaConf.to_yaml(OmegaConf.create(as_values(nowhere(config)))))
        write_atomic(out / CARD, card(entry, config, weights))
    except OSError as error:
        raise UserError(f"can't write out={out} ({error.strerror}): choose another folder") from error
    return out


def nowhere(config: Config) -> Config:
    """Without what says where it was trained."""
    bare = Config()
    model = config.model
    if model.weights is not None:
        model = replace(model, weights=Path(model.weights).name)
    return replace(
        config,
        model=model,
        dataset=replace(config.dataset, root=bare.dataset.root),
        results_dir=bare.results_dir,
        track=bare.track,
    )


def card(entry: Entry, config: Config, weights: str) -> str:
    """Markdown with its head in YAML."""
    data, method = config.dataset.name.value, config.method.name
    kind = "image-classification"
    if is_text(config):
        kind = "translation"
    elif config.task is not None:
        data = kind = config.task.partition("@")[0]
    model = config.model.name or f"{config.model.architecture.value} {config.model.depth or ''}".strip()
    again = shlex.join(["sam-repro", *entry.get("overrides", [])])
    if config.task is None:
        again += f"\nsam-repro evaluate run=FOLDER {'translate=FILE' if is_text(config) else f'on={data}'}"
    else:
        model = data
    name = f"{method}-{data.replace(':', '-')}-{entry['run_id']}"
    dataset = {"name": data, "type": data, "split": _split(config)}
    result = {"task": {"type": kind}, "dataset": dataset, "metrics": _metrics(entry)}
    head = {
        "library_name": "sam_repro",
        "tags": [kind, "sharpness-aware-minimization", method],
        "datasets": [data],
        "model-index": [{"name": name, "results": [result]}],
    }
    git = entry.get("git") or {}
    hardware = entry["hardware"].get("gpus") or [entry["hardware"].get("cpu") or "unknown processor"]
    facts = {
        "run": entry["run_id"],
        "model": model,
        "method": method,
        "budget": entry["budget"],
        "status": entry["status"],
        "forward-backward passes": f"{entry['passes']:.0f}",
        "hours": f"{entry['seconds'] / 3600:.2f}",
        "hardware": ", ".join(sorted(set(map(str, hardware)))),
        "torch": str(entry.get("packages", {}).get("torch") or "unknown"),
        "code": f"{git.get('sha') or 'unknown'}{' (changed)' if git.get('dirty') else ''}",
        "SHA-256 of the weights": weights,
    }
    lines = "".join(f"| {key} | {_cell(value)} |\n" for key, value in facts.items())
    return (
        f"---\n{yaml.safe_dump(head, sort_keys=False, allow_unicode=True)}---\n\n# {name}\n\n"
        f"{model} trained with {method} on {data}. Every number is the run's own.\n\n"
        f"| | |\n| --- | --- |\n{lines}\n"
        f"Train it again, judge it, or open it, with this folder in the place of FOLDER:\n\n"
        f"```\n{again}\n"
        f"python -c \"import sam_repro; model = sam_repro.open_run('FOLDER').model()\"\n```\n"
    )


def _split(config: Config) -> str:
    """Of the metrics; those of the other split, where a run has both, say so in their names."""
    return Split.validation.value if config.dataset.evaluate_on is Split.validation else Split.test.value


def _metrics(entry: Entry) -> list[dict[str, Any]]:
    """Last, best and picked epoch of every metric; one of an evaluation, which has no epochs, once."""
    words = {metric.name: metric.words for metric in described(entry)}
    found = list[dict[str, Any]]()
    for name, values in entry["metrics"].items():
        label = words.get(name, name.replace("_", " "))
        kind = "accuracy" if name == "test_accuracy" else name
        if values["last"] is not None:
            found.append({"type": kind, "name": f"{label}, last epoch", "value": values["last"]})
        if values["best"] is not None and values.get("best_epoch") is not None:
            epoch = f"{label}, best epoch ({values['best_epoch']}), chosen on what it is measured on"
            found.append({"type": kind, "name": epoch, "value": values["best"]})
        if (value := values.get("picked")) is not None:
            epoch = f"{label}, epoch picked on the validation split ({values.get('picked_epoch')})"
            found.append({"type": kind, "name": epoch, "value": value})
    return found


def _cell(value: str) -> str:
    return " ".join(value.split()).replace("|", "\\|")
