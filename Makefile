# Everything sets itself up: Python 3.11 or later and make are all that is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCE ?= mnist
OUT ?= runs/quickstart
SRC := src/datalens
GUARANTEE := $(SRC)/privacy/*,$(SRC)/mechanisms/*,$(SRC)/noise/*,$(SRC)/compression/*,$(SRC)/teachers/partition*

.PHONY: help setup quickstart test test-slow coverage mutation-smoke mutants lint docs clean

help:  ## this list
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/'

setup: $(READY)  ## make the environment in .venv

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "error: $(PYTHON) is %s; DataLens needs Python 3.11 or later: make PYTHON=python3.11" % sys.version.split()[0])'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

quickstart: $(READY)  ## train on MNIST at epsilon 1, draw 10,000 images, measure them (2 minutes)
	$(BIN)/datalens quickstart $(SOURCE) --out $(OUT)

test: $(READY)  ## the tests (15 minutes at most on two cores)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright --pythonpath $(BIN)/python
	$(BIN)/lint-imports
	OMP_NUM_THREADS=1 $(BIN)/pytest -m 'not slow' -n 2 --dist worksteal

test-slow: $(READY)  ## the checks that take longer
	$(BIN)/pytest -m slow

coverage: $(READY)  ## which lines and branches the tests reach: all of the rooms of the guarantee, 90% of the whole
	$(BIN)/coverage erase
	OMP_NUM_THREADS=1 $(BIN)/coverage run -m pytest -m 'not slow' -n 2 --dist worksteal
	$(BIN)/coverage combine --quiet
	$(BIN)/coverage report --fail-under=90
	$(BIN)/coverage report --fail-under=100 --include='$(GUARANTEE)'

mutation-smoke: $(READY)  ## break privacy code line by line; a test must fail each time (5 minutes)
	$(BIN)/python tests/mutation_smoke.py

mutants: $(READY)  ## a seeded sample of small edits of privacy code, 60 minutes; goes on where it was cut off
	$(BIN)/python tests/mutants.py --minutes 60 --seed 0 --out docs/results/mutants.md

lint: $(READY)  ## format and mend what can be mended
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

docs: $(READY)  ## the documentation as a site in site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build

clean:  ## remove the environment and caches; runs and data stay
	rm -rf $(VENV) build dist site src/datalens/_version.py .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
