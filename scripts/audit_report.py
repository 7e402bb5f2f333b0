# ruff: noqa: INP001, T201 - a script, which prints
"""Prints the result of pip-audit for `audit.sh`, whose header explains the statuses."""

import json
import re
import sys
from pathlib import Path
from typing import Any

TIMED_OUT = 124  # of `timeout`
UNUSABLE = 2
# What pip-audit prints if a service doesn't respond, or not as expected.
_SERVICE_ERRORS = re.compile(r"requests\.exceptions\.|urllib3\.exceptions\.|ServiceError|ConnectionError|[Tt]imed out")


def main(lock: str, service: str, status: str, report: Path, errors: Path) -> int:
    if not report.exists():
        text = errors.read_text()
        last_line = (text.strip().splitlines() or ["no output"])[-1][:300]
        is_unusable = int(status) == TIMED_OUT or _SERVICE_ERRORS.search(text)
        print(f"{lock}: {service} {'cannot be used' if is_unusable else 'failed'}: {last_line}")
        return UNUSABLE if is_unusable else 1
    return _print_report(lock, service, json.loads(report.read_text())["dependencies"])


def _print_report(lock: str, service: str, dependencies: list[dict[str, Any]]) -> int:
    # pip-audit also succeeds if the service knows none of the packages, as behind a mirror without advisories.
    checked = [each for each in dependencies if "vulns" in each]
    skipped = [each["name"] for each in dependencies if "vulns" not in each]
    if not checked:
        print(f"{lock}: {service} cannot be used: it knows none of the packages.")
        return UNUSABLE
    vulnerabilities = [(each, vulnerability) for each in checked for vulnerability in each["vulns"]]
    for each, vulnerability in vulnerabilities:
        versions = ", ".join(vulnerability["fix_versions"])
        fix = f"fixed in {versions}" if versions else "not fixed yet"
        print(f"{lock}: {each['name']} {each['version']} has the known vulnerability {vulnerability['id']}, {fix}.")
    print(
        f"{lock}: {len(vulnerabilities)} known vulnerabilities in {len(checked)} dependencies, according to {service}."
    )
    if skipped:
        print(f"{lock}: not checked, because {service} doesn't know them: {', '.join(skipped)}.")
    return 1 if vulnerabilities else 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:4], Path(sys.argv[4]), Path(sys.argv[5])))
