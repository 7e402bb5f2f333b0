#!/usr/bin/env bash
# The suites of faults and of load in full: every round of kills, every failover, whole windows of a quota. It prints
# the figures of each test. `make test-system` runs the same tests in a short form.
#
#   scripts/soak.sh [what pytest takes, such as -k kills]
set -euo pipefail
cd "$(dirname "$0")/.."

export PLANKEEPER_SOAK=1
exec .venv/bin/pytest -q -raP --durations=0 --durations-min=5 "$@" tests/system/faults tests/system/load tests/system/clusters tests/system/webhooks
