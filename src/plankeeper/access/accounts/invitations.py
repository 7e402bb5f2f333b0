"""Invitations to a plan manager: create, accept, revoke.

The link is mailed, so that accepting it proves the email. Without a mail server, the inviter passes it on.
"""

from datetime import UTC, datetime
from math import ceil
from uuid import UUID

from msgspec.structs import asdict
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import member_store, members, store
from plankeeper.access.accounts.audit import ClientInfo, account_actor
from plankeeper.access.accounts.credentials import (
    Counter,
    LoginError,
    VerifiedCredentials,
    register_attempt,
    sign_in_counters,
    verify_credentials,
)
from plankeeper.access.accounts.mails import InvitationMail
from plankeeper.access.accounts.schemas import NO_DETAILS, Invitation, LoginResult, OpenInvitation, RoleDetails
from plankeeper.access.accounts.sessions import open_session
from plankeeper.access.policy import (
    FAILURES_EXPIRE_AFTER,
    FREE_INVITATION_MAILS,
    FREE_INVITATION_MAILS_PER_PERSON,
    INVITATION_LIFETIME,
    INVITATION_MAIL_FIRST_DELAY,
)
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.events.recorder import record_event
from plankeeper.mail import store as mail_store


class _InvitationTakenError(Exception):
    """A concurrent request accepted the invitation or created the account."""


def invitation_path(token: str) -> str:
    """The path of an invitation's link."""
    return f"/console/invitations/{token}"


async def invite(
    ctx: WriteContext, email: str, role: str, name: str | None = None, details: RoleDetails = NO_DETAILS
) -> str | None:
    """Invite a person to the context's plan manager. Raises ValidationError.

    Returns the link's token. If mails are sent, it returns None, because only the invited person gets the link.
    An earlier open invitation for the same email is replaced, and its link stops working.
    """
    await members.require_owner(ctx)
    now, token = datetime.now(UTC), new_token()
    person = (members.validate_email(email), name, members.validate_role(role))
    inviter = (ctx.actor.display_name, ctx.actor.account_id)
    granted = await members.validate_details(ctx, person[-1], details)
    invitation = Invitation(uuid7(), *person, *inviter, now, now + INVITATION_LIFETIME, **asdict(granted))
    if await member_store.has_role(ctx.tx, ctx.plan_manager_id, invitation.email):
        raise ValidationError(email="belongs to a person who is already a member")
    sends_mail = ctx.settings.smtp_server is not None
    if sends_mail:
        await _count_mail(ctx, invitation.email, now)
    saved_invitation = await member_store.upsert_invitation(ctx.tx, ctx.plan_manager_id, invitation, hash_token(token))
    await record_event(ctx, "account.invited", None, saved_invitation)
    if not sends_mail:
        return token
    await mail_store.replace_invitation(
        ctx.tx, saved_invitation.id, InvitationMail(ctx.plan_manager_id, saved_invitation.id), now
    )
    return None


async def get_open(db: Executor, token: str) -> OpenInvitation | None:
    """The open invitation of a link."""
    return await member_store.get_open_invitation(db, hash_token(token), datetime.now(UTC))


async def accept(
    db: Database,
    settings: Settings,
    token: str,
    name: str,
    password: str,
    address: str = "",
    user_agent: str = "",
    device_token: str = "",
) -> LoginResult | None:
    """Accept an invitation and open a session, with a new account or the email's existing account and its password.

    None if the invitation isn't open. Raises LoginError and ValidationError. For an open invitation, neither the result
    nor its time reveals whether the email has an account: the password is verified first, also without an account.
    """
    client = ClientInfo.from_request(address, user_agent)
    open_invitation = await get_open(db, token)
    if open_invitation is None:
        return None
    email = open_invitation.invitation.email
    try:
        counters = await sign_in_counters(db, email, client, device_token)
        verified = await verify_credentials(db, settings, email, password, client, counters)
    except LoginError as error:
        if error.is_too_soon:
            raise
        members.validate_account(email, name, password, open_invitation.plan_manager_name)
        if open_invitation.has_account:
            raise
        account = await members.build_account(email, name, password, open_invitation.plan_manager_name)
        verified = VerifiedCredentials(account, None)
    try:
        async with db.transaction() as tx:
            return await _join(tx, settings, open_invitation, hash_token(token), verified, client, device_token)
    except _InvitationTakenError:
        return None


async def revoke(ctx: WriteContext, invitation_id: UUID) -> Invitation:
    """Revoke an open invitation and return it. Raises NotFound."""
    await members.require_owner(ctx)
    before = or_404(await member_store.delete_invitation(ctx.tx, ctx.plan_manager_id, invitation_id))
    await record_event(ctx, "account.invitation_withdrawn", before, None)
    return before


async def _count_mail(ctx: WriteContext, email: str, now: datetime) -> None:
    """Count a mail by its recipient and by the plan manager. Raises ValidationError during the delay of either."""
    await store.delete_old_throttles(ctx.tx, now - FAILURES_EXPIRE_AFTER)
    sender = f"invitation by {ctx.plan_manager_id}"
    limits = (
        (f"{email}\n{sender}", FREE_INVITATION_MAILS_PER_PERSON, "was sent an invitation a moment ago"),
        (f"\n{sender}", FREE_INVITATION_MAILS, "can't be invited yet, because many other people were invited"),
    )
    for subject, free_mails, reason in limits:
        counter = Counter(subject, free_mails, first_delay=INVITATION_MAIL_FIRST_DELAY)
        try:
            await register_attempt(ctx.tx, (counter,))
        except LoginError as error:
            minutes = ceil(error.retry_after / 60)
            message = f"{reason}: try again in {minutes} minute{'s' if minutes > 1 else ''}"
            raise ValidationError(email=message) from None


async def _join(
    tx: Transaction,
    settings: Settings,
    open_invitation: OpenInvitation,
    token_hash: bytes,
    verified: VerifiedCredentials,
    client: ClientInfo,
    device_token: str,
) -> LoginResult:
    account, plan_manager_id = verified.account, open_invitation.plan_manager_id
    has_account = verified.attempt is not None or await store.insert(tx, account)
    current = await store.select_for_update(tx, account.id) if has_account else None
    accepted = await member_store.accept_invitation(tx, plan_manager_id, token_hash, datetime.now(UTC))
    if current is None or current.password_hash != account.password_hash or not accepted:
        raise _InvitationTakenError
    ctx = WriteContext(tx, plan_manager_id, settings, account_actor(account))
    invitation = open_invitation.invitation
    await members.add(ctx, account, invitation.role, invitation.details)
    verified = VerifiedCredentials(current, verified.attempt)
    return await open_session(tx, settings, verified, client, plan_manager_id, device_token)
