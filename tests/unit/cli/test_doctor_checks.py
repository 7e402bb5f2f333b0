"""The warnings of `doctor` without a database."""

import pytest

from plankeeper.cli.doctor import proxy_warnings, python_warnings
from plankeeper.core.settings import Settings


@pytest.mark.parametrize("version", [(3, 11, 10), (3, 11, 11), (3, 12, 6), (3, 13, 0), (3, 14, 0)])
def test_a_fixed_python_needs_no_warning(version: tuple[int, int, int]) -> None:
    assert python_warnings(version) == []


@pytest.mark.parametrize("version, fixed", [((3, 11, 9), "3.11.10"), ((3, 11, 0), "3.11.10"), ((3, 12, 5), "3.12.6")])
def test_an_old_python_is_a_warning(version: tuple[int, int, int], fixed: str) -> None:
    text = f"Python {'.'.join(map(str, version))} has known vulnerabilities: upgrade to {fixed} or newer"
    assert python_warnings(version) == [("warn", text)]


@pytest.mark.parametrize(
    "proxies, url, start",
    [
        ("", "", None),
        ("10.0.0.1", "https://plans.example.com", None),
        ("10.0.0.1", "", "PLANKEEPER_TRUSTED_PROXIES is set without PLANKEEPER_PUBLIC_URL: "),
        ("", "https://plans.example.com", "PLANKEEPER_PUBLIC_URL is set without PLANKEEPER_TRUSTED_PROXIES: "),
    ],
)
def test_half_of_the_settings_for_a_proxy_is_a_warning(proxies: str, url: str, start: str | None) -> None:
    settings = Settings.read({"PLANKEEPER_TRUSTED_PROXIES": proxies, "PLANKEEPER_PUBLIC_URL": url})
    warnings = proxy_warnings(settings)
    assert [state for state, _ in warnings] == (["warn"] if start else [])
    assert all(text.startswith(start or "") for _, text in warnings)
