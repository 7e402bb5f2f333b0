#!/usr/bin/env bash
# Check the pinned run-time dependencies for known vulnerabilities. It fails if there is any. Without pip-audit or a
# network, it prints why it could not check, and passes.
#
#   scripts/audit.sh [LOCK]
set -euo pipefail
cd "$(dirname "$0")/.."

lock=${1:-requirements.lock}
if ! [ -x .venv/bin/pip-audit ]; then
    echo "Known vulnerabilities: not checked, because pip-audit is not installed."
    exit 0
fi
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# The lock has hashes, so pip-audit has nothing to resolve or install.
timeout 120 .venv/bin/pip-audit --requirement "$lock" --require-hashes --disable-pip --timeout 10 \
    --progress-spinner off --format json --output "$folder/report" >/dev/null 2>"$folder/err" || true

# pip-audit also succeeds if the advisory service knows none of the packages, so the report is checked.
.venv/bin/python - "$folder/report" "$folder/err" <<'PYTHON'
import json
import sys
from pathlib import Path

report, errors = (Path(each) for each in sys.argv[1:])
if not report.exists():
    reason = (errors.read_text().strip().splitlines() or ["no response in time"])[-1]
    sys.exit(print(f"Known vulnerabilities: not checked: {reason[:300]}"))
dependencies = json.loads(report.read_text())["dependencies"]
checked = [each for each in dependencies if "vulns" in each]
skipped = [each["name"] for each in dependencies if "vulns" not in each]
if not checked:
    sys.exit(print("Known vulnerabilities: not checked: the advisory service knows none of the packages."))
vulnerabilities = [(each, vulnerability) for each in checked for vulnerability in each["vulns"]]
for each, vulnerability in vulnerabilities:
    fix = f"fixed in {', '.join(vulnerability['fix_versions'])}" if vulnerability["fix_versions"] else "not fixed yet"
    print(f"{each['name']} {each['version']} has the known vulnerability {vulnerability['id']}, {fix}.")
print(f"Known vulnerabilities: {len(vulnerabilities)} in {len(checked)} dependencies.")
if skipped:
    print(f"Not checked: {', '.join(skipped)}.")
sys.exit(1 if vulnerabilities else 0)
PYTHON
