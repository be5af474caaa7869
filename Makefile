# Everything sets itself up: Python 3.11 or later and make are all that is needed.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
SOURCE ?= mnist
OUT ?= runs/quickstart
MINUTES ?= 2
SEED ?= 0

# what is tried at both ends of the ranges of versions
ENDS ?= .venv
ENDS_EXTRAS := discrete,dpsgd,report,parquet,huggingface,tensorboard
ENDS_TOOLS := hypothesis mpmath pytest pytest-timeout pytest-xdist pyyaml scikit-learn torchmetrics
ENDS_TESTS := -m 'not slow' tests/privacy tests/mechanisms tests/noise tests/compression tests/golden \
	tests/dpsgd/test_engine.py tests/cli/test_main.py tests/cli/test_privacy.py tests/cli/test_report.py \
	tests/end_to_end/test_training.py tests/baselines/test_dp_gan.py

SRC := src/datalens
GUARANTEE := $(SRC)/privacy/*,$(SRC)/mechanisms/*,$(SRC)/noise/*,$(SRC)/compression/*,$(SRC)/teachers/partition*

.PHONY: help setup quickstart test test-slow test-lowest test-newest fuzz soak coverage mutation-smoke mutants lint docs clean

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

test-lowest:  ## a fast part of the tests with the oldest versions that pyproject.toml allows (a new environment)
	$(PYTHON) -m venv --clear $(ENDS)-lowest
	$(PYTHON) scripts/bounds.py lowest > $(ENDS)-lowest/constraints.txt
	$(ENDS)-lowest/bin/pip install --quiet -c $(ENDS)-lowest/constraints.txt -e '.[$(ENDS_EXTRAS)]' $(ENDS_TOOLS)
	OMP_NUM_THREADS=1 $(ENDS)-lowest/bin/pytest $(ENDS_TESTS)

test-newest:  ## the same with the newest versions that pyproject.toml allows
	$(PYTHON) -m venv --clear $(ENDS)-newest
	$(PYTHON) scripts/bounds.py allowed > $(ENDS)-newest/constraints.txt
	$(ENDS)-newest/bin/pip install --quiet -c $(ENDS)-newest/constraints.txt -e '.[$(ENDS_EXTRAS)]' $(ENDS_TOOLS)
	OMP_NUM_THREADS=1 $(ENDS)-newest/bin/pytest $(ENDS_TESTS)

fuzz: $(READY)  ## every option and setting with every odd value; each is refused in one line or means what it says
	OMP_NUM_THREADS=1 $(BIN)/pytest tests/fuzz tests/documents/test_options.py

soak: $(READY)  ## small trainings, each hurt once; make soak MINUTES=120; its log is soak-<time>.jsonl
	OMP_NUM_THREADS=1 $(BIN)/python tests/soak/soak.py --minutes $(MINUTES) --seed $(SEED) --log soak-$$(date +%Y%m%dT%H%M%S).jsonl

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
	rm -rf $(VENV) $(ENDS)-lowest $(ENDS)-newest build dist site src/datalens/_version.py .pytest_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
