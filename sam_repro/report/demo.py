"""A few runs side by side: a small table and a picture of their learning curves."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sam_repro.errors import UserError
from sam_repro.files.atomic import write_atomic
from sam_repro.record import metrics
from sam_repro.report import text
from sam_repro.report.render_md import grid
from sam_repro.runs.compare import differing, of_folder
from sam_repro.runs.run import Run
from sam_repro.tables.status import read_json
from sam_repro.tasks.described import described
from sam_repro.tasks.metric import Metric

# Blue, orange, green, ...: distinguishable with any colour vision, and each with a dash of its own for print.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#56B4E9", "#E69F00", "#666666")
DASHES = ((None, None), (6, 2), (2, 1.5), (8, 2, 2, 2), (4, 1), (1, 1), (10, 3))
NAMES = {
    "plain": "SGD",
    "sam": "SAM",
    "asam": "ASAM",
    "rsam": "R-SAM",
    "gsam": "GSAM",
    "rgsam": "R-GSAM",
    "fsam": "F-SAM",
}


@dataclass(frozen=True)
class Shown:
    folder: Path
    label: str
    summary: dict[str, Any]
    epochs: list[dict[str, Any]]

    @property
    def metric(self) -> Metric:
        return described(self.summary)[0]


def write(folders: Sequence[Path], out: Path) -> tuple[str, list[Path]]:
    """demo.md, curves.png and curves.svg in `out`. Returns the table and the three paths."""
    read = [_read(folder) for folder in folders]
    try:
        shown = _labelled(read)
        table = _table(shown)
    except (LookupError, TypeError, ValueError, AttributeError, ArithmeticError) as error:
        where = ", ".join(str(folder) for folder in folders)
        raise UserError(f"{where}: a summary or a configuration was altered ({type(error).__name__})") from error
    paths = [out / "demo.md", out / "curves.png", out / "curves.svg"]
    try:
        out.mkdir(parents=True, exist_ok=True)
        write_atomic(paths[0], f"{table}\n![learning curves](curves.svg)\n")
        _draw(shown, paths[1], paths[2])
    except OSError as error:
        raise UserError(f"can't write {out}: {error.strerror}; choose another --out") from error
    return table, paths


def _read(folder: Path) -> tuple[Path, dict[str, Any], dict[str, Any], list[dict[str, Any]]]:
    run = Run(folder)
    summary = read_json(run.summary)
    if not summary:
        raise UserError(f"{folder} holds no finished run: its {run.summary.name} is not there or can't be read")
    return folder, run.read_config(), summary, [r for r in metrics.read(folder) if r["kind"] == "epoch"]


def _labelled(read: list[tuple[Path, dict[str, Any], dict[str, Any], list[dict[str, Any]]]]) -> list[Shown]:
    """Runs are called by their method, and by what else tells them apart: optimizer, seed, any other field."""
    names = [_method(config) for _, config, _, _ in read]
    runs = [of_folder(Run(folder)) for folder, _, _, _ in read]
    seeds = ["seed"] if len({run.value("seed") for run in runs}) > 1 else []
    for field in sorted([*seeds, *differing(runs)], key=lambda field: field != "base_optimizer.name"):
        twice = {name for name in names if names.count(name) > 1}
        words = "" if field == "base_optimizer.name" else f"{field.rpartition('.')[2]} "
        names = [
            f"{name}, {words}{run.value(field)}" if name in twice else name
            for name, run in zip(names, runs, strict=True)
        ]
    return [
        Shown(folder, name, summary, epochs) for name, (folder, _, summary, epochs) in zip(names, read, strict=True)
    ]


def _method(config: dict[str, Any]) -> str:
    method = config.get("method", {})
    name = str(method.get("name", "plain"))
    if name == "plain" and config.get("base_optimizer", {}).get("name", "sgd") != "sgd":
        return str(config["base_optimizer"]["name"])
    label = NAMES.get(name, name)
    return f"{label} (ρ = {method['rho']:g})" if method.get("rho") else label


def _table(shown: Sequence[Shown]) -> str:
    metric = shown[0].metric
    unit = f", {metric.unit}" if metric.unit else ""
    head = ("method", f"last epoch{unit}", f"best epoch{unit}", "at epoch", "seconds", "passes", "run")
    rows = []
    for run in shown:
        last, best = run.summary.get("last") or {}, run.summary.get("best") or {}
        note = "" if run.summary.get("status") == "done" else f" ({run.summary.get('status')})"
        rows.append(
            [
                run.label + note,
                _number(last.get(metric.name)),
                _number(best.get(metric.name)),
                str(best.get("epoch", text.NONE)),
                f"{run.summary.get('wall_seconds', 0):.0f}",
                f"{run.summary.get('passes', 0):,.0f}",
                run.folder.name,
            ]
        )
    return grid(head, rows) + "\n"


def _number(value: float | None) -> str:
    return text.NONE if value is None else f"{value:.2f}"


def _draw(shown: Sequence[Shown], png: Path, svg: Path) -> None:
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    # The same runs give the same bytes: ids from a fixed salt, no date.
    style: Any = {"svg.hashsalt": "sam_repro", "svg.fonttype": "none", "font.family": "sans-serif", "font.size": 10}
    with pyplot.rc_context(style):
        figure, axes = pyplot.subplots(1, 2, figsize=(9.5, 3.9), layout="constrained")
        metric = shown[0].metric
        _panel(axes[0], shown, metric.name, f"{metric.title} (ring: the best epoch)", metric)
        _panel(axes[1], shown, "train_loss", "training loss")
        axes[0].legend(frameon=False, loc="lower right" if _rising(shown) else "best")
        for path in (png, svg):
            figure.savefig(path, dpi=160, metadata={"Date": None} if path.suffix == ".svg" else {"Software": None})
        pyplot.close(figure)


def _panel(axis: Any, shown: Sequence[Shown], key: str, title: str, metric: Metric | None = None) -> None:
    """metric: the one of whose values the best is marked."""
    for number, run in enumerate(shown):
        points = [(epoch["epoch"], epoch[key]) for epoch in run.epochs if epoch.get(key) is not None]
        if not points:
            continue
        xs, ys = zip(*points, strict=True)
        (line,) = axis.plot(
            xs, ys, color=COLOURS[number % len(COLOURS)], linewidth=1.8, label=run.label, marker="o", markersize=3
        )
        dash = DASHES[number % len(DASHES)]
        if dash[0] is not None:
            line.set_dashes(dash)
        best = metric.best(run.epochs) if metric else None
        if best:
            place = best["epoch"], best[key]
            axis.plot(
                *place, marker="o", markersize=7, color=line.get_color(), markerfacecolor="white", markeredgewidth=1.8
            )
    axis.set_title(title, loc="left", fontsize=10.5)
    axis.set_xlabel("epoch")
    axis.xaxis.get_major_locator().set_params(integer=True)
    axis.grid(axis="y", color="#dddddd", linewidth=0.7)
    axis.spines[["top", "right"]].set_visible(False)


def _rising(shown: Sequence[Shown]) -> bool:
    """Whether every curve ends near its best at the top, so that the lower right corner is free."""
    metric = shown[0].metric
    pairs = [(run.summary.get("last"), run.summary.get("best")) for run in shown]
    return metric.higher_is_better and all(
        last and best and last[metric.name] > 0.85 * best[metric.name] for last, best in pairs
    )
