# `make` alone lists the targets: those with a comment that begins with ##.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PAPER_STAMP := $(VENV)/.installed-for-paper
# Python compiles a module on its first import. Most installed modules are never imported.
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile
# Write bytecode: tests start many processes, and each would compile the same modules again.
export PYTHONDONTWRITEBYTECODE :=

.PHONY: help test quick quick-rules quick-rest quick-serve reproduce claims bench attack gpu long lowest newest other-versions check lint types imports unit unit-rules unit-live unit-rest unit-serve unit-no-jit docs build format lock clean

help:  ## list these targets
	@echo "Each target installs what it needs into $(VENV)."
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/  make \1|\2/p' Makefile | awk -F'|' '{ printf "%-18s %s\n", $$1, $$2 }'

test: check  ## run all tests and linters (about 5 minutes)

# Installs the simulator and matplotlib, but no development tools.
reproduce: $(PAPER_STAMP)  ## draw the paper's figures and check its claims (1 minute)
	@$(BIN)/python -m paper

claims: $(PAPER_STAMP)  ## reproduce, with more runs for close comparisons
	@$(BIN)/python -m paper --full

RULES := tests/policies tests/simulation tests/core
SERVE := tests/serve tests/client
LIVE := tests/live tests/inference

# For two processors: the longest runs begin first, and types and docs, which are short, come last.
# Three jobs run at once because one of them mostly waits for servers, browsers and disks.
# unit-rest begins when unit-rules has compiled most of what both need.
check: lint imports
	$(MAKE) -j3 unit-rules unit-no-jit unit-serve unit-live unit-rest types docs

# Nothing is compiled.
quick: lint imports  ## run the linters and the fast tests (1 minute)
	$(MAKE) -j3 quick-rules quick-rest quick-serve types

QUICK := NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q -m "not compiled and not slow and not patient"

quick-rules: $(STAMP)
	$(QUICK) $(RULES) tests/live

quick-serve: $(STAMP)
	$(QUICK) $(SERVE)

quick-rest: $(STAMP)
	$(QUICK) tests src paper $(addprefix --ignore ,$(RULES) $(SERVE) tests/live)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# With the JIT. conftest.py chooses which tests run here, without the JIT (unit-no-jit), or in both.
unit: unit-rules unit-serve unit-live unit-rest

unit-rules: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(RULES)

unit-serve: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(SERVE)

unit-live: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(LIVE)

unit-rest: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(addprefix --ignore ,$(RULES) $(SERVE) $(LIVE))

# Statistical tests, killed processes and crafted files. A workflow runs them every night.
long: $(STAMP)  ## run the tests that take minutes
	$(PIP) --group nightly
	$(BIN)/python -m pytest -m long tests
	$(BIN)/python -m pytest -q tests/simulation tests/core -k "polars or duckdb or libraries_read or dask"

# The tests with the oldest packages that pyproject.toml allows (which use features that their newer
# dependencies deprecate), and with the newest, including pre-releases.
lowest:  ## run the tests with the oldest packages allowed
	$(MAKE) other-versions VENV=.venv-lowest CHOICE="--resolution lowest-direct" WARNINGS="-W ignore::DeprecationWarning"

newest:  ## run the tests with the newest packages
	$(MAKE) other-versions VENV=.venv-newest CHOICE="--upgrade --prerelease allow"

other-versions: $(BIN)/python
	$(PIP) uv
	$(BIN)/uv pip install --quiet --python $(BIN)/python $(CHOICE) --group dev --group nightly --editable ".[sim,docs,serve,postgres]"
	$(BIN)/python -m pytest -q $(WARNINGS) -m "not interpreted and not slow" tests
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q $(WARNINGS) -m interpreted tests

# CPython runs the same kernels here, so coverage includes them and a wrong index raises an error.
# Slipcover's warning about branches in tests is ignored: coverage of tests is not measured.
unit-no-jit: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/python -W ignore:Unable -m slipcover -m pytest -m "not compiled and not slow" tests src paper --ignore tests/policies/test_oracle.py --ignore tests/policies/test_late_oracle.py

# A warning is an error. The variable silences a notice of the theme's authors.
docs: $(STAMP)  ## build the site, into site/
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Build what is published, check it, and try it in environments without other packages.
build: $(STAMP)  ## build the sdist and the wheel, and try them
	$(PIP) --group release
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/empty_environment.py dist/*

bench: $(STAMP)  ## measure speeds
	$(BIN)/python benchmarks/run.py

# Takes minutes.
gpu: $(STAMP)  ## compile every policy for a GPU (needs no GPU)
	$(PIP) --group gpu
	$(BIN)/python -m pytest -q -m "not interpreted" tests/simulation/test_gpu.py

# Takes minutes; not part of `test`.
attack: $(STAMP)  ## try damaged and crafted files, kills, full disks
	$(BIN)/python -m tests.attack

format: $(STAMP)  ## format the code
	$(BIN)/ruff check --fix
	$(BIN)/ruff format

# Versions that are known to work, for all platforms. Without a package index and hashes, so that pip
# accepts the file as a constraint: PIP_CONSTRAINT=requirements/dev.lock
lock: $(STAMP)  ## renew the lock files
	$(PIP) uv
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-emit-index-url --no-annotate \
	  --custom-compile-command "make lock" --group dev --group gpu --group nightly --group release --all-extras pyproject.toml --output-file requirements/dev.lock
	$(BIN)/uv pip compile --quiet --universal --python-version 3.11 --upgrade --no-emit-index-url --no-annotate --generate-hashes \
	  --custom-compile-command "make lock" requirements/release.in --output-file requirements/release.lock

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
	  echo "manyarms needs Python 3.11 or newer, and $(PYTHON) is older or missing. Choose another: make PYTHON=python3.12 test"; exit 1; }
	@$(PYTHON) -c 'import ensurepip, venv' 2>/dev/null || { \
	  echo "$(PYTHON) cannot create virtual environments. On Debian and Ubuntu: apt-get install python3-venv"; exit 1; }
	@$(PYTHON) -m venv $(VENV)

$(STAMP): pyproject.toml | $(BIN)/python
	@echo "Installing manyarms with all extras, test and documentation tools into $(VENV) (about 1.1 GB)"
	@$(PIP) --upgrade "pip>=25.1"
	@$(PIP) --group dev --editable ".[sim,docs,serve,postgres]"
	@touch $(STAMP)

$(PAPER_STAMP): pyproject.toml | $(BIN)/python
	@test -e $(STAMP) || { echo "Installing manyarms, Numba and matplotlib into $(VENV) (about 590 MB)"; $(PIP) --editable ".[sim]" "rich>=14.3"; }
	@touch $(PAPER_STAMP)

clean:  ## remove what these commands created
	rm -rf $(VENV) dist build site .mypy_cache .ruff_cache .pytest_cache .hypothesis
