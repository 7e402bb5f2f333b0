#!/usr/bin/env bash
# The suites of faults and of load in full: every round of kills, every failover, whole windows of a quota. It prints
# the figures of each test. The same tests run shortened within `make test`.
#
#   scripts/soak.sh [what pytest takes, such as -k kills]
set -euo pipefail
cd "$(dirname "$0")/.."

export PLANKEEPER_SOAK=1
exec .venv/bin/pytest -q -raP --durations=0 --durations-min=5 "$@" tests/faults tests/soak
