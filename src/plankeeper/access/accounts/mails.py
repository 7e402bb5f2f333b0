"""The mails about accounts: links to reset a password, invitations, and notices of new devices."""

from datetime import datetime
from uuid import UUID

from msgspec import Struct

from plankeeper.access.accounts import link_store
from plankeeper.access.policy import PASSWORD_RESET_LIFETIME
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.mail.messages import AddressedText, Text, console_url, format_time, short_name
from plankeeper.mail.store import MailWriters


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


async def _write_password_reset(
    db: Executor, settings: Settings, content: PasswordResetMail, at: datetime
) -> AddressedText | None:
    """Only the hash of the token is stored. Another attempt creates another token, which replaces the one before."""
    token = new_token()
    expires_at = at + PASSWORD_RESET_LIFETIME
    email = await link_store.upsert_reset_link(db, content.email, hash_token(token), expires_at)
    if email is None:
        return None
    return AddressedText(email, password_reset_text(f"{console_url(settings)}/reset-password/{token}", email))


async def _write_invitation(
    db: Executor, settings: Settings, content: InvitationMail, at: datetime
) -> AddressedText | None:
    token = new_token()
    invited = await link_store.renew_invitation_link(
        db, content.plan_manager_id, content.invitation_id, hash_token(token), at
    )
    if invited is None:
        return None
    expires_at = format_time(invited.expires_at, settings.time_zone)
    url = f"{console_url(settings)}/invitations/{token}"
    text = invitation_text(url, invited.plan_manager_name, invited.invited_by, invited.role, expires_at)
    return AddressedText(invited.email, text)


async def _write_new_device(
    db: Executor, settings: Settings, content: NewDeviceMail, _at: datetime
) -> AddressedText | None:
    email = await link_store.get_email(db, content.account_id)
    if email is None:
        return None
    signed_in_at = format_time(content.signed_in_at, settings.time_zone)
    url = f"{console_url(settings)}/account"
    return AddressedText(email, new_device_text(url, email, signed_in_at, content.address, content.user_agent))


WRITERS: MailWriters = {
    PasswordResetMail: _write_password_reset,
    InvitationMail: _write_invitation,
    NewDeviceMail: _write_new_device,
}


def password_reset_text(url: str, email: str) -> Text:
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


def invitation_text(url: str, plan_manager: str, inviter: str, role: str, expires_on: str) -> Text:
    """The link to join a plan manager."""
    body = f"""\
{short_name(inviter)} invites you to join {short_name(plan_manager)} on Plankeeper, with the role {role}.
To accept the invitation, open this link:

{url}

The link works once, until {expires_on}. Don't pass it on.

If you don't know what this is about, ignore this mail.
"""
    return Text(f"Invitation to {short_name(plan_manager)}", body)


def new_device_text(url: str, email: str, signed_in_at: str, address: str, user_agent: str) -> Text:
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
