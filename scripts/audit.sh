#!/usr/bin/env bash
# Look for known faults in the dependencies that are pinned for running. It fails for a fault that is known. Where it
# cannot look (no pip-audit, no network), it says so and passes: only a finding is a reason to stop.
#
#   scripts/audit.sh [LOCK]
set -euo pipefail
cd "$(dirname "$0")/.."

lock=${1:-requirements.lock}
if ! [ -x .venv/bin/pip-audit ]; then
    echo "Known faults: not looked for, because pip-audit is not installed."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# With hashes in the lock there is nothing to resolve, so nothing is installed.
timeout 120 .venv/bin/pip-audit --requirement "$lock" --require-hashes --disable-pip --timeout 10 \
    --progress-spinner off --format json --output "$folder/report" >/dev/null 2>"$folder/err" || true

# pip-audit calls it a success when the service knows none of the names, as one that is no such service does.
.venv/bin/python - "$folder/report" "$folder/err" <<'PYTHON'
import json
import sys
from pathlib import Path

report, errors = (Path(each) for each in sys.argv[1:])
if not report.exists():
    why = (errors.read_text().strip().splitlines() or ["no answer in time"])[-1]
    sys.exit(print(f"Known faults: could not be looked for: {why[:300]}"))
found = json.loads(report.read_text())["dependencies"]
looked_at = [each for each in found if "vulns" in each]
missing = [each["name"] for each in found if "vulns" not in each]
if not looked_at:
    sys.exit(print("Known faults: could not be looked for: no advisory service that knows these packages answers."))
faults = [(each, fault) for each in looked_at for fault in each["vulns"]]
for each, fault in faults:
    mended = f"mended in {', '.join(fault['fix_versions'])}" if fault["fix_versions"] else "not mended yet"
    print(f"{each['name']} {each['version']} has the known fault {fault['id']}, {mended}.")
print(f"Known faults: {len(faults)} in {len(looked_at)} dependencies.")
if missing:
    print(f"Not looked at: {', '.join(missing)}.")
sys.exit(1 if faults else 0)
PYTHON
