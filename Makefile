# Every target sets itself up: the first run makes .venv, later runs find it ready.
# PYTHON=python3.12 chooses another interpreter (before the first run); ARGS="-k name" goes to pytest.

PYTHON ?= python3
ARGS ?=
VENV := .venv
RUN := $(VENV)/bin/python
READY := $(VENV)/.ready
INSTALL := $(RUN) -m pip install --disable-pip-version-check -c constraints.txt -e '.[dev]'

.PHONY: demo test lint format docs wheel-check release-check guard guard-raise clean
.DEFAULT_GOAL := demo

demo: $(READY)
	@$(RUN) -m symenum fit --example planets

# The head of its output says whether a Chromium was found for the tests of the studio's page.
test: $(READY)
	@$(RUN) -m pytest -n auto --dist worksteal $(ARGS)

lint: $(READY)
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

format: $(READY)
	@$(RUN) -m ruff check --fix .
	@$(RUN) -m ruff format .

# The builder is in the extra `docs`, so that `make test` need not fetch it.
docs: $(READY)
	@$(INSTALL:[dev]'=[dev,docs]') -qq
	@$(RUN) -m mkdocs build --quiet
	@echo "symenum: the documentation is in build/site/index.html"

wheel-check: $(READY)
	@$(RUN) benchmarks/install.py

# What a release consists of: source archive and wheel, their metadata and README, and the wheel in a fresh environment.
release-check: $(READY)
	@$(RUN) benchmarks/install.py --release

# What must not get worse, each figure beside its floor in benchmarks/floor.json; ARGS="--only speed" runs a part.
# guard-raise also puts floors up, and never one down.
guard: GUARD_ARGS := $(ARGS)
guard-raise: GUARD_ARGS := --raise $(ARGS)
guard guard-raise: $(READY)
	@if [ -z "$$SYMENUM_DATA" ] && [ -d ../shared/data ]; then SYMENUM_DATA=$$(realpath ../shared/data); export SYMENUM_DATA; fi; \
		$(RUN) benchmarks/guard.py $(GUARD_ARGS)

clean:
	rm -rf $(VENV) build dist src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find $(wildcard src tests benchmarks) -name __pycache__ -type d -prune -exec rm -rf {} +

# Touched last: an installation that was interrupted is taken up again by the next run.
$(READY): pyproject.toml constraints.txt src/symenum/version.py
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "symenum needs Python 3.10 or newer; this is " + sys.version.split()[0] + ". Try: make PYTHON=python3.12")'
	@echo "symenum: installing into $(VENV), once, a minute or more ..."
	@test -x $(RUN) || $(PYTHON) -m venv $(VENV)
	@$(INSTALL) -qq || { echo "symenum: installation failed. In full: $(INSTALL)" >&2; exit 1; }
	@$(RUN) -c 'import triton' 2>/dev/null || $(INSTALL:[dev]'=[dev,kernels]') -qq 2>/dev/null || \
		echo "symenum: Triton cannot be installed here, so the tests of the GPU's kernels will be skipped."
	@touch $@
	@echo "symenum: ready."
