"""Writes a mail when it is sent: looks up the recipient, and creates the tokens of links."""

from datetime import datetime
from typing import NamedTuple

from plankeeper.access.policy import PASSWORD_RESET_LIFETIME
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.mail import messages, recipient_store
from plankeeper.mail.messages import Text
from plankeeper.mail.schemas import (
    InvitationMail,
    KeyExpiringMail,
    MailContent,
    NewDeviceMail,
    OwnerMail,
    PasswordResetMail,
)


class AddressedText(NamedTuple):
    """A text and the email that it goes to."""

    recipient: str
    text: Text


async def write(db: Executor, settings: Settings, content: MailContent, at: datetime) -> AddressedText | None:
    """The mail; None if its recipient or its invitation doesn't exist any more, or never did.

    Only the hashes of tokens are stored. Another attempt creates another token, which replaces the one before.
    """
    console_url = f"{settings.require_public_url('PLANKEEPER_SMTP_URL')}/console"
    if isinstance(content, PasswordResetMail):
        return await _write_password_reset(db, console_url, content, at)
    if isinstance(content, InvitationMail):
        return await _write_invitation(db, settings, console_url, content, at)
    if isinstance(content, NewDeviceMail):
        return await _write_new_device(db, settings, console_url, content)
    return await _write_owner_mail(db, settings, console_url, content)


async def _write_password_reset(
    db: Executor, console_url: str, content: PasswordResetMail, at: datetime
) -> AddressedText | None:
    token = new_token()
    expires_at = at + PASSWORD_RESET_LIFETIME
    email = await recipient_store.upsert_reset_link(db, content.email, hash_token(token), expires_at)
    if email is None:
        return None
    return AddressedText(email, messages.password_reset(f"{console_url}/reset-password/{token}", email))


async def _write_invitation(
    db: Executor, settings: Settings, console_url: str, content: InvitationMail, at: datetime
) -> AddressedText | None:
    token = new_token()
    invited = await recipient_store.renew_invitation_link(
        db, content.plan_manager_id, content.invitation_id, hash_token(token), at
    )
    if invited is None:
        return None
    expires_at = messages.format_time(invited.expires_at, settings.time_zone)
    url = f"{console_url}/invitations/{token}"
    text = messages.invitation(url, invited.plan_manager_name, invited.invited_by, invited.role, expires_at)
    return AddressedText(invited.email, text)


async def _write_new_device(
    db: Executor, settings: Settings, console_url: str, content: NewDeviceMail
) -> AddressedText | None:
    email = await recipient_store.get_email(db, content.account_id)
    if email is None:
        return None
    signed_in_at = messages.format_time(content.signed_in_at, settings.time_zone)
    url = f"{console_url}/account"
    return AddressedText(email, messages.new_device(url, email, signed_in_at, content.address, content.user_agent))


async def _write_owner_mail(
    db: Executor, settings: Settings, console_url: str, content: OwnerMail
) -> AddressedText | None:
    if content.account_id is None:
        return None
    owner = await recipient_store.get_owner_recipient(db, content.plan_manager_id, content.account_id)
    if owner is None:
        return None
    if isinstance(content, KeyExpiringMail):
        url, expires_at = f"{console_url}/settings/keys", messages.format_time(content.expires_at, settings.time_zone)
        text = messages.key_expiring(url, owner.plan_manager_name, content.name, content.last_four, expires_at)
    else:
        url = f"{console_url}/settings/webhooks/{content.endpoint_id}"
        text = messages.webhook_disabled(url, owner.plan_manager_name, content.url, content.reason)
    return AddressedText(owner.email, text)
