"""Sessions: signing in with a password and two-factor authentication, and signing out."""

import time
from datetime import UTC, datetime, timedelta
from typing import Literal
from uuid import UUID

from plankeeper.access.accounts import (
    credentials,
    member_store,
    passwords,
    store,
    totp,
)
from plankeeper.access.accounts.audit import ClientInfo, record_account_event
from plankeeper.access.accounts.credentials import (
    LoginError,
    VerifiedCredentials,
    clear_attempt,
    record_code_failure,
    register_attempt,
    sign_in_counters,
    undo_attempt,
    verify_credentials,
)
from plankeeper.access.accounts.mails import NewDeviceMail
from plankeeper.access.accounts.schemas import (
    Account,
    LoginResult,
    NewSession,
    Session,
    SessionMembership,
    SessionMethods,
    SessionRow,
)
from plankeeper.access.policy import SESSION_LIFETIME, TWO_FACTOR_LIFETIME
from plankeeper.access.tokens import (
    csrf_token,
    hash_token,
    new_token,
    parse_recovery_code,
)
from plankeeper.core.context import or_404
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.formatting import single_line
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction
from plankeeper.mail import store as mail_store

PASSWORD_ONLY = SessionMethods()

_Requirement = Literal["two_factor", "single_sign_on", "password"]

LAST_SEEN_PRECISION = timedelta(minutes=1)


async def sign_in(
    db: Database,
    settings: Settings,
    email: str,
    password: str,
    address: str,
    user_agent: str,
    device_token: str = "",
) -> LoginResult:
    """Open a session. Raises LoginError."""
    client, email = ClientInfo.from_request(address, user_agent), normalize_email(email)
    counters = await sign_in_counters(db, email, client, device_token)
    verified = await verify_credentials(db, settings, email, password, client, counters)
    is_outdated = passwords.is_outdated(verified.account.password_hash)
    new_hash = await passwords.hash_password(password) if is_outdated else None
    async with db.transaction() as tx:
        account = await store.select_for_update(tx, verified.account.id)
        if account is None or account.password_hash != verified.account.password_hash:
            raise LoginError
        if new_hash:
            await store.set_password(tx, account.id, new_hash)
        verified = VerifiedCredentials(account, verified.attempt)
        return await open_session(tx, settings, verified, client, None, device_token)


def normalize_email(text: str) -> str:
    """The text of an email field as one line without surrounding spaces. It isn't necessarily an email."""
    return single_line(text.strip(), 254)


async def verify_two_factor(
    db: Database, settings: Settings, token: str, code: str, device_token: str = ""
) -> LoginResult:
    """Complete a session with an authenticator code or a recovery code. It gets a new token. Raises LoginError."""
    now = datetime.now(UTC)
    async with db.transaction() as tx:
        pending = await store.select_session_for_update(tx, hash_token(token), now)
        account = await store.select_for_update(tx, pending.account_id) if pending else None
        if pending is None or account is None or not pending.two_factor_pending:
            raise LoginError
        client = ClientInfo(pending.address, pending.user_agent)
        counters = await sign_in_counters(tx, account.email, client, device_token)
        attempt = await register_attempt(tx, counters)
        if await use_two_factor_code(tx, settings, account, code):
            await store.delete_session(tx, pending.token_hash)
            await clear_attempt(tx, attempt)
            return await complete_sign_in(
                tx, settings, account, client, pending.chosen_plan_manager_id, device_token, _methods_of(pending)
            )
        await record_code_failure(tx, settings, account, attempt, client)
    # After the commit: an error inside the transaction would undo the counted failure.
    raise LoginError(attempt.delay)


async def verify_session(db: Executor, token: str, *, is_use: bool = True) -> Session | None:
    """Verify a session token: the session, or None if there is none or it has ended.

    `is_use` is false for a request that a page sends by itself: it doesn't keep the session open.
    """
    now, token_hash = datetime.now(UTC), hash_token(token)
    row = await store.get_session(db, token_hash, now, is_use=is_use)
    if row is None:
        return None
    session = _build_session(row, token)
    current = next((each for each in row.memberships if each.plan_manager_id == session.plan_manager_id), None)
    if is_use and current and (current.last_seen_at is None or now - current.last_seen_at > LAST_SEEN_PRECISION):
        await member_store.set_last_seen(db, current.plan_manager_id, session.account_id, now)
    return session


