# `make run` and `make test` are for everybody, the other targets for contributors.
PYTHON ?= python3
BIN := .venv/bin
HOST ?= 127.0.0.1
PORT ?= 8000
export PIP_DISABLE_PIP_VERSION_CHECK = 1
# Where it is set, as in many containers, each test process and each program that it starts compiles everything again.
export PYTHONDONTWRITEBYTECODE =

.DEFAULT_GOAL := help
.PHONY: help run test test-fast test-system test-cluster check fmt openapi release-openapi examples docs lock sbom fuzz soak bench bench-quick bench-flat bench-console bench-events bench-baseline screenshots

help:
	@echo "make run      start Plankeeper with sample data on http://$(HOST):$(PORT)"
	@echo "make test     run the tests of the API, the console and their parts: it needs only Python, PostgreSQL and Chromium"
	@echo "make test-fast       run the tests of make test that take about a minute together"
	@echo "make test-system     run the short form of the system tests: commands, browser, faults, load, clusters, Node, curl, clients"
	@echo "make test-cluster    run the tests of PostgreSQL under Patroni alone, and print what they measured"
	@echo "make check    check formatting, lint, spelling, types, sizes, openapi.json and known vulnerabilities of dependencies"
	@echo "make fmt      format the code"
	@echo "make openapi  regenerate openapi.json"
	@echo "make release-openapi regenerate openapi.json and record it as the document of a release"
	@echo "make docs     build the documentation site, which the server shows at /docs"
	@echo "make lock     pin new dependencies (UPGRADE=--upgrade: update all of them)"
	@echo "make sbom     write the list of the packages that servers install, as CycloneDX, to dist/plankeeper.cdx.json"
	@echo "make fuzz     run schemathesis against a temporary server for some minutes (EXAMPLES=, SEED=)"
	@echo "make soak     run the long form of the fault and load tests, and of make fuzz (two hours and more)"
	@echo "make examples regenerate the examples of openapi.json from the sample data"
	@echo "make screenshots     regenerate the console screenshots in docs/console"
	@echo "make bench-console   measure the time and the size of each console page with 100,000 participants"
	@echo "make bench-events    measure the order of events, and the feed, with millions of events (20 minutes)"
	@echo "make bench-baseline  record the processor time of requests that a system test compares with"
	@echo "make bench    compare Plankeeper with its peers (an hour); make bench-quick takes five minutes"

run: .venv/run
ifeq ($(origin PYTHON),command line)
	@scripts/check_python.sh "$(PYTHON)"
endif
	@exec $(BIN)/plankeeper serve --demo --build-docs --host $(HOST) --port $(PORT)

# The pages with the most parts in Chromium. The others, and the tests of commands, take minutes: make
# test-system runs them.
SHORT_BROWSER_TEST := tests/browser/test_pages_in_browser.py

# make check runs them.
STYLE_TESTS := tests/unit/test_wording.py tests/contract/test_limits.py

test: .venv/dev docs
	$(BIN)/pytest -n 3 --dist worksteal $(addprefix --ignore=,$(STYLE_TESTS)) \
		tests/unit tests/contract tests/api tests/console $(SHORT_BROWSER_TEST)

# Functions, the rules for all routes, statements, tables and pages, and each page of the console in short. Left out are
# migrations, the examples of the sample data, and tests of the project's own tools.
FAST_TESTS := tests/unit tests/contract $(addprefix tests/console/shell/test_,page_attacks.py page_pipeline.py form_errors.py)
NOT_FAST := tests/contract/test_openapi_examples.py $(addprefix tests/unit/test_,ci_run.py locks.py)

test-fast: .venv/dev docs
	$(BIN)/pytest -n 2 --dist worksteal $(addprefix --ignore=,$(NOT_FAST) $(STYLE_TESTS)) \
		--ignore-glob='tests/contract/*migration*' --ignore-glob='tests/contract/*upgrade*' $(FAST_TESTS)

# They compare times: nothing else may run meanwhile.
TIMED_TESTS := $(addprefix tests/system/load/test_,many_plan_managers.py over_capacity.py processor_time.py quota.py \
	sign_in_flood.py)

test-system: .venv/dev .venv/clients/ready docs
	$(BIN)/pytest -n 3 --dist loadfile --no-loadscope-reorder $(addprefix --ignore=,$(SHORT_BROWSER_TEST) $(TIMED_TESTS)) \
		tests/system tests/browser tests/cli
	$(BIN)/pytest $(TIMED_TESTS)

test-cluster: .venv/dev
	$(BIN)/pytest -rP tests/system/patroni

check: .venv/dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/codespell .
	$(BIN)/pytest -q $(STYLE_TESTS)
	$(BIN)/pyright
	$(BIN)/plankeeper openapi --check openapi.json
	@scripts/audit.sh

fmt: .venv/dev
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

openapi: .venv/dev
	$(BIN)/plankeeper openapi > openapi.json

# With each release: the tests compare later versions of the document with this one.
release-openapi: openapi
	mkdir -p tests/contract/released
	cp openapi.json tests/contract/released/openapi.json

