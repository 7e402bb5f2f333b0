"""The mail about an API key that expires soon."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.mail.messages import AddressedText, Text, console_url, format_time, short_name
from plankeeper.mail.store import MailWriters, get_owner_recipient


class KeyExpiringMail(Struct, tag_field="kind", tag="key_expiring"):
    """A notice to the owners: an API key expires soon."""

    plan_manager_id: UUID
    name: str
    last_four: str
    expires_at: datetime
    account_id: UUID | None = None  # the owner, in the mail of each


async def _write_key_expiring(
    db: Executor, settings: Settings, content: KeyExpiringMail, _at: datetime
) -> AddressedText | None:
    owner = await get_owner_recipient(db, content)
    if owner is None:
        return None
    url, expires_at = f"{console_url(settings)}/settings/keys", format_time(content.expires_at, settings.time_zone)
    text = key_expiring_text(url, owner.plan_manager_name, content.name, content.last_four, expires_at)
    return AddressedText(owner.email, text)


WRITERS: MailWriters = {KeyExpiringMail: _write_key_expiring}


def key_expiring_text(url: str, plan_manager: str, key_name: str, last_four: str, expires_at: str) -> Text:
    """The notice of an API key that expires soon."""
    body = f"""\
An API key of {short_name(plan_manager)} expires on {expires_at}:

{short_name(key_name)} (...{last_four})

Programs that use it will then be rejected. To replace it, rotate it:

{url}
"""
    return Text(f"API key expires soon: {short_name(plan_manager)}", body)