def _build_session(row: SessionRow, token: str) -> Session:
    memberships = [] if row.two_factor_pending else row.memberships
    missing = {membership.plan_manager_id: _missing_requirement(row, membership) for membership in memberships}
    active_memberships = [membership for membership in memberships if not missing[membership.plan_manager_id]]

    def missing_names(requirement: _Requirement) -> dict[UUID, str]:
        lacking = [each for each in memberships if missing[each.plan_manager_id] == requirement]
        return {membership.plan_manager_id: membership.name for membership in lacking}

    roles: dict[UUID, str] = {membership.plan_manager_id: membership.role for membership in active_memberships}
    plan_manager_id = row.chosen_plan_manager_id if row.chosen_plan_manager_id in roles else next(iter(roles), None)
    return Session(
        account_id=row.account_id,
        email=row.email,
        name=row.name,
        two_factor_pending=row.two_factor_pending,
        plan_manager_id=plan_manager_id,
        roles=roles,
        role_details={membership.plan_manager_id: membership.details for membership in active_memberships},
        csrf=csrf_token(token),
        plan_manager_names={membership.plan_manager_id: membership.name for membership in active_memberships},
        token_hash=hash_token(token),
        totp=row.totp,
        has_password=row.has_password,
        with_password=row.with_password,
        single_sign_on_ids=[each.plan_manager_id for each in memberships if each.has_single_sign_on],
        two_factor_required_by=missing_names("two_factor"),
        single_sign_on_required_by=missing_names("single_sign_on"),
        password_required_by=missing_names("password"),
    )


def _missing_requirement(row: SessionRow, membership: SessionMembership) -> _Requirement | None:
    """The requirement that a session lacks to act for a plan manager.

    A provider confirms people only to its own plan manager, and is responsible for their two-factor authentication.
    """
    if membership.has_single_sign_on:
        return None
    if membership.requires_single_sign_on:
        return "single_sign_on"
    if not row.with_password:
        return "password"
    return "two_factor" if membership.requires_two_factor and not row.totp else None


async def switch_plan_manager(tx: Transaction, settings: Settings, session: Session, plan_manager_id: UUID) -> None:
    """Make another plan manager the session's current one. Raises NotFound if the account has no role for it."""
    or_404(session.roles.get(plan_manager_id))
    # The account is locked before its roles, as by `members.remove`. The foreign key locks the role.
    account = or_404(await store.select_for_update(tx, session.account_id))
    await store.set_chosen_plan_manager(tx, session.token_hash, plan_manager_id)
    await _record_sign_in(tx, settings, account, session.token_hash, plan_manager_id)


async def renew_token(tx: Transaction, settings: Settings, account: Account, session: Session) -> str:
    """Give an open session a new token, and return it. The old one becomes invalid."""
    token = new_token()
    await store.replace_session_token(tx, session.token_hash, hash_token(token))
    renewed = await verify_session(tx, token)
    if renewed and renewed.plan_manager_id:  # the first one, if it requires two-factor authentication
        await _record_sign_in(tx, settings, account, renewed.token_hash, renewed.plan_manager_id)
    return token


async def _record_sign_in(
    tx: Transaction, settings: Settings, account: Account, token_hash: bytes, plan_manager_id: UUID
) -> None:
    """Record a session's sign-in for a plan manager, once."""
    client = await store.mark_recorded(tx, plan_manager_id, token_hash)
    if client:
        info = ClientInfo(client.address, client.user_agent)
        await record_account_event(
            tx, settings, account, "account.signed_in", info, only_for=plan_manager_id, method=client.method
        )


async def sign_out(db: Executor, token: str) -> None:
    await store.delete_session(db, hash_token(token))


