# One door: `make test` sets up from nothing and runs the checks of every change; `make reproduce` runs the main job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PAPER_STAMP := $(VENV)/.installed-for-paper
# Tests start many processes: they need not all compile the same modules.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: test quick quick-rules quick-rooms quick-serve reproduce claims bench attack gpu long lowest newest other-versions check lint types imports unit unit-rules unit-rooms unit-serve unit-no-jit docs build format lock clean

test: check

# It installs the simulator and what draws, and no tools of developers.
reproduce: $(PAPER_STAMP)
	$(BIN)/python -m paper

# The same, with more runs where a comparison is close.
claims: $(PAPER_STAMP)
	$(BIN)/python -m paper --full

RULES := tests/policies tests/simulation tests/core
SERVE := tests/serve tests/client

# Two processors have work all the time: the longest runs begin first, and a third one waits for
# servers and browsers most of the time. The rooms come after the rules, which compile for them too.
check: lint imports
	$(MAKE) -j3 unit-rules unit-no-jit unit-serve types docs unit-rooms

# For a developer: the fast tests, within a minute; nothing is compiled.
quick: lint imports
	$(MAKE) -j3 quick-rules quick-rooms quick-serve types

QUICK := NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -m "not compiled and not slow and not patient"

quick-rules: $(STAMP)
	$(QUICK) $(RULES) tests/live

quick-serve: $(STAMP)
	$(QUICK) $(SERVE)

quick-rooms: $(STAMP)
	$(QUICK) tests src paper $(addprefix --ignore ,$(RULES) $(SERVE) tests/live)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# With the JIT; conftest.py says which tests run here, which below, and which in both.
unit: unit-rules unit-serve unit-rooms

unit-rules: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(RULES)

unit-serve: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(SERVE)

unit-rooms: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(addprefix --ignore ,$(RULES) $(SERVE))

# Long statistics, kills and crafted files: minutes. A workflow runs them every night.
long: $(STAMP)
	$(BIN)/python -m pytest -m long tests

# The tests with the oldest packages that pyproject.toml allows (which themselves use what their newer
# dependencies deprecate), and with the newest, pre-releases included.
lowest:
	$(MAKE) other-versions VENV=.venv-lowest CHOICE="--resolution lowest-direct" WARNINGS="-W ignore::DeprecationWarning"

newest:
	$(MAKE) other-versions VENV=.venv-newest CHOICE="--upgrade --prerelease allow"

other-versions:
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(CHOICE) --group dev --editable ".[lab,docs,serve,postgres]"
	$(BIN)/python -m pytest -q $(WARNINGS) -m "not interpreted and not slow" tests
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q $(WARNINGS) -m interpreted tests

# CPython runs the same kernels here, so that coverage sees them and a wrong index raises. (Slipcover
# warns that it does not see branches in tests, which nobody asked for.)
unit-no-jit: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -W ignore:Unable -m slipcover -m pytest -m "not compiled and not slow" tests src paper --ignore tests/policies/test_oracle.py --ignore tests/policies/test_late_oracle.py

# The site, into site/; a warning is an error. (The variable silences a notice of the theme's makers.)
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What is published, the sdist too: built, checked, and tried in environments with nothing else in them.
build: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/empty_environment.py dist/*

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

# Every policy, compiled for a GPU that need not be there: minutes; `test` compiles some.
gpu: $(STAMP)
	MANYARMS_EVERY_POLICY=1 $(BIN)/python -m pytest -q -m "not interpreted" tests/simulation/test_gpu.py

# What others could plant, damage or craft, tried in minutes; not part of `test`.
attack: $(STAMP)
	$(BIN)/python -m tests.attack

format: $(STAMP)
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# The versions that development is known to work with, for all platforms. No package index is named,
# and there are no hashes, so that pip takes the file as a constraint: PIP_CONSTRAINT=requirements/dev.lock
lock: $(STAMP)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-emit-index-url --no-annotate \
	  --custom-compile-command "make lock" --group dev --all-extras pyproject.toml --output-file requirements/dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-emit-index-url --no-annotate --generate-hashes \
	  --custom-compile-command "make lock" requirements/release.in --output-file requirements/release.lock

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable ".[lab,docs,serve,postgres]"
	touch $(STAMP)

$(PAPER_STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	test -e $(STAMP) || $(BIN)/python -m pip install --quiet --disable-pip-version-check --editable ".[lab]" "rich>=14.3"
	touch $(PAPER_STAMP)

clean:
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis
