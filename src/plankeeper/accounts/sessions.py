"""Signing in and out, and taking up an invitation: what the console and the command line do alike."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.accounts import member_store, passwords, store, totp
from plankeeper.accounts.audit import ClientInfo, account_actor, record_account_event
from plankeeper.accounts.credentials import VerifiedCredentials, record_failure, register_attempt, verify_credentials
from plankeeper.accounts.policy import (
    INVITATION_LIFETIME,
    ROLES,
    SESSION_LIFETIME,
    TWO_FACTOR_LIFETIME,
    csrf_token,
    hash_token,
    new_token,
    parse_recovery_code,
    single_line,
    validate_password,
)
from plankeeper.accounts.schemas import (
    Account,
    Invitation,
    LoginError,
    LoginResult,
    MemberEvent,
    NewSession,
    OpenInvitation,
    Role,
    Session,
)
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.events.recorder import record_event
from plankeeper.http.context import WriteContext, or_404
from plankeeper.http.errors import ApiError, ValidationError
from plankeeper.http.schemas import Email, decode_custom_type
from plankeeper.settings import Settings


class _InvitationTakenError(Exception):
    """Somebody else took up the invitation, or made the account, in the meantime."""


async def sign_in(
    db: Database, settings: Settings, email: str, password: str, address: str, user_agent: str
) -> LoginResult | LoginError:
    """Open a session for an email and its password."""
    client = ClientInfo(single_line(address, 100), single_line(user_agent, 500))
    verified = await verify_credentials(db, settings, single_line(email.strip(), 254), password, client)
    if isinstance(verified, LoginError):
        return verified
    new_hash = (
        await passwords.hash_password(password) if passwords.is_outdated(verified.account.password_hash) else None
    )
    async with db.transaction() as tx:
        account = await store.select_for_update(tx, verified.account.id)
        if account is None or account.password_hash != verified.account.password_hash:
            return LoginError()
        if new_hash:
            await store.set_password(tx, account.id, new_hash)
        return await _log_in(tx, settings, VerifiedCredentials(account, verified.throttle), client, None)


async def verify_two_factor(db: Database, settings: Settings, token: str, code: str) -> LoginResult | LoginError:
    """Complete a session with an authenticator's code or a recovery code; its token is a new one."""
    now = datetime.now(UTC)
    async with db.transaction() as tx:
        pending = await store.select_session_for_update(tx, hash_token(token), now)
        account = await store.select_for_update(tx, pending.account_id) if pending else None
        if pending is None or account is None or not pending.two_factor_pending:
            return LoginError()
        client = ClientInfo(pending.address, pending.user_agent)
        throttle = await register_attempt(tx, account.email, now)
        if isinstance(throttle, LoginError):
            return throttle
        if not await use_two_factor_code(tx, account, code):
            return await record_failure(tx, settings, account, throttle, client)
        await store.delete_session(tx, pending.token_hash)
        result = await _create_session(tx, account, client, pending.chosen_plan_manager_id, two_factor_pending=False)
        await store.delete_throttle(tx, account.email)
        await record_account_event(tx, settings, account, "account.signed_in", client)
        return result


async def get_session(db: Executor, token: str) -> Session | None:
    """The session of a token; null where it has ended, or there is none."""
    row = await store.get_session(db, hash_token(token), datetime.now(UTC))
    if row is None:
        return None
    active_memberships = [] if row.two_factor_pending else row.memberships
    roles: dict[UUID, str] = {each.plan_manager_id: each.role for each in active_memberships}
    plan_manager_id = row.chosen_plan_manager_id if row.chosen_plan_manager_id in roles else next(iter(roles), None)
    return Session(
        account_id=row.account_id,
        email=row.email,
        name=row.name,
        two_factor_pending=row.two_factor_pending,
        plan_manager_id=plan_manager_id,
        roles=roles,
        csrf=csrf_token(token),
        plan_manager_names={each.plan_manager_id: each.name for each in active_memberships},
        token_hash=hash_token(token),
        totp=row.totp,
    )


async def switch_plan_manager(tx: Transaction, session: Session, plan_manager_id: UUID) -> None:
    """Go on for another plan manager; raises NotFound where the session has no role for it."""
    or_404(session.roles.get(plan_manager_id))
    await store.set_chosen_plan_manager(tx, session.token_hash, plan_manager_id)


async def sign_out(db: Executor, token: str) -> None:
    await store.delete_session(db, hash_token(token))


async def invite(ctx: WriteContext, email: str, role: str, name: str | None = None) -> str:
    """Invite somebody to the call's plan manager; answers the token of the link. Raises ValidationError.

    Who was invited before and has not come gets a new link, and the old one ends.
    """
    await require_owner(ctx)
    now, token = datetime.now(UTC), new_token()
    invitation = Invitation(
        uuid7(),
        validate_email(email),
        name,
        validate_role(role),
        ctx.actor.name or ctx.actor.kind,
        now,
        now + INVITATION_LIFETIME,
    )
    if await member_store.has_role(ctx.tx, ctx.plan_manager_id, invitation.email):
        raise ValidationError(email="belongs to somebody who has a role here")
    saved_invitation = await member_store.upsert_invitation(ctx.tx, ctx.plan_manager_id, invitation, hash_token(token))
    await record_event(ctx, "account.invited", None, saved_invitation)
    return token


