# Every target says what it does: make help
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WANTED := --editable '.[dev]' --constraint constraints.txt
PYTEST := OMP_NUM_THREADS=1 $(BIN)/python -m pytest

.DEFAULT_GOAL := help
.PHONY: help install demo test test-slow proofs gpu-check smoke lint type format tables reproduce-row bench clean

help:  ## List the targets.
	@grep -E '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 14

install: $(VENV)/installed  ## Create .venv and install the project with its tools, versions as in constraints.txt.

$(VENV)/installed: pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "sam_repro needs Python 3.11 or newer")'
	$(PYTHON) -m venv $(VENV)
	# uv installs in a quarter of the time; where it cannot reach an index that pip is set up for, pip does it.
	{ $(BIN)/pip install --quiet uv --constraint constraints.txt && VIRTUAL_ENV=$(VENV) $(BIN)/uv pip install --quiet $(WANTED); } || $(BIN)/pip install --quiet $(WANTED)
	touch $@

demo: install  ## Train SGD, SAM and ASAM on the embedded data set: a table and a picture. DEMO= takes overrides.
	$(BIN)/python scripts/demo.py $(DEMO)

test: install  ## The quick test suite (four minutes on two cores).
	$(PYTEST) -n 2 --dist worksteal

test-slow: install  ## The rest: every method killed and resumed, every model, every experiment, a browser, Slurm, times.
	$(PYTEST) -n 2 --dist worksteal -m "slow and not slurm and not timing"
	$(PYTEST) -m "slurm or timing"

proofs: install  ## What is too long for every change: runs stopped at random moments, ratios on a quiet machine.
	$(PYTEST) -m proof

gpu-check: install  ## The first hour on a GPU: precisions, ranks, resume, bits, compile, memory; a table to paste into a report.
	$(BIN)/python scripts/gpu_check.py

smoke: install  ## Run every experiment at smoke budget on stand-in data.
	$(PYTEST) -n 2 --dist worksteal -m slow tests/test_smoke.py

lint: install  ## Check style (ruff).
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

type: install  ## Check types (mypy --strict: the package, the scripts, what tests share).
	$(BIN)/mypy

format: install  ## Mend style.
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

tables: install  ## Regenerate everything under results/ from the ledger.
	$(BIN)/sam-repro report render

bench: install  ## Measure update, step, input, start, training and studies against their bars.
	for what in update step input start train study; do $(BIN)/sam-repro bench $$what || exit 1; done

reproduce-row: install  ## Train one row of a committed table again (about 5 minutes) and compare: the same bits, or the same draw.
	$(BIN)/python scripts/reproduce_row.py

clean:  ## Remove the environment and caches; results stay.
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis dist
