"""The texts of mails: one line per name, whatever people have called things; links in one piece; the sender."""

from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest

from plankeeper.access.accounts.mails import invitation_text, new_device_text, password_reset_text
from plankeeper.access.api_keys.mails import key_expiring_text
from plankeeper.core.settings import Settings
from plankeeper.mail import messages
from plankeeper.webhooks.mails import webhook_disabled_text

LINK = f"https://plans.example.com/console/invitations/{'x' * 43}"
NOW = datetime(2026, 11, 22, 7, 5, tzinfo=UTC)


def settings(public_url: str = "https://plans.example.com", **more: str) -> Settings:
    return Settings.read({"PLANKEEPER_PUBLIC_URL": public_url, **more})


def test_names_stay_on_their_line_and_are_cut() -> None:
    name = "Plans\r\nBcc: a@b.example\n\u2028Click https://evil.example " + "x" * 200
    text = invitation_text(LINK, name, name, "viewer", "tomorrow")
    message = messages.build_message(settings(), "sam@example.com", text, NOW)
    assert sorted(message.keys()) == sorted(
        ["From", "To", "Subject", "Date", "Message-ID", "Auto-Submitted", "Content-Type", "Content-Transfer-Encoding",
         "MIME-Version"]
    )  # fmt: skip
    assert str(message["Subject"]).startswith("Invitation to PlansBcc: a@b.exampleClick")
    assert len(message["Subject"]) < 120
    assert len(message.get_content().splitlines()) == 8


@pytest.mark.parametrize("name", ["Wattlebird Plans", "Wattlebïrd Plans"])
def test_a_link_is_one_line_of_the_message(name: str) -> None:
    text = invitation_text(LINK, name, "Robin", "viewer", "tomorrow")
    message = messages.build_message(settings(), "sam@example.com", text, NOW)
    assert f"\n{LINK}\n" in message.get_content()
    if name.isascii():
        assert f"\r\n{LINK}\r\n" in message.as_bytes().decode()


@pytest.mark.parametrize("path", ["x" * 1970, "x" * 968, "x" * 969, "x=%20" * 390, "ï" * 900])
def test_no_line_of_a_message_is_longer_than_mail_servers_accept(path: str) -> None:
    endpoint_url = f"https://receiver.example.com/{path}"
    text = webhook_disabled_text("https://plans.example.com/console", "Wattlebird Plans", endpoint_url, "it failed")
    message = messages.build_message(settings(), "sam@example.com", text, NOW)
    assert max(len(line) for line in message.as_bytes().split(b"\r\n")) <= 998
    assert f"\n{endpoint_url}\n" in message.get_content()


@pytest.mark.parametrize(
    "public_url, more, sender",
    [
        ("https://plans.example.com", {}, "plankeeper@plans.example.com"),
        ("https://plans.example.com:8443", {}, "plankeeper@plans.example.com"),
        ("https://192.0.2.1", {}, "plankeeper@[192.0.2.1]"),
        ("https://[2001:db8::1]", {}, "plankeeper@[IPv6:2001:db8::1]"),
        ("https://a.example", {"PLANKEEPER_MAIL_FROM": "Plans <p@b.example>"}, "Plans <p@b.example>"),
    ],
)
def test_the_sender_is_the_setting_or_an_address_at_the_public_host(
    public_url: str, more: dict[str, str], sender: str
) -> None:
    message = messages.build_message(settings(public_url, **more), "sam@example.com", messages.smtp_test("x"), NOW)
    assert str(message["From"]) == sender
    assert message["Message-ID"].endswith(f"@{message['From'].addresses[0].domain}>")


@pytest.mark.parametrize("recipient", ["", "sam", "a@b.example, c@d.example", "a@b.example\nBcc: c@d.example", "@b"])
def test_a_recipient_is_one_address(recipient: str) -> None:
    with pytest.raises(ValueError):  # noqa: PT011 - whatever the library says
        messages.build_message(settings(), recipient, messages.smtp_test("x"), NOW)


def test_times_are_in_the_plan_managers_zone() -> None:
    assert messages.format_time(NOW, ZoneInfo("Australia/Sydney")) == "22 November 2026, 18:05 AEDT"


HOSTILE = "=?utf-8?q?=0d=0aBcc=3a_somebody=40example.org=0d=0aX-Other=3a?= =?utf-8?b?DQpCY2M6IGE=?="


@pytest.mark.parametrize(
    "text",
    [
        password_reset_text(LINK, HOSTILE),
        invitation_text(LINK, HOSTILE, HOSTILE, "viewer", "Monday"),
        new_device_text(LINK, HOSTILE, "now", HOSTILE, HOSTILE),
        webhook_disabled_text(LINK, HOSTILE, HOSTILE, HOSTILE),
        key_expiring_text(LINK, HOSTILE, HOSTILE, "abcd", "Monday"),
        messages.smtp_test(HOSTILE),
    ],
)
def test_an_encoded_word_in_a_name_does_not_become_a_header(text: messages.Text) -> None:
    head, _, _ = messages.build_message(settings(), "sam@example.com", text, NOW).as_bytes().partition(b"\r\n\r\n")
    names = {line.partition(b":")[0] for line in head.split(b"\r\n") if not line.startswith((b" ", b"\t"))}
    assert names <= {
        b"From", b"To", b"Subject", b"Date", b"Message-ID", b"Auto-Submitted", b"Content-Type",
        b"Content-Transfer-Encoding", b"MIME-Version",
    }  # fmt: skip