async def require_owner(ctx: WriteContext) -> None:
    """Raises ApiError where who changes people here has lost the role since their page was asked for.

    The roles are locked: nobody changes them until the transaction ends.
    """
    holders = await member_store.select_role_holders_for_update(ctx.tx, ctx.plan_manager_id)
    owners = [str(each.account_id) for each in holders if each.role == "owner"]
    if ctx.actor.kind == "user" and ctx.actor.id not in owners:
        raise ApiError("plan_manager_not_allowed", "Your role was changed meanwhile: only an owner may do this.")


async def get_invitation(db: Executor, token: str) -> OpenInvitation | None:
    """The open invitation of a link."""
    return await member_store.get_open_invitation(db, hash_token(token), datetime.now(UTC))


async def accept(
    db: Database, settings: Settings, token: str, name: str, password: str, address: str = "", user_agent: str = ""
) -> LoginResult | LoginError | None:
    """Take up an invitation and sign in: with a new account, or with the password of the one that the email has.

    Null where the invitation is not open; raises ValidationError where a new account's name or password won't do.
    """
    client = ClientInfo(single_line(address, 100), single_line(user_agent, 500))
    open_invitation = await get_invitation(db, token)
    if open_invitation is None:
        return None
    email = open_invitation.invitation.email
    if open_invitation.has_account:
        verified = await verify_credentials(db, settings, email, password, client)
    else:
        verified = VerifiedCredentials(await build_account(email, name, password), None)
    if isinstance(verified, LoginError):
        return verified
    try:
        async with db.transaction() as tx:
            return await _join(tx, settings, open_invitation, hash_token(token), verified, client)
    except _InvitationTakenError:
        return None


async def _join(
    tx: Transaction,
    settings: Settings,
    open_invitation: OpenInvitation,
    token_hash: bytes,
    verified: VerifiedCredentials,
    client: ClientInfo,
) -> LoginResult:
    now, account, plan_manager_id = datetime.now(UTC), verified.account, open_invitation.plan_manager_id
    has_account = verified.throttle is not None or await store.insert(tx, account)
    current = await store.select_for_update(tx, account.id) if has_account else None
    accepted = await member_store.accept_invitation(tx, plan_manager_id, token_hash, now)
    if current is None or current.password_hash != account.password_hash or not accepted:
        raise _InvitationTakenError
    if await member_store.insert(tx, plan_manager_id, account.id, open_invitation.invitation.role, now):
        joined = MemberEvent(account.id, account.email, account.name, open_invitation.invitation.role)
        await record_event(
            WriteContext(tx, plan_manager_id, settings, account_actor(account)), "account.joined", None, joined
        )
    return await _log_in(tx, settings, VerifiedCredentials(current, verified.throttle), client, plan_manager_id)


async def build_account(email: str, name: str, password: str) -> Account:
    """An account to keep; raises ValidationError."""
    errors: dict[str, str] = {}
    if not name.strip() or single_line(name, 255) != name:
        errors["name"] = "must be one line of 1 to 255 characters, not all blank"
    password_error = validate_password(password, email)
    if password_error:
        errors["password"] = password_error
    if errors:
        raise ValidationError(**errors)
    password_hash = await passwords.hash_password(password)
    return Account(id=uuid7(), email=email, name=name, password_hash=password_hash, created_at=datetime.now(UTC))


def validate_email(email: str) -> str:
    """The email; raises ValidationError."""
    try:
        return str(decode_custom_type(Email, email.strip()))
    except ValueError as error:
        raise ValidationError(email=str(error)) from None


def validate_role(role: str) -> Role:
    """The role; raises ValidationError."""
    try:
        return msgspec.convert(role, Role)
    except msgspec.ValidationError:
        raise ValidationError(role=f"must be one of {', '.join(ROLES)}") from None


async def use_two_factor_code(tx: Transaction, account: Account, code: str) -> bool:
    """Whether a code is an authenticator's or a recovery code that was not used before; it is used then."""
    now = datetime.now(UTC)
    counter = totp.verify_code(account.totp_secret or "", code, account.totp_counter, now)
    if counter is not None:
        await store.set_totp(tx, account.id, account.totp_secret, counter)
        return True
    return await store.use_recovery_code(tx, account.id, hash_token(parse_recovery_code(code)), now)


async def _log_in(
    tx: Transaction, settings: Settings, verified: VerifiedCredentials, client: ClientInfo, plan_manager_id: UUID | None
) -> LoginResult:
    """Open a session for who proved to be the account's; with two-factor authentication, only the way to that."""
    account, two_factor_pending = verified.account, verified.account.totp_secret is not None
    await store.delete_expired_sessions(tx, account.id, datetime.now(UTC))
    result = await _create_session(tx, account, client, plan_manager_id, two_factor_pending=two_factor_pending)
    if not two_factor_pending:
        await store.delete_throttle(tx, account.email)
        await record_account_event(tx, settings, account, "account.signed_in", client)
    elif verified.throttle:
        await store.undo_attempt(tx, account.email, verified.throttle, datetime.now(UTC))
    return result


async def _create_session(
    tx: Transaction, account: Account, client: ClientInfo, plan_manager_id: UUID | None, *, two_factor_pending: bool
) -> LoginResult:
    now, token = datetime.now(UTC), new_token()
    lifetime = TWO_FACTOR_LIFETIME if two_factor_pending else SESSION_LIFETIME
    new_session = NewSession(
        token_hash=hash_token(token),
        account_id=account.id,
        chosen_plan_manager_id=plan_manager_id,
        created_at=now,
        expires_at=now + lifetime,
        address=client.address,
        user_agent=client.user_agent,
        two_factor_pending=two_factor_pending,
    )
    await store.insert_session(tx, new_session)
    return LoginResult(token, two_factor_pending)
