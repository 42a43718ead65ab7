# `make demo`, `make check` and `make test` need python3 with venv, and nothing else.
VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/ready
PYTEST := $(PYTHON) -m pytest -q -n 2 --dist loadfile --no-loadscope-reorder

.PHONY: demo docs check quick test lint types test64 test32 attack clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable ".[all,test,dev,docs]"
	touch $@

# Verdicts, sources, weights and a plan on one page, from generated data: results/demo/index.html.
demo: $(READY)
	OPENBLAS_NUM_THREADS=1 XLA_FLAGS="$(KNOWN)" $(PYTHON) -m experiments.demo

# Cells are run once, and again when they or the code change; a warning is an error.
docs: $(READY)
	XLA_FLAGS="$(KNOWN)" $(PYTHON) -m sphinx -b html -W --keep-going -n -q -d .cache/docs/doctrees docs .cache/docs/html
	@echo "see .cache/docs/html/index.html"

# The inner loop: lint, types, and what is quick of the leg that users run.
check: lint
	@$(MAKE) --no-print-directory -j 2 types quick

# Types are checked beside the first leg, whose workers leave some of two cores.
test: lint
	@$(MAKE) --no-print-directory -j 2 types test64
	@$(MAKE) --no-print-directory test32

lint: $(READY)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: $(READY)
	$(PYTHON) -m mypy

# Most of the time is compilation, so what is compiled is kept on disk. And two processes with two
# BLAS threads each would wait for one another on two cores.
quick test64 test32 attack docs: export JAX_COMPILATION_CACHE_DIR = $(CURDIR)/.cache/jax
quick test64 test32 attack docs: export JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS = 0
quick test64 test32 attack docs: export JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES = -1
quick test64 test32 attack docs: export OPENBLAS_NUM_THREADS = 1

# XLA's older way of writing loops compiles in half the time, and so does a program in one piece.
# A flag that it does not know ends the process, so they are tried first.
CHEAP := --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
KNOWN = $(shell XLA_FLAGS="$(CHEAP)" $(PYTHON) -c "import jax; jax.devices()" 2> /dev/null && echo "$(CHEAP)")

quick: $(READY)
	JAX_ENABLE_X64=0 XLA_FLAGS="$(KNOWN)" $(PYTEST) -m "not slow" tests

# In 64 bit, with every array annotation checked at run time; doctests of README and modules too.
test64: $(READY)
	JAX_ENABLE_X64=1 XLA_FLAGS="$(KNOWN)" $(PYTEST) --doctest-modules --doctest-glob=README.md \
	    --doctest-glob="docs/*.md" --jaxtyping-packages=jaxmeta,beartype.beartype

# In 32 bit, JAX's default, without those checks: what a user runs. What does not depend on the
# dtype runs here alone.
test32: $(READY)
	JAX_ENABLE_X64=0 XLA_FLAGS="$(KNOWN)" $(PYTEST) tests

# What tests do a few times, many times; figures go to results/tried and docs/tried.md. Every night.
attack: $(READY)
	XLA_FLAGS="$(KNOWN)" $(PYTHON) -m tests.attack

# What is made by these commands; results that are kept in the repository stay.
clean:
	rm -rf $(VENV) .cache .pytest_cache .hypothesis .mypy_cache .ruff_cache
	rm -rf results/cache results/draws results/demo results/theory results/*_smoke
