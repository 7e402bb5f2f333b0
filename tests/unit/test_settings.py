"""Every setting is documented, and a wrong one says what would be right."""

from dataclasses import fields
from pathlib import Path

import pytest

from plankeeper.settings import SettingError, Settings


def test_every_setting_is_documented_with_its_default_and_meaning(project: Path) -> None:
    page = (project / "docs" / "settings.md").read_text()
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("| `PLANKEEPER_")}
    known = {f"`{field.metadata['name']}`": field.metadata for field in fields(Settings)}
    assert set(rows) == set(known)
    for name, each in known.items():
        default = f"`{each['default']}`" if each["default"] else "empty"
        assert rows[name] == f"| {name} | {default} | {each['meaning']} |"


@pytest.mark.parametrize(
    "name, value, expected",
    [
        ("PLANKEEPER_PORT", "http", "a port number from 0 to 65535"),
        ("PLANKEEPER_PORT", "70000", "a port number from 0 to 65535"),
        ("PLANKEEPER_WORKERS", "0", "a whole number above 0"),
        ("PLANKEEPER_POOL_SIZE", "-1", "a whole number above 0"),
        ("PLANKEEPER_TIME_ZONE", "Australia/Nowhere", "the name of a time zone, such as Australia/Sydney"),
        ("PLANKEEPER_TIME_ZONE", "../etc/passwd", "the name of a time zone, such as Australia/Sydney"),
        *(
            ("PLANKEEPER_PUBLIC_URL", value, "https:// with a host and no path, such as https://plans.example.com")
            for value in (
                "plans.example.com",
                "http://plans.example.com",
                "https://",
                "https://a/console",
                "https://a?b",
                "https://user@a",
                "https://a:0",
                "https://a:70000",
                "https://a b",
                "https://*.example.com",
                "https://a\nb",
                "https://a..b",
                "https://[::1",
                "https://пример.example",
            )
        ),
        ("PLANKEEPER_CORS_ORIGINS", "app.example.com", "origins such as https://app.example.com"),
    ],
)
def test_an_invalid_value_names_the_variable_and_the_valid_values(name: str, value: str, expected: str) -> None:
    with pytest.raises(SettingError) as error:
        Settings.read({name: value})
    assert str(error.value).startswith(f"{name} is {value!r}; it must be {expected}")


@pytest.mark.parametrize(
    "value, origin",
    [
        ("https://plans.example.com", "https://plans.example.com"),
        ("https://Plans.Example.com/", "https://plans.example.com"),
        ("https://plans.example.com:443", "https://plans.example.com"),
        ("https://plans:8443/", "https://plans:8443"),
        ("https://192.0.2.1", "https://192.0.2.1"),
        ("https://[2001:DB8::1]:8443", "https://[2001:db8::1]:8443"),
    ],
)
def test_the_public_url_has_the_form_that_browsers_send(value: str, origin: str) -> None:
    assert Settings.read({"PLANKEEPER_PUBLIC_URL": value}).public_url == origin


def test_an_empty_value_is_the_default() -> None:
    assert Settings.read(dict.fromkeys((each.metadata["name"] for each in fields(Settings)), "")) == Settings.read({})
    assert Settings.read({}).port == 8000
    assert Settings.read({}).data_dir == Path(".plankeeper")
