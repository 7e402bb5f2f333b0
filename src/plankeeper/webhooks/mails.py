"""The mail about a webhook endpoint that was disabled."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.mail.messages import AddressedText, Text, console_url, short_name
from plankeeper.mail.store import MailWriters, get_owner_recipient


class WebhookDisabledMail(Struct, tag_field="kind", tag="webhook_disabled"):
    """A notice to the owners: attempts have failed for so long that a webhook endpoint was disabled."""

    plan_manager_id: UUID
    endpoint_id: UUID
    url: str
    reason: str
    account_id: UUID | None = None  # the owner, in the mail of each


async def _write_webhook_disabled(
    db: Executor, settings: Settings, content: WebhookDisabledMail, _at: datetime
) -> AddressedText | None:
    owner = await get_owner_recipient(db, content)
    if owner is None:
        return None
    url = f"{console_url(settings)}/settings/webhooks/{content.endpoint_id}"
    text = webhook_disabled_text(url, owner.plan_manager_name, content.url, content.reason)
    return AddressedText(owner.email, text)


WRITERS: MailWriters = {WebhookDisabledMail: _write_webhook_disabled}


def webhook_disabled_text(url: str, plan_manager: str, endpoint_url: str, reason: str) -> Text:
    """The notice of a webhook endpoint that was disabled."""
    body = f"""\
A webhook endpoint of {short_name(plan_manager)} was disabled, because {reason}:

{endpoint_url}

It receives no more messages. When the receiver works again, enable the
endpoint and replay what it has missed:

{url}
"""
    return Text(f"Webhook endpoint disabled: {short_name(plan_manager)}", body)
