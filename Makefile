# One door: `make test` sets up from nothing and runs every check; `make reproduce` runs the main job.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: test quick quick-rules quick-rooms reproduce bench attack gpu long check lint types imports unit unit-rules unit-rooms unit-no-jit docs build format lock clean

test: check

reproduce: $(STAMP)
	$(BIN)/manyarms reproduce

# The runs of the tests share nothing but the processor: side by side they take half the time.
RULES := tests/policies tests/lab tests/core

check: lint types imports
	$(MAKE) -j2 unit-rules unit-rooms unit-no-jit docs

# A developer's minute: everything but the docs site, the slow tests and the run without the JIT.
quick: lint types imports
	$(MAKE) -j2 quick-rules quick-rooms

quick-rules: $(STAMP)
	$(BIN)/python -m pytest -q -m "not slow" tests/policies tests/live tests/core tests/lab

quick-rooms: $(STAMP)
	$(BIN)/python -m pytest -q -m "not slow" tests src $(addprefix --ignore tests/,policies live core lab)

lint: $(STAMP)
	$(BIN)/ruff check
	$(BIN)/ruff format --check

types: $(STAMP)
	$(BIN)/mypy

imports: $(STAMP)
	$(BIN)/lint-imports

# Live handles never compile, so most of their tests run below only.
unit: unit-rules unit-rooms

unit-rules: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(RULES)

unit-rooms: $(STAMP)
	$(BIN)/python -m pytest -m "not interpreted and not long" $(addprefix --ignore ,$(RULES))

# Long statistics, kills and crafted files: minutes. A workflow runs them every night.
long: $(STAMP)
	$(BIN)/python -m pytest -m long tests

# CPython runs the same kernels here, so that coverage sees them and a wrong index raises.
unit-no-jit: $(STAMP)
	NUMBA_DISABLE_JIT=1 $(BIN)/coverage run -m pytest -m "not compiled and not slow" tests src --ignore tests/policies/test_oracle.py --ignore tests/policies/test_late_oracle.py
	$(BIN)/coverage report --fail-under=95

# The site, into site/; a warning is an error. (The variable silences a notice of the theme's makers.)
docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet

# What is published: built, checked, and tried in an environment with nothing else in it.
build: $(STAMP)
	rm -rf dist
	$(BIN)/python -m build --no-isolation
	$(BIN)/twine check --strict dist/*
	$(BIN)/python tests/empty_environment.py dist/*.whl

bench: $(STAMP)
	$(BIN)/python benchmarks/run.py

# Every policy, compiled for a GPU that need not be there: minutes; `test` compiles some.
gpu: $(STAMP)
	MANYARMS_EVERY_POLICY=1 $(BIN)/python -m pytest -q tests/lab/test_cuda.py

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

$(STAMP): pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --group dev --editable ".[lab,docs,serve,postgres]"
	touch $(STAMP)

clean:
	rm -rf $(VENV) dist build site .coverage .mypy_cache .ruff_cache .pytest_cache .hypothesis
