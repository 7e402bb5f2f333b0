#!/usr/bin/env bash
# Fail if .venv is of another version of Python than the program named by the argument: make wouldn't create it again.
set -euo pipefail
cd "$(dirname "$0")/.."

version='import sys; print(*sys.version_info[:2], sep=".")'
wanted=$("$1" -c "$version")
existing=$(.venv/bin/python -c "$version")
if [ "$wanted" != "$existing" ]; then
    echo "The environment in .venv is of Python $existing, not $wanted: delete .venv, and make creates it again." >&2
    exit 1
fi
