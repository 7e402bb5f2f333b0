"""The texts of mails, and messages as the mail server gets them: plain text in English."""

from datetime import datetime
from email.errors import MessageError
from email.headerregistry import Address
from email.message import EmailMessage
from email.policy import SMTP
from email.utils import format_datetime, make_msgid
from ipaddress import ip_address
from typing import NamedTuple
from urllib.parse import urlsplit
from zoneinfo import ZoneInfo

from plankeeper.access.policy import single_line
from plankeeper.core.setting_parsers import parse_mail_from
from plankeeper.core.settings import Settings

MAX_NAME_LENGTH = 100  # names are chosen by people, who could write a message of their own into them
MAX_LINE_LENGTH = 998  # octets without the line break, according to RFC 5322
# Lines are not wrapped, so that links stay whole.
_POLICY = SMTP.clone(max_line_length=MAX_LINE_LENGTH)


class Text(NamedTuple):
    """What a mail says."""

    subject: str
    body: str


def password_reset(url: str, email: str) -> Text:
    """The link to choose a new password."""
    body = f"""\
Somebody asked to reset the password of the Plankeeper account {email}.
To choose a new password, open this link:

{url}

The link works once, for 30 minutes. If you use two-factor authentication,
you will need a code to sign in, as always.

If it wasn't you, ignore this mail. Your password stays as it is.
"""
    return Text("Reset your Plankeeper password", body)


def invitation(url: str, plan_manager: str, inviter: str, role: str, expires_on: str) -> Text:
    """The link to join a plan manager."""
    body = f"""\
{_short(inviter)} invites you to join {_short(plan_manager)} on Plankeeper, with the role {role}.
To accept the invitation, open this link:

{url}

The link works once, until {expires_on}. Don't pass it on.

If you don't know what this is about, ignore this mail.
"""
    return Text(f"Invitation to {_short(plan_manager)}", body)


def new_device(url: str, email: str, signed_in_at: str, address: str, user_agent: str) -> Text:
    """The notice of a sign-in on an unknown device."""
    body = f"""\
Your Plankeeper account {email} was used to sign in on a new device:

Time:     {signed_in_at}
Network:  {address or "unknown"}
Browser:  {user_agent or "unknown"}

If it was you, you don't have to do anything. If it wasn't, change your
password and end the session:

{url}
"""
    return Text("New sign-in to your Plankeeper account", body)


def webhook_disabled(url: str, plan_manager: str, endpoint_url: str, reason: str) -> Text:
    """The notice of a webhook endpoint that was disabled."""
    body = f"""\
A webhook endpoint of {_short(plan_manager)} was disabled, because {reason}:

{endpoint_url}

It receives no more messages. When the receiver works again, enable the
endpoint and replay what it has missed:

{url}
"""
    return Text(f"Webhook endpoint disabled: {_short(plan_manager)}", body)


def key_expiring(url: str, plan_manager: str, key_name: str, last_four: str, expires_at: str) -> Text:
    """The notice of an API key that expires soon."""
    body = f"""\
An API key of {_short(plan_manager)} expires on {expires_at}:

{_short(key_name)} (...{last_four})

Programs that use it will then be rejected. To replace it, rotate it:

{url}
"""
    return Text(f"API key expires soon: {_short(plan_manager)}", body)


def smtp_test(public_url: str) -> Text:
    """The message of `plankeeper mail test`."""
    return Text("Test of Plankeeper", f"Plankeeper at {public_url} can send mails.\n")


def format_time(value: datetime, zone: ZoneInfo) -> str:
    """`22 November 2026, 18:05 AEDT`."""
    local = value.astimezone(zone)
    return f"{local.day} {local:%B %Y, %H:%M %Z}"


def build_message(settings: Settings, recipient: str, text: Text, at: datetime) -> EmailMessage:
    """The message to an address. Raises ValueError for an invalid address."""
    message = EmailMessage(_POLICY)
    message["From"] = sender_address(settings)
    message["To"] = _parse_address(recipient)
    # The library decodes an encoded word, and releases before 3.11.10 and 3.12.6 write its line breaks as they are.
    message["Subject"] = text.subject.replace("=?", "= ?")
    message["Date"] = format_datetime(at)
    message["Message-ID"] = make_msgid("plankeeper", message["From"].addresses[0].domain)
    message["Auto-Submitted"] = "auto-generated"  # asks for no automatic replies
    # Not quoted-printable if possible: it would break the links in the text as it is sent.
    is_plain = text.body.isascii() and all(len(line) <= MAX_LINE_LENGTH for line in text.body.splitlines())
    message.set_content(text.body, cte="7bit" if is_plain else "quoted-printable")
    return message


def sender_address(settings: Settings) -> str:
    """`PLANKEEPER_MAIL_FROM`, or an address at the host of the public URL."""
    if settings.mail_from:
        return settings.mail_from
    host = urlsplit(settings.require_public_url("PLANKEEPER_SMTP_URL")).hostname or ""
    try:
        version = ip_address(host).version
    except ValueError:
        return parse_mail_from(f"plankeeper@{host}")
    return f"plankeeper@[{'IPv6:' if version == 6 else ''}{host}]"


def _parse_address(email: str) -> Address:
    """Raises ValueError for an invalid address."""
    try:
        return Address(addr_spec=email)
    except (MessageError, IndexError):
        raise ValueError("the email is invalid") from None


def _short(name: str) -> str:
    line = single_line(name, MAX_NAME_LENGTH + 1)
    return line if len(line) <= MAX_NAME_LENGTH else f"{line[: MAX_NAME_LENGTH - 1]}…"
