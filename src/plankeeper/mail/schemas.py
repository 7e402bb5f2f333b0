"""Mails that are waiting to be sent: what each is about. They contain no links: those are created when it is sent."""

from datetime import datetime
from uuid import UUID

from msgspec import Raw, Struct


class PasswordResetMail(Struct, tag_field="kind", tag="password_reset"):
    """A link to reset a password. `email` was typed into a form, and doesn't necessarily have an account."""

    email: str


class InvitationMail(Struct, tag_field="kind", tag="invitation"):
    """The link of an invitation."""

    plan_manager_id: UUID
    invitation_id: UUID


class NewDeviceMail(Struct, tag_field="kind", tag="new_device"):
    """A notice of a sign-in on an unknown device."""

    account_id: UUID
    signed_in_at: datetime
    address: str
    user_agent: str


class WebhookDisabledMail(Struct, tag_field="kind", tag="webhook_disabled"):
    """A notice to the owners: attempts have failed for so long that a webhook endpoint was disabled."""

    plan_manager_id: UUID
    endpoint_id: UUID
    url: str
    reason: str
    account_id: UUID | None = None  # the owner, in the mail of each


class KeyExpiringMail(Struct, tag_field="kind", tag="key_expiring"):
    """A notice to the owners: an API key expires soon."""

    plan_manager_id: UUID
    name: str
    last_four: str
    expires_at: datetime
    account_id: UUID | None = None  # the owner, in the mail of each


OwnerMail = WebhookDisabledMail | KeyExpiringMail
MailContent = PasswordResetMail | InvitationMail | NewDeviceMail | OwnerMail


class OutgoingMail(Struct):
    """A row of `outgoing_mails` that was claimed."""

    id: UUID
    content: Raw
    attempt_count: int


class MailedInvitation(Struct):
    """An invitation as its mail describes it."""

    email: str
    role: str
    invited_by: str
    expires_at: datetime
    plan_manager_name: str


class OwnerRecipient(Struct):
    """The email of an owner, and the name of the plan manager."""

    email: str
    plan_manager_name: str
