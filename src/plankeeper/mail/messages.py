"""Messages for the mail server, and the common parts of all mails: plain text in English."""

from collections.abc import Sequence
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

from plankeeper.core.formatting import single_line
from plankeeper.core.setting_parsers import parse_mail_from
from plankeeper.core.settings import Settings

MAX_NAME_LENGTH = 100  # names are chosen by people, who could use them to send a text of their own
MAX_LINE_LENGTH = 998  # octets without the line break, according to RFC 5322
# Lines are not wrapped, so that links stay whole.
_POLICY = SMTP.clone(max_line_length=MAX_LINE_LENGTH)


class Attachment(NamedTuple):
    """A file of a mail."""

    file_name: str
    media_type: str
    content: bytes


class Text(NamedTuple):
    """The text of a mail, and its files. `html` is the same text for programs that show HTML, if there is one."""

    subject: str
    body: str
    html: str | None = None
    attachments: Sequence[Attachment] = ()


class AddressedText(NamedTuple):
    """A text and the email that it goes to."""

    recipient: str
    text: Text


def smtp_test(public_url: str) -> Text:
    """The message of `plankeeper mail test`."""
    return Text("Test of Plankeeper", f"Plankeeper at {public_url} can send mails.\n")


def format_time(value: datetime, zone: ZoneInfo) -> str:
    """`22 November 2026, 18:05 AEDT`."""
    local = value.astimezone(zone)
    return f"{local.day} {local:%B %Y, %H:%M %Z}"


def console_url(settings: Settings) -> str:
    """The URL at which links in mails begin."""
    return f"{settings.require_public_url('PLANKEEPER_SMTP_URL')}/console"


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
    if text.html is not None:
        message.add_alternative(text.html, subtype="html", cte="quoted-printable")
    for each in text.attachments:
        main_type, _, subtype = each.media_type.partition("/")
        message.add_attachment(each.content, maintype=main_type, subtype=subtype, filename=each.file_name)
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


def short_name(name: str) -> str:
    """A name from a form, as one line of limited length."""
    line = single_line(name, MAX_NAME_LENGTH + 1)
    return line if len(line) <= MAX_NAME_LENGTH else f"{line[: MAX_NAME_LENGTH - 1]}…"
