"""Every setting is documented, and the error of an invalid one names the valid values."""

from dataclasses import fields
from pathlib import Path

import pytest

from plankeeper.core.settings import OTHER_VARIABLES, SettingError, Settings


def test_every_setting_is_documented_with_its_default_and_meaning(project: Path) -> None:
    page = (project / "docs" / "settings.md").read_text()
    rows = {line.split("|")[1].strip(): line for line in page.splitlines() if line.startswith("| `PLANKEEPER_")}
    known = {f"`{field.metadata['name']}`": field.metadata for field in fields(Settings)}
    assert set(rows) == set(known)
    for name, each in known.items():
        default = f"`{each['default']}`" if each["default"] else "empty"
        assert rows[name] == f"| {name} | {default} | {each['meaning']} |"


def test_a_variable_that_is_no_setting_is_reported_with_the_nearest_one() -> None:
    names = [each.metadata["name"] for each in fields(Settings)]
    assert Settings.unknown_variables(dict.fromkeys([*names, *OTHER_VARIABLES, "PATH", "PLANKEEPER"], "x")) == []
    assert Settings.unknown_variables({"PLANKEEPER_SECRET_KEYS_FILE": "x", "PLANKEEPER_X": "y"}) == [
        "PLANKEEPER_SECRET_KEYS_FILE is not a setting, and has no effect: is PLANKEEPER_SECRET_KEY_FILE meant?",
        "PLANKEEPER_X is not a setting, and has no effect",
    ]
    for name in names:
        [sentence] = Settings.unknown_variables({f"{name}S": "x"})
        assert sentence.endswith(f": is {name} meant?")


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


PUBLIC = {"PLANKEEPER_PUBLIC_URL": "https://plans.example.com"}


@pytest.mark.parametrize(
    "url, host, port, uses_tls, uses_starttls, login",
    [
        ("smtp://mail.example.com", "mail.example.com", 587, False, True, ("", "")),
        ("smtp://Mail.Example.com:25/", "mail.example.com", 25, False, True, ("", "")),
        ("smtps://robin:a%40b%3Ac@mail.example.com", "mail.example.com", 465, True, False, ("robin", "a@b:c")),
        ("smtp://[::1]:2525?starttls=off", "::1", 2525, False, False, ("", "")),
        ("smtp://a:b@127.0.0.1?starttls=off", "127.0.0.1", 587, False, False, ("a", "b")),
    ],
)
def test_the_url_of_a_mail_server(
    url: str, host: str, port: int, uses_tls: bool, uses_starttls: bool, login: tuple[str, str]
) -> None:
    server = Settings.read(PUBLIC | {"PLANKEEPER_SMTP_URL": url}).smtp_server
    assert server
    assert (server.host, server.port, server.uses_tls, server.uses_starttls) == (host, port, uses_tls, uses_starttls)
    assert (server.username, server.password) == login


@pytest.mark.parametrize(
    "url, expected",
    [
        *(
            (url, "smtp:// or smtps:// with a host, such as smtp://user:password@mail.example.com:587")
            for url in (
                "mail.example.com",
                "http://mail.example.com",
                "smtp://",
                "smtp://mail.example.com:0",
                "smtp://mail.example.com:70000",
                "smtp://mail.example.com:http",
                "smtp://mail.example.com/path",
                "smtp://mail.example.com#x",
                "smtp://robin@mail.example.com",
                "smtp://mail example.com",
                "smtp://[::1",
                "smtp://mail.example.com?tls=off",
            )
        ),
        ("smtp://robin:hunter2@mail.example.com?starttls=off", "without a password if it has ?starttls=off"),
    ],
)
def test_an_invalid_url_of_a_mail_server_is_not_shown(url: str, expected: str) -> None:
    with pytest.raises(SettingError) as error:
        Settings.read(PUBLIC | {"PLANKEEPER_SMTP_URL": url})
    assert str(error.value).startswith(f"PLANKEEPER_SMTP_URL is invalid; it must be {expected}")
    assert "hunter2" not in str(error.value)


def test_the_password_of_a_mail_server_is_not_shown_with_the_settings() -> None:
    settings = Settings.read(PUBLIC | {"PLANKEEPER_SMTP_URL": "smtps://robin:hunter2@mail.example.com"})
    assert "mail.example.com" in repr(settings)
    assert "hunter2" not in repr(settings)


def test_a_mail_server_requires_a_public_url() -> None:
    with pytest.raises(SettingError, match=r"^PLANKEEPER_SMTP_URL requires PLANKEEPER_PUBLIC_URL, "):
        Settings.read({"PLANKEEPER_SMTP_URL": "smtp://mail.example.com"})
    settings = Settings.read({})
    with pytest.raises(SettingError, match=r"^Single sign-on requires PLANKEEPER_PUBLIC_URL, "):
        settings.require_public_url("Single sign-on")


@pytest.mark.parametrize(
    "value", ["robin@example.com", "Plans <robin@example.com>", '"Plans, Inc" <robin@example.com>']
)
def test_the_sender_of_mails(value: str) -> None:
    assert Settings.read({"PLANKEEPER_MAIL_FROM": value}).mail_from == value


@pytest.mark.parametrize(
    "value", ["robin", "robin@", "@example.com", "a@example.com, b@example.com", "a@b\nBcc: c@d", "röbin@example.com"]
)
def test_an_invalid_sender_of_mails_is_rejected(value: str) -> None:
    with pytest.raises(SettingError, match=r"it must be an email address, such as Plankeeper <plankeeper@example.com>"):
        Settings.read({"PLANKEEPER_MAIL_FROM": value})


def test_documents_are_beside_the_embedded_database() -> None:
    embedded = Settings.read({"PLANKEEPER_DATA_DIR": "/srv/my data"})
    assert embedded.storage_url == "file:///srv/my%20data/documents"
    own = {"PLANKEEPER_DATABASE_URL": "postgresql://db.example/plankeeper"}
    assert Settings.read(own).storage_url is None
    assert Settings.read(own | {"PLANKEEPER_DOCUMENTS_URL": "s3://a/b"}).storage_url == "s3://a/b"
