# `make demo` and `make test` need python3 with venv, and nothing else.
VENV   := .venv
PYTHON := $(VENV)/bin/python
READY  := $(VENV)/ready

.PHONY: demo test lint types test64 test32 clean
.DEFAULT_GOAL := demo

$(READY): pyproject.toml
	python3 -m venv $(VENV)
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --upgrade pip
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --editable ".[all,test,dev]"
	touch $@

demo: $(READY)
	$(PYTHON) -m theory --figures results/theory --json results/theory/verdicts.json
	$(PYTHON) -m experiments.known_ideal --smoke
	$(PYTHON) -m experiments.corpus_to_sources --smoke

test: lint types test64 test32

lint: $(READY)
	$(PYTHON) -m ruff check .
	$(PYTHON) -m ruff format --check .

types: $(READY)
	$(PYTHON) -m mypy

# Two processes with two BLAS threads each would wait for one another on two cores.
test64 test32: export OPENBLAS_NUM_THREADS = 1

# In 64 bit, with every array annotation checked at run time; doctests of README and modules too.
test64: $(READY)
	JAX_ENABLE_X64=1 $(PYTHON) -m pytest -n 2 -q --doctest-modules --doctest-glob=README.md \
	    --jaxtyping-packages=jaxmeta,beartype.beartype

# In 32 bit, JAX's default, without those checks: what a user runs.
test32: $(READY)
	JAX_ENABLE_X64=0 $(PYTHON) -m pytest -n 2 -q tests

clean:
	rm -rf $(VENV) results .pytest_cache .hypothesis .mypy_cache .ruff_cache
