"""Mails that are waiting to be sent, and recipients."""

from collections.abc import Awaitable, Callable, Mapping
from datetime import datetime
from typing import Any, Protocol
from uuid import UUID

from msgspec import Raw, Struct

from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.mail.messages import AddressedText

# Writes a mail when it is sent, from its stored subject and the time. None if its recipient or its subject no longer
# exists. A stored mail has no link: the link's token is created when the mail is written.
MailWriter = Callable[[Executor, Settings, Any, datetime], Awaitable[AddressedText | None]]
# The writer of each kind of mail, by the struct of its subject, which has a tag.
MailWriters = Mapping[type[Struct], MailWriter]


class OwnerMail(Protocol):
    """The subject of a mail to each owner of a plan manager."""

    plan_manager_id: UUID
    account_id: UUID | None  # the owner, in the mail of each


class OutgoingMail(Struct):
    """A row of `outgoing_mails` that was claimed."""

    id: UUID
    content: Raw
    attempt_count: int


class OwnerRecipient(Struct):
    """The email of an owner, and the name of the plan manager."""

    email: str
    plan_manager_name: str
