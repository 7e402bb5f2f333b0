# `make run` and `make test` are for everybody, the other targets for contributors.
PYTHON ?= python3
BIN := .venv/bin
HOST ?= 127.0.0.1
PORT ?= 8000
export PIP_DISABLE_PIP_VERSION_CHECK = 1

.DEFAULT_GOAL := help
.PHONY: help run test test-system check fmt openapi lock fuzz soak bench bench-quick bench-flat bench-console screenshots

help:
	@echo "make run      start Plankeeper with sample data on http://$(HOST):$(PORT)"
	@echo "make test     run the tests that need only Python, PostgreSQL and Chromium"
	@echo "make test-system     run the short form of the system tests: faults, load, clusters, Node, curl"
	@echo "make check    check formatting, lint, spelling, types, openapi.json and known vulnerabilities of dependencies"
	@echo "make fmt      format the code"
	@echo "make openapi  regenerate openapi.json"
	@echo "make lock     update the pinned dependencies"
	@echo "make fuzz     run schemathesis against a temporary server for two minutes (EXAMPLES=, SEED=)"
	@echo "make soak     run the long form of the fault and load tests: twenty minutes at most"
	@echo "make screenshots     regenerate the console screenshots in docs/console"
	@echo "make bench-console   measure the time and the size of each console page with 100,000 participants"
	@echo "make bench    compare Plankeeper with its peers (half an hour); make bench-quick takes two minutes"

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

bench-console: .venv/dev
	$(BIN)/python -m benchmarks.console

# Screenshots for docs/console.md. They need Chromium (Debian: apt-get install chromium-headless-shell).
screenshots: .venv/dev
	cd tests && ../$(BIN)/python -m browser.screenshots ../docs/console

bench-flat: .venv/run
	$(BIN)/python -m benchmarks flat

.venv/run: requirements.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Plankeeper requires Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ": run make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --requirement requirements.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev: .venv/run requirements-dev.lock
	$(BIN)/pip install --quiet --require-hashes --requirement requirements-dev.lock
	@touch $@

# Both locks contain the build tools, so that every installed package is pinned.
lock:
	$(PYTHON) -m venv .venv/locking
	.venv/locking/bin/pip install --quiet pip-tools
	.venv/locking/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --no-header --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra build -o requirements.lock pyproject.toml
	.venv/locking/bin/pip-compile --quiet --upgrade --generate-hashes --allow-unsafe --no-header --strip-extras \
		--no-emit-index-url --no-emit-find-links --no-emit-trusted-host --extra build --extra dev -c requirements.lock -o requirements-dev.lock pyproject.toml
	rm -rf .venv/locking
