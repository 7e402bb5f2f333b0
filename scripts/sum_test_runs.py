#!/usr/bin/env python3
# ruff: noqa: T201 - a script, which prints
"""Print the sum of all pytest runs in a log, as `N passed, N failed, N skipped`. The status is 1 if no test ran."""

import re
import sys
from collections import Counter
from pathlib import Path

# pytest's last line, also with -q: `=== 2 failed, 10 passed, 1 skipped in 3.21s (0:00:03) ===`
_CLOSING_LINE = re.compile(r"^(?:=+ )?((?:\d+ [a-z]+(?:, )?)+) in \d+\.\d+s\b", re.MULTILINE)
_COUNT = re.compile(r"(\d+) ([a-z]+)")
_FAILURES = ("failed", "error", "errors")


def main(log: Path) -> int:
    counts = Counter[str]()
    for line in _CLOSING_LINE.findall(log.read_text(errors="replace")):
        for number, word in _COUNT.findall(line):
            counts[word] += int(number)
    failed = sum(counts[each] for each in _FAILURES)
    print(f"{counts['passed']} passed, {failed} failed, {counts['skipped']} skipped")
    return 0 if counts["passed"] + failed else 1


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
