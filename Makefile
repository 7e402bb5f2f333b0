# Two commands: `make run` and `make test`. The rest is for whoever changes the code.
PYTHON ?= python3
BIN := .venv/bin
HOST ?= 127.0.0.1
PORT ?= 8000
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help run test test-system check fmt openapi lock fuzz soak bench bench-quick bench-flat bench-console screenshots

help:
	@echo "make run      start Plankeeper with demonstration data on http://$(HOST):$(PORT)"
	@echo "make test     run the tests that need Python, PostgreSQL and Chromium alone"
	@echo "make test-system  run the others: faults, load, clusters, npm, curl; in a short form"
	@echo "make check    formatting, lint, types, OpenAPI drift, known faults of dependencies"
	@echo "make fmt      format the code"
	@echo "make openapi  write openapi.json anew"
	@echo "make lock     pin the dependencies anew"
	@echo "make fuzz     schemathesis against a server of its own, two minutes (EXAMPLES=, SEED=)"
	@echo "make soak     faults and load in their long form, with their figures: twenty minutes at most"
	@echo "make screenshots     pictures of the console's pages, for its documentation"
	@echo "make bench-console   how long each page takes with 100,000 participants, and what it weighs"
	@echo "make bench    Plankeeper beside its peers, half an hour; make bench-quick: two minutes"

run: .venv/run
	@exec $(BIN)/plankeeper serve --demo --host $(HOST) --port $(PORT)

test: .venv/dev
	$(BIN)/pytest -n 4 --dist worksteal --ignore=tests/system

test-system: .venv/dev
	$(BIN)/pytest -n 2 --dist loadfile tests/system

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell .
	$(BIN)/pytest -q tests/unit/test_wording.py
	$(BIN)/pyright
	$(BIN)/plankeeper openapi --check openapi.json
	@scripts/audit.sh

fmt: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

openapi: .venv/dev
	$(BIN)/plankeeper openapi > openapi.json

fuzz: .venv/dev
	scripts/fuzz.sh

soak: .venv/dev
	scripts/soak.sh

bench: .venv/run
	$(BIN)/python -m benchmarks run

bench-quick: .venv/run
	$(BIN)/python -m benchmarks run --quick

bench-console: .venv/run
	$(BIN)/python -m benchmarks console

# The pictures of docs/console.md. Needs Chromium (Debian: apt-get install chromium).
screenshots: .venv/dev
	cd tests && ../$(BIN)/python -m browser.screenshots ../docs/console

bench-flat: .venv/run
	$(BIN)/python -m benchmarks flat

.venv/run: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Plankeeper needs Python 3.11 or newer, and $(PYTHON) is " + sys.version.split()[0] + ": run make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev: .venv/run requirements-dev.lock
	$(BIN)/pip install --quiet --require-hashes --requirement requirements-dev.lock
	@touch $@

# The build tools stand in both locks, so that an install needs nothing that is not pinned.
lock:
	$(PYTHON) -m venv .venv/locking
	.venv/locking/bin/pip install --quiet pip-tools
	.venv/locking/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --no-header --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra build -o requirements.lock pyproject.toml
	.venv/locking/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --no-header --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra build --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	rm -rf .venv/locking
