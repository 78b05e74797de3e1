# Each target sets up what it needs by itself, in .venv: python3.11, pip and make are enough.
PYTHON ?= python3
BIN := .venv/bin
READY := .venv/.ready
INSTALLED := .venv/.installed
PIP := $(BIN)/pip install --quiet --quiet --disable-pip-version-check --root-user-action=ignore --constraint constraints.txt

.PHONY: demo test docs browser petsc lint types layers format clean

# Without what only tests need.
demo: $(INSTALLED)
	@mkdir -p demo
	@$(BIN)/manyways plan nine-rooms:8 --k 6 --slack 10% --out demo/plans.mw --picture demo/plans.png --report demo/plans.html
	@echo "Open demo/plans.html in a browser: six ways through nine rooms. Or live: $(BIN)/manyways serve demo/plans.mw"

test: lint types layers browser
	$(BIN)/pytest -n 2

# The site of the documentation, in site/. Every example runs, every picture is made; a warning is an error.
docs: $(READY)
	@rm -rf site docs/made
	PYTHONPATH=src $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b html -d docs/made/doctrees docs site
	@echo "Open site/index.html in a browser."

# The page is tested in a real Chromium. Where there is none and none can be installed, those tests are skipped.
browser:
	@command -v chromium > /dev/null || command -v chromium-browser > /dev/null || command -v google-chrome > /dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && echo "Installing Chromium for the tests of the page" \
	    && apt-get update -qq && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq chromium > /dev/null; } \
	  || echo "There is no Chromium and none could be installed: the tests of the page in a browser are skipped."

# The engine for models larger than one machine: PETSc and Open MPI from Debian, and their Python packages. petsc4py must
# have the version of PETSc and be built against the numpy of .venv, so pip must not build it in isolation.
PETSC_DIR ?= /usr/lib/petscdir/petsc-real
PETSC := .venv/.petsc
petsc: $(PETSC)

$(PETSC): $(READY)
	@test -d $(PETSC_DIR) && command -v mpirun > /dev/null \
	  || { test "$$(id -u)" = 0 && command -v apt-get > /dev/null && apt-get update -qq \
	    && DEBIAN_FRONTEND=noninteractive apt-get install -y -qq libpetsc-real-dev openmpi-bin > /dev/null; } \
	  || { echo "PETSc is missing and could not be installed: install libpetsc-real-dev and openmpi-bin, or set PETSC_DIR"; exit 1; }
	$(PIP) 'cython<3' 'setuptools<70' wheel mpi4py
	PETSC_DIR=$(PETSC_DIR) $(PIP) --no-build-isolation "petsc4py==$$(sed -n 's/^Version: //p' $(PETSC_DIR)/lib/pkgconfig/PETSc.pc)"
	@touch $@

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

$(INSTALLED): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable .
	@touch $@

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv .venv
	$(PIP) --editable '.[dev]'
	@touch $(INSTALLED) $@

clean:
	rm -rf .venv demo site docs/made .pytest_cache .ruff_cache .hypothesis
