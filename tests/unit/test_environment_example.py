"""`packaging/environment.example` has each setting with its default and the first sentence about it."""

import re
from dataclasses import fields
from pathlib import Path

from plankeeper.core.settings import Settings

FILE = Path(__file__).parents[2] / "packaging/environment.example"
REQUIRED = {
    "PLANKEEPER_DATABASE_URL",
    "PLANKEEPER_SECRET_KEY_FILE",
    "PLANKEEPER_PUBLIC_URL",
    "PLANKEEPER_TRUSTED_PROXIES",
}


def entries() -> dict[str, tuple[str, str]]:
    """The comment and the value of each setting of the file."""
    found = re.findall(r"^((?:# .+\n)+)#?(PLANKEEPER_\w+)=(.*)$", FILE.read_text(), re.MULTILINE)
    return {name: (" ".join(re.findall(r"^# (.+)$", comment, re.MULTILINE)), value) for comment, name, value in found}


def first_sentence(meaning: str) -> str:
    """Without links and code marks."""
    text = re.sub(r"\[([^]]+)\]\([^)]+\)", r"\1", meaning).replace("`", "")
    return re.split(r"(?<=\.) (?=[A-Z])", text)[0]


def test_the_file_has_each_setting_with_its_first_sentence() -> None:
    expected = {each.metadata["name"]: first_sentence(each.metadata["meaning"]) for each in fields(Settings)}
    assert {name: comment for name, (comment, _) in entries().items()} == expected


def test_settings_that_are_not_required_have_their_default() -> None:
    defaults = {each.metadata["name"]: each.metadata["default"] for each in fields(Settings)}
    values = {name: value for name, (_, value) in entries().items() if name not in REQUIRED}
    assert values == {name: value for name, value in defaults.items() if name not in REQUIRED}


def test_only_required_settings_are_set_and_a_server_accepts_them() -> None:
    values = dict(re.findall(r"^(PLANKEEPER_\w+)=(.*)$", FILE.read_text(), re.MULTILINE))
    assert set(values) == REQUIRED
    settings = Settings.read(values)
    assert settings.public_url == "https://plans.example.com"
