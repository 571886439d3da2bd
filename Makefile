# Every target sets itself up: a fresh clone needs only GNU make and Python 3.11 to 3.14.
#   make test PYTHON=python3.12                  which Python makes the environment
#   make test PYTEST_ARGS="-m 'not slow' -x"     passed on to pytest
#   make test PYTEST_ARGS=--full                 also what .ci/run alone runs: more of the same
#   make test WORKERS=8                          processes that share the tests
#   make bench BENCH=gram                        one benchmark instead of all
#   make bench-tables BENCH_ARGS="--splits 1"    passed on to the benchmark
#   make bench NEIGHBOURS=2                      what is timed runs beside two busy processes
PYTHON ?= python3
VENV := .venv
RUN := $(VENV)/bin/python
CONSTRAINTS ?= constraints.txt
PYTEST_ARGS ?=
WORKERS ?= 2
SPHINX_ARGS ?= --fail-on-warning --keep-going
# A file whose name starts with an underscore is a helper, not a benchmark.
# Nor is tables, which has an environment of its own.
BENCH ?= $(filter-out _% tables,$(patsubst benchmarks/%.py,%,$(wildcard benchmarks/*.py)))

.DEFAULT_GOAL := help
.NOTPARALLEL:
.DELETE_ON_ERROR:
.PHONY: help demo test test-torch test-cluster test-lab test-lowest test-newest coverage lint types bench bench-tables docs clean distclean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.warmed-cli ## the whole way, from a table to a report: runs mercer demo
	$(RUN) -m mercer demo

# With a process for each core, threads of BLAS would only be in each other's way. conftest.py compiles what the
# processes share before they start, and leaves out the tests marked full unless PYTEST_ARGS has --full.
# Python keeps what it compiles, whatever the environment says: else each process that a test starts would begin with
# compiling all of mercer, and each of those that share the tests with all of tests/ too.
EXTRAS ?= test
test: $(VENV)/.installed-$(EXTRAS) ## tests and doctests (PYTEST_ARGS=--full for all)
	OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(RUN) -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

# Each of these has an environment of its own: what it installs cannot hide what another one lacks.
test-torch: ## the tests that need PyTorch, and Triton, whose kernels run as Python there
	$(MAKE) test VENV=.venv-torch EXTRAS=test,gpu PYTEST_ARGS="-m torch --full $(PYTEST_ARGS)"

test-cluster: ## the tests that need Dask, one after the other: they start and kill processes
	$(MAKE) test VENV=.venv-cluster EXTRAS=test,dask WORKERS=0 PYTEST_ARGS="-m cluster --full $(PYTEST_ARGS)"

test-lab: ## the tests of the lab's page, in the Chromium of this machine
	$(MAKE) test VENV=.venv-lab EXTRAS=test,browser WORKERS=0 PYTEST_ARGS="-m browser --full tests/lab $(PYTEST_ARGS)"

test-lowest: ## the tests with the lowest versions that pyproject.toml allows
	$(MAKE) test VENV=.venv-lowest CONSTRAINTS=constraints-lowest.txt

test-newest: ## the tests with the newest versions there are
	$(MAKE) test VENV=.venv-newest CONSTRAINTS=/dev/null

coverage: ## the tests, and which lines of src/mercer none of them runs
	$(MAKE) test EXTRAS=coverage PYTEST_ARGS="--cov --cov-report=term-missing $(PYTEST_ARGS)"

lint: $(VENV)/.installed-lint ## style: ruff format --check, ruff check
	$(RUN) -m ruff format --check .
	$(RUN) -m ruff check .

types: $(VENV)/.installed-types ## mypy on src/mercer
	$(RUN) -m mypy

# scikit-learn-intelex brings a TBB library that Numba would otherwise take up for its own threads: what is timed
# must be what users get.
BENCH_EXTRAS ?= bench
bench: $(VENV)/.installed-$(BENCH_EXTRAS) ## benchmarks against peers (BENCH=name for one)
	@test -n "$(strip $(BENCH))" || { echo "no benchmarks: benchmarks/ holds no NAME.py" >&2; exit 1; }
	@set -e; for name in $(BENCH); do echo "== benchmarks.$$name"; NEIGHBOURS=$(NEIGHBOURS) $(RUN) -m benchmarks.$$name $(BENCH_ARGS); done

bench-tables: ## public tables against LightGBM, XGBoost, CatBoost, xRFM (BENCH_ARGS="--seconds 15 --splits 1")
	$(MAKE) bench VENV=.venv-tables BENCH_EXTRAS=bench-tables BENCH=tables

docs: $(VENV)/.installed-docs ## the documentation, to docs/_build/html
	$(RUN) -m sphinx $(SPHINX_ARGS) -b html docs docs/_build/html

clean: ## remove caches and built files, keep .venv
	rm -rf build dist docs/_build docs/api docs/auto_examples .pytest_cache .mypy_cache .ruff_cache .hypothesis .coverage htmlcov
	find . -path ./$(VENV) -prune -o -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## clean, and remove the environments too
	rm -rf $(VENV) .venv-*

# The stamp .installed-EXTRAS says that mercer, editable, with those extras is in the environment.
.SECONDARY:
$(VENV)/.installed-%: pyproject.toml $(CONSTRAINTS) $(VENV)/.created
	@echo "Installing mercer[$*] into $(VENV): some minutes the first time."
	$(RUN) -m pip install --quiet --disable-pip-version-check -c $(CONSTRAINTS) -e ".[$*]"
	@touch $@

# The stamp .warmed-EXTRAS says that what first fits would compile was compiled, and kept where MERCER_CACHE_DIR says:
# a first run is then like all later ones. Where nothing can be kept, each run compiles for itself.
$(VENV)/.warmed-%: $(VENV)/.installed-%
	@echo "Compiling what all kernels and solvers share, once."
	@$(RUN) -m mercer warm --quiet >/dev/null || echo "Nothing compiled can be kept: each run compiles what it needs." >&2
	@touch $@

$(VENV)/.created:
	@$(PYTHON) -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 15))' || { \
	  echo "mercer needs Python 3.11 to 3.14, but $(PYTHON) is: $$($(PYTHON) -V 2>&1)." >&2; \
	  echo "Name another one: make $(MAKECMDGOALS) PYTHON=python3.12" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	@touch $@
