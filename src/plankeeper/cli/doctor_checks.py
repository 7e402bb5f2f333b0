"""Warnings of `plankeeper doctor` that need no database."""

# The first releases without CVE-2024-7592 and older vulnerabilities, by minor version.
_FIXED_PYTHONS = {(3, 11): 10, (3, 12): 6}


def python_warnings(version: tuple[int, int, int]) -> list[tuple[str, str]]:
    """A warning if this release of Python has known vulnerabilities."""
    major, minor, micro = version
    fixed = _FIXED_PYTHONS.get((major, minor), 0)
    if micro >= fixed:
        return []
    text = f"Python {major}.{minor}.{micro} has known vulnerabilities: upgrade to {major}.{minor}.{fixed} or newer"
    return [("warn", text)]
