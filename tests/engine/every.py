"""Every method that ships, by its generic file: those whose names carry no data set."""

from __future__ import annotations

from sam_repro import CONFIGS

DATA = ("_cifar100", "_imagenet", "_pyramidnet", "_transfer", "_demo", "_vit")
METHODS = sorted(f.stem for f in (CONFIGS / "method").glob("*.yaml") if not f.stem.endswith(DATA))
# What a method needs on the rig's batches of 16.
NEEDS = {"sam_larger": ["method.ascent_batch=32"]}


def of(method: str) -> list[str]:
    return [f"method={method}", *NEEDS.get(method, [])]
