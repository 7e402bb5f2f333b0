#!/usr/bin/env bash
# Run the fault and load tests in full: every round of kills, every failover, complete rate-limit windows, the plans of
# lists on each version of PostgreSQL, and each page of the console in both themes and both widths. Prints the
# measurements of each test. `make test-system` runs shorter versions of the same tests.
#
#   scripts/soak.sh [pytest options, such as -k kills]
set -euo pipefail
cd "$(dirname "$0")/.."

export PLANKEEPER_SOAK=1
exec .venv/bin/pytest -q -raP --durations=0 --durations-min=5 "$@" tests/system/faults tests/system/load tests/system/clusters tests/system/patroni tests/system/plans tests/system/webhooks tests/system/monitoring tests/browser/test_every_page.py
