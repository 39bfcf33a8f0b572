# `make demo` and `make test` set everything up on a fresh machine. Python 3.11 or newer is all they need.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp

.PHONY: demo test lint bench setup clean

demo: $(STAMP)-demo
	$(BIN)/python -m mbsjax.demo

test: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15

lint: $(STAMP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright

bench: $(STAMP)
	for file in benchmarks/[a-z]*.py; do $(BIN)/python -m benchmarks.$$(basename $$file .py) --check || exit 1; done

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
