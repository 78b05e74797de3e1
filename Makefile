# Each target sets up what it needs by itself, in .venv: python3.11, pip and make are enough.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready

.PHONY: demo test lint types layers format clean

demo: $(READY)
	@mkdir -p demo
	@$(BIN)/manyways plan nine-rooms:7 --k 6 --tradeoff 8 --out demo/plans.mw --picture demo/plans.png
	@echo "Look at demo/plans.png: six ways through nine rooms."

test: lint types layers
	$(BIN)/pytest -n 2

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(READY)
	$(BIN)/basedpyright

layers: $(READY)
	$(BIN)/lint-imports

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	@touch $@

clean:
	rm -rf .venv demo .pytest_cache .ruff_cache .hypothesis
