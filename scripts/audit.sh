#!/usr/bin/env bash
# Check the pinned dependencies for known vulnerabilities. It fails if there is one, or if the check itself fails. If no
# advisory service can be reached, it says so and passes.
#
#   scripts/audit.sh [LOCK...]
#
# Without arguments, it checks what servers install: requirements.lock, and the locks of its extras if they exist.
# AUDIT_SERVICES are the services to try, in this order. OSV_URL is the address of OSV.
set -euo pipefail
cd "$(dirname "$0")/.."

services=${AUDIT_SERVICES:-pypi osv}
osv_url=${OSV_URL:-https://api.osv.dev/v1/query}
locks=("$@")
if [ ${#locks[@]} -eq 0 ]; then
    for lock in requirements.lock requirements-embedded.lock requirements-telemetry.lock; do
        if [ -f "$lock" ]; then locks+=("$lock"); fi
    done
fi
unchecked=()
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT

# Checks a lock with a service, and prints the result. The status is 0 without known vulnerabilities, 2 if the service
# can't be used, and 1 otherwise.
check() {
    local lock=$1 service=$2 status=0
    rm -f "$folder/report"
    # The lock has hashes, so pip-audit has nothing to resolve or install.
    timeout 120 .venv/bin/pip-audit --requirement "$lock" --require-hashes --disable-pip --timeout 10 \
        --vulnerability-service "$service" --osv-url "$osv_url" --progress-spinner off --format json \
        --output "$folder/report" >/dev/null 2>"$folder/errors" || status=$?
    .venv/bin/python scripts/audit_report.py "$lock" "$service" "$status" "$folder/report" "$folder/errors"
}

for lock in "${locks[@]}"; do
    for service in $services; do
        status=0
        check "$lock" "$service" || status=$?
        if [ $status -ne 2 ]; then break; fi
    done
    if [ $status -eq 1 ]; then exit 1; fi
    if [ $status -eq 2 ]; then unchecked+=("$lock"); fi
done
if [ ${#unchecked[@]} -gt 0 ]; then
    echo "WARNING: NOT CHECKED for known vulnerabilities, because no advisory service could be used: ${unchecked[*]}"
fi