async def use_two_factor_code(tx: Transaction, settings: Settings, account: Account, code: str) -> bool:
    """Use an authenticator code or a recovery code. False if it is invalid or already used.

    Raises SecretKeyMissingError if the secret of an authenticator cannot be decrypted. Recovery codes need no key.
    """
    now = datetime.now(UTC)
    if account.totp_secret is not None and totp.is_valid_code(code):
        secret = secret_cipher(settings).decrypt(account.totp_secret, account.id.bytes)
        counter = totp.verify_code(secret, code, account.totp_counter, now)
        if counter is not None:
            await store.set_totp(tx, account.id, account.totp_secret, counter)
            return True
    return await store.use_recovery_code(tx, account.id, hash_token(parse_recovery_code(code)), now)


async def open_session(
    tx: Transaction,
    settings: Settings,
    verified: VerifiedCredentials,
    client: ClientInfo,
    plan_manager_id: UUID | None,
    device_token: str,
    methods: SessionMethods = PASSWORD_ONLY,
) -> LoginResult:
    """Open a session for verified credentials. With two-factor authentication it is pending at first."""
    account, attempt = verified.account, verified.attempt
    await store.delete_expired_sessions(tx, account.id, datetime.now(UTC))
    if account.totp_secret is not None:
        if attempt:
            await undo_attempt(tx, attempt, datetime.now(UTC))
        token = await _create_session(tx, account, client, plan_manager_id, methods, two_factor_pending=True)
        return LoginResult(token, two_factor_pending=True)
    if attempt:
        await clear_attempt(tx, attempt)
    return await complete_sign_in(tx, settings, account, client, plan_manager_id, device_token, methods)


async def complete_sign_in(
    tx: Transaction,
    settings: Settings,
    account: Account,
    client: ClientInfo,
    plan_manager_id: UUID | None,
    device_token: str,
    methods: SessionMethods = PASSWORD_ONLY,
) -> LoginResult:
    """Open a session after all credentials of the account were verified."""
    token = await _create_session(tx, account, client, plan_manager_id, methods, two_factor_pending=False)
    if settings.smtp_server and not await credentials.is_known(tx, account.email, device_token):
        now = datetime.now(UTC)
        await mail_store.insert(tx, NewDeviceMail(account.id, now, client.address, client.user_agent), now)
    new_device_token = await credentials.remember(tx, account.id, device_token)
    session = or_404(await verify_session(tx, token))
    if session.plan_manager_id:
        await _record_sign_in(tx, settings, account, session.token_hash, session.plan_manager_id)
    return LoginResult(
        token,
        two_factor_pending=False,
        device_token=new_device_token,
        two_factor_required=bool(session.two_factor_required_by),
    )


async def _create_session(
    tx: Transaction,
    account: Account,
    client: ClientInfo,
    plan_manager_id: UUID | None,
    methods: SessionMethods,
    *,
    two_factor_pending: bool,
) -> str:
    """Insert a session and return its token."""
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
        with_password=methods.with_password,
        provider_ids=list(methods.provider_ids),
    )
    await store.insert_session(tx, new_session)
    return token


def _methods_of(session: NewSession) -> SessionMethods:
    return SessionMethods(session.with_password, tuple(session.provider_ids))


PURGE_INTERVAL = 60.0  # seconds: the statement reads all sessions

# A session also ends after an hour without use.
PURGE = """
    delete from account_sessions
    where token_hash in (select token_hash from account_sessions where expires_at < $1 or last_seen_at < $1 limit 5000)
"""


class SessionRetention:
    """A periodic task: once a minute, deletes up to 5,000 sessions that ended long ago."""

    def __init__(self, days: int) -> None:
        self._retention = timedelta(days=days)
        self._purged_at: float | None = None

    async def __call__(self, db: Executor) -> None:
        now = time.monotonic()
        if self._purged_at is None or now - self._purged_at >= PURGE_INTERVAL:
            self._purged_at = now
            await purge(db, datetime.now(UTC) - self._retention)


async def purge(db: Executor, ended_before: datetime) -> None:
    """Delete sessions that ended before a time, of all accounts."""
    await db.execute(PURGE, ended_before)
