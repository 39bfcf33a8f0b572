# `make demo` and `make test` set everything up on a fresh machine. Python 3.11 or newer is all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: demo test test-long test-lowest lint docs schema notebooks bench setup clean

demo: $(STAMP)-demo
	$(BIN)/python -m mbsjax.demo

test: lint browser
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

test-long: $(STAMP)
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15 -m long

# With the lowest versions that pyproject.toml allows: every example of a docstring, and tests of joints, forces, studies and kept programs.
test-lowest:
	$(PYTHON) -m venv $(VENV)-lowest
	$(VENV)-lowest/bin/pip install --quiet -e ".[all]" -c tests/lowest.txt "beartype>=0.20" "hypothesis>=6.100" "pytest>=8"
	MBSJAX_CACHE=.cache/lowest $(VENV)-lowest/bin/python -m pytest mbsjax tests/test_joints.py tests/test_statics.py tests/test_dyn.py tests/test_tolerance.py \
		tests/test_kept.py

# The viewer is tested in Chromium; where there is none and Debian's packages cannot be had, its tests are skipped.
.PHONY: browser
browser:
	@command -v chromium > /dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends chromium; } \
	  || echo "no Chromium: the viewer is not tested in a browser"

docs: $(STAMP)
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# What model files may say, from the arguments of constructors: they are read and checked by it.
schema: $(STAMP)
	JAX_ENABLE_X64=1 $(BIN)/python -m mbsjax._files.schema
	cp mbsjax/_files/model.schema.json docs/model.schema.json

# Executes the notebooks and saves them with their outputs: after their code has changed.
notebooks: $(STAMP)
	JAX_COMPILATION_CACHE_DIR=$(CURDIR)/.cache/jax $(BIN)/python notebooks/execute.py

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

bench: $(STAMP)
	missed=0; for file in benchmarks/[a-z]*.py; do \
	  $(BIN)/python -m benchmarks.$$(basename $$file .py) --check || missed=1; done; exit $$missed

setup: $(STAMP)

$(STAMP): pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e ".[bench,lint,docs]"
	touch $(STAMP) $(STAMP)-demo

$(STAMP)-demo: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --upgrade pip
	$(BIN)/pip install --quiet -e ".[plots]"
	touch $(STAMP)-demo

clean:
	rm -rf $(VENV) .cache out
