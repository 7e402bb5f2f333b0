"""What `doctor` warns about without a database."""

import pytest

from plankeeper.cli.doctor_checks import python_warnings


@pytest.mark.parametrize("version", [(3, 11, 10), (3, 11, 11), (3, 12, 6), (3, 13, 0), (3, 14, 0)])
def test_a_fixed_python_needs_no_warning(version: tuple[int, int, int]) -> None:
    assert python_warnings(version) == []


@pytest.mark.parametrize("version, fixed", [((3, 11, 9), "3.11.10"), ((3, 11, 0), "3.11.10"), ((3, 12, 5), "3.12.6")])
def test_an_old_python_is_a_warning(version: tuple[int, int, int], fixed: str) -> None:
    text = f"Python {'.'.join(map(str, version))} has known vulnerabilities: upgrade to {fixed} or newer"
    assert python_warnings(version) == [("warn", text)]