# The documentation site, in the folder from which the server and the wheel take it. It is replaced at once.
SITE := src/plankeeper/http/public/static/site
docs: $(SITE)/manifest.json

$(SITE)/manifest.json: .venv/docs/ready mkdocs.yml openapi.json CHANGELOG.md CONTRIBUTING.md SECURITY.md benchmarks/README.md \
		$(shell find docs scripts/documentation -type f -not -name '*.pyc')
	rm -rf $(SITE).new
	NO_MKDOCS_2_WARNING=1 .venv/docs/bin/mkdocs build --quiet --strict --site-dir $(SITE).new
	rm -rf $(SITE) && mv $(SITE).new $(SITE)

.venv/docs/ready: requirements-docs.lock
	"$(PYTHON)" -m venv .venv/docs
	.venv/docs/bin/pip install --quiet --require-hashes --requirement requirements-docs.lock
	@touch $@

fuzz: .venv/dev
	scripts/fuzz.sh

soak: .venv/dev
	scripts/soak.sh
	EXAMPLES=1000 EXAMPLES_WITHOUT_KEY=1000 scripts/fuzz.sh

bench: .venv/run
	$(BIN)/python -m benchmarks run

bench-quick: .venv/run
	$(BIN)/python -m benchmarks run --quick

# The processor time of requests in relation to the bare handler's, with which a test compares.
bench-baseline: .venv/run
	$(BIN)/python -m benchmarks record

bench-console: .venv/dev
	$(BIN)/python -m benchmarks.console

bench-events: .venv/dev
	$(BIN)/python -m benchmarks.events

# The packages that servers install, as a CycloneDX document.
sbom: .venv/dev
	mkdir -p dist
	$(BIN)/cyclonedx-py requirements requirements.lock --pyproject pyproject.toml --output-reproducible \
		--output-file dist/plankeeper.cdx.json

examples: openapi
	cd tests && ../$(BIN)/python -m support.openapi_examples
	$(BIN)/plankeeper openapi > openapi.json

# Screenshots for docs/console.md. They need Chromium (Debian: apt-get install chromium-headless-shell).
screenshots: .venv/dev
	cd tests && ../$(BIN)/python -m browser.screenshots ../docs/console

bench-flat: .venv/run
	$(BIN)/python -m benchmarks flat

# The server with the embedded PostgreSQL. The build tools are installed too: an editable install uses them.
.venv/run: requirements-embedded.lock requirements-build.lock pyproject.toml
	@"$(PYTHON)" -c 'import sys; sys.exit("Plankeeper requires Python 3.11 or newer, but $(PYTHON) is " + sys.version.split()[0] + ": run make PYTHON=python3.11") if sys.version_info < (3, 11) else None'
	"$(PYTHON)" -m venv .venv
	$(BIN)/pip install --quiet --require-hashes --requirement requirements-embedded.lock --requirement requirements-build.lock
	$(BIN)/pip install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

.venv/dev: .venv/run requirements-dev.lock
	$(BIN)/pip install --quiet --require-hashes --requirement requirements-dev.lock
	@touch $@

# The generators of clients for the API, for the tests. Each requires many packages that the program doesn't use.
.venv/clients/ready: requirements-clients.lock
	"$(PYTHON)" -m venv --clear .venv/clients
	.venv/clients/bin/pip install --quiet --require-hashes --requirement requirements-clients.lock
	@touch $@

# Each lock is complete by itself. Each is constrained by the ones before it, so that they pin the same versions.
# `make lock` keeps existing pins where it can, and `make lock UPGRADE=--upgrade` updates all of them.
PIP_COMPILE = .venv/locking/bin/pip-compile --quiet $(UPGRADE) --generate-hashes --allow-unsafe --no-header --strip-extras \
	--no-emit-index-url --no-emit-find-links --no-emit-trusted-host
BUILD_TOOLS = --build-deps-for wheel --build-deps-for editable
lock:
	"$(PYTHON)" -m venv .venv/locking
	.venv/locking/bin/pip install --quiet pip-tools
	$(PIP_COMPILE) -o requirements.lock pyproject.toml
	$(PIP_COMPILE) --extra embedded -c requirements.lock -o requirements-embedded.lock pyproject.toml
	$(PIP_COMPILE) --extra telemetry -c requirements.lock -c requirements-embedded.lock -o requirements-telemetry.lock pyproject.toml
	$(PIP_COMPILE) --only-build-deps $(BUILD_TOOLS) -c requirements-embedded.lock -o requirements-build.lock pyproject.toml
	$(PIP_COMPILE) --extra embedded --extra telemetry --extra dev $(BUILD_TOOLS) -c requirements-embedded.lock \
		-c requirements-telemetry.lock -c requirements-build.lock -o requirements-dev.lock pyproject.toml
	$(PIP_COMPILE) -c requirements-dev.lock -o requirements-docs.lock requirements-docs.in
	$(PIP_COMPILE) -c requirements-dev.lock -o requirements-clients.lock requirements-clients.in
	rm -rf .venv/locking
