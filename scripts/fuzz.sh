#!/usr/bin/env bash
# Try the API with requests made from its own OpenAPI document: good, bad, and in chains. It starts a server of its own
# with demonstration data, and fails on a server error, an undocumented status or an answer that its schema refuses.
#
#   EXAMPLES=200 SEED=1 scripts/fuzz.sh
#
# EXAMPLES bounds the requests of an operation; the same SEED makes the same requests.
set -euo pipefail
cd "$(dirname "$0")/.."

examples=${EXAMPLES:-200}
seed=${SEED:-$RANDOM}
folder=$(mktemp -d)
chmod 711 "$folder" # the database's user passes through it
server=

stop() {
    status=$?
    if [ -n "$server" ]; then
        kill -TERM "$server" 2>/dev/null || true
        wait "$server" || true
    fi
    rm -rf "$folder"
    exit "$status"
}
trap stop EXIT

# More requests than a key may send, and bad keys on purpose.
export PLANKEEPER_RATE_LIMIT=off PLANKEEPER_AUTH_FAILURE_RATE_LIMIT=off PLANKEEPER_ACCESS_LOG=off
.venv/bin/plankeeper serve --demo --port 0 --workers 2 --data-dir "$folder/data" >"$folder/out" 2>"$folder/err" &
server=$!
until grep -q "is ready" "$folder/out"; do
    if ! kill -0 "$server" 2>/dev/null; then
        cat "$folder/out" "$folder/err"
        echo "The server did not start." >&2
        exit 1
    fi
    sleep 0.2
done
address=$(sed -n 's|^Documentation: *\(http[^ ]*\)/docs$|\1|p' "$folder/out")
key=$(sed -n 's|^API key: *\([^ ]*\).*|\1|p' "$folder/out")
plan_manager=$(sed -n 's|^Plan manager: *\([^ ]*\).*|\1|p' "$folder/out")

# Left out is the check that every request is taken that the document allows: some rules stand between members (a cursor
# without an offset, permissions with an email, references to what there is), where JSON Schema has no word for them.
# One worker: in several threads CPython 3.11 can fail to parse what hypothesis gives it.
keyless() {
    .venv/bin/schemathesis run "$address/openapi.json" \
        --header "X-Plan-Manager-Id: $plan_manager" \
        --checks all --exclude-checks positive_data_acceptance --continue-on-failure \
        --max-examples "$examples" --seed "$seed" --workers 1 --request-timeout 30 --no-shrink \
        --generation-database=none --no-color "$@"
}

try() {
    keyless --header "Authorization: Bearer $key" "$@"
}

failed=0
try --phases examples,coverage,fuzzing || failed=1
# Chains of requests hand on what was answered before, but no number as a request id: so it is given here.
try --phases stateful --header "X-Request-Id: fuzz" || failed=1
keyless --phases fuzzing || failed=1

if grep -q '"level":"error"\|"level":"critical"\|Traceback' "$folder/err"; then
    grep -A40 '"level":"error"\|"level":"critical"\|Traceback' "$folder/err" | head -200
    echo "The server logged an error." >&2
    failed=1
fi
exit "$failed"
