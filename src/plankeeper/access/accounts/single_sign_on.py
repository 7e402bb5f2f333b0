"""Sessions for people whom a provider has confirmed. A password links an identity to an account.

An invitation links only a new account: an existing one may have been created by another person, who knows its password.

A provider confirms a person only to its own plan manager: its administrators must not reach the other plan managers of
an account.
"""

from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.access.accounts import member_store, members, store
from plankeeper.access.accounts.audit import ClientInfo, account_actor, record_account_event
from plankeeper.access.accounts.credentials import (
    LoginError,
    VerifiedCredentials,
    clear_attempt,
    record_code_failure,
    sign_in_counters,
    verify_credentials,
)
from plankeeper.access.accounts.schemas import (
    Account,
    Invitation,
    LoginResult,
    Session,
    SessionMethods,
)
from plankeeper.access.accounts.sessions import (
    complete_sign_in,
    open_session,
    renew_token,
    use_two_factor_code,
)
from plankeeper.access.policy import NO_PASSWORD
from plankeeper.access.single_sign_on import store as single_sign_on_store
from plankeeper.access.single_sign_on.schemas import (
    Flow,
    Identity,
    PendingIdentity,
    Provider,
)
from plankeeper.access.tokens import hash_token, new_token
from plankeeper.core.context import WriteContext
from plankeeper.core.formatting import single_line
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Executor, Transaction

GET_ACCOUNT_ID = "select account_id from account_identities where issuer = $1 and subject = $2"


async def get_account_id(db: Executor, issuer: str, subject: str) -> UUID | None:
    """The account that an identity is linked to."""
    return await db.one_or_none(UUID, GET_ACCOUNT_ID, issuer, subject)


INSERT = """
    insert into account_identities (issuer, subject, account_id, created_at) values ($1, $2, $3, $4)
    on conflict (issuer, subject) do nothing
    returning true
"""


async def insert(tx: Transaction, issuer: str, subject: str, account_id: UUID, at: datetime) -> bool:
    """Link an identity to an account. False if it is linked already."""
    inserted = await tx.one_or_none(bool, INSERT, issuer, subject, account_id, at)
    return inserted is not None


DELETE_ALL_OF_ACCOUNT = """
    with deleted as (delete from account_identities where account_id = $1 returning 1)
    select count(*) from deleted
"""


async def delete_all_of_account(tx: Transaction, account_id: UUID) -> int:
    """Unlink all identities of an account, and return their number."""
    return await tx.one(int, DELETE_ALL_OF_ACCOUNT, account_id)


ADD_TO_SESSION = """
    update account_sessions set provider_ids = array_append(provider_ids, $2)
    where token_hash = $1 and not $2 = any (provider_ids)
"""


async def add_to_session(tx: Transaction, token_hash: bytes, provider_id: UUID) -> None:
    """Record that an open session was also signed in at a provider. A second call changes nothing."""
    await tx.execute(ADD_TO_SESSION, token_hash, provider_id)


class NotAMemberError(Exception):
    """The account has no role for the provider's plan manager, and no invitation."""


class _TakenError(Exception):
    """A concurrent request accepted the invitation, created the account or linked the identity."""


class SignInClient(NamedTuple):
    """The browser of a sign-in: its address and user agent, its device token, and its open session."""

    info: ClientInfo
    device_token: str = ""
    session: Session | None = None


async def sign_in(
    db: Database,
    settings: Settings,
    provider: Provider,
    identity: Identity,
    invitation_token_hash: bytes | None,
    client: SignInClient,
) -> LoginResult | None:
    """Open a session for an identity, or add the provider to the account's open session.

    Accepts the invitation that the sign-in began with. None if the identity isn't linked, and isn't invited or its
    email has an account: the invitation then waits for `link`. Raises NotAMemberError.
    """
    try:
        async with db.transaction() as tx:
            account_id = await get_account_id(tx, identity.issuer, identity.subject)
            invitation = await _get_invitation(tx, provider, identity, invitation_token_hash)
            if account_id:
                account = await store.select_for_update(tx, account_id)
            else:
                account = await _create_account(tx, settings, identity, invitation) if invitation else None
            if account and invitation and invitation_token_hash:
                await _accept(tx, settings, provider, account, invitation, invitation_token_hash)
            return await _open_session(tx, settings, provider, account, client) if account else None
    except _TakenError:
        raise NotAMemberError from None


async def begin_linking(db: Database, flow: Flow, provider: Provider, identity: Identity, expires_at: datetime) -> str:
    """Keep an identity that isn't linked until its person enters the account's password, and return its token."""
    token = new_token()
    pending = PendingIdentity(
        token_hash=hash_token(token),
        provider_id=provider.id,
        issuer=identity.issuer,
        subject=identity.subject,
        email=identity.email,
        next_path=flow.next_path,
        invitation_token_hash=flow.invitation_token_hash,
        expires_at=expires_at,
    )
    async with db.transaction() as tx:
        await single_sign_on_store.delete_old_pending_identities(tx, datetime.now(UTC))
        await single_sign_on_store.insert_pending_identity(tx, pending)
    return token


async def get_pending_identity(db: Executor, token: str) -> PendingIdentity | None:
    """The identity that waits to be linked in the browser with a token."""
    return await single_sign_on_store.get_pending_identity(db, hash_token(token), datetime.now(UTC))


async def link(
    db: Database, settings: Settings, pending: PendingIdentity, password: str, code: str, client: SignInClient
) -> LoginResult | None:
    """Link an identity to the account with its email, and open a session. None if it is already linked or has expired.

    Accepts the invitation that the sign-in began with. Raises LoginError for a wrong password or code, also if there
    is no account, and NotAMemberError.
    """
    counters = await sign_in_counters(db, pending.email, client.info, client.device_token)
    verified = await verify_credentials(db, settings, pending.email, password, client.info, counters)
    if verified.attempt is None:
        raise LoginError
    try:
        async with db.transaction() as tx:
            account = await store.select_for_update(tx, verified.account.id)
            if account is None or account.password_hash != verified.account.password_hash:
                raise LoginError
            if account.totp_secret is None or await use_two_factor_code(tx, settings, account, code):
                await clear_attempt(tx, verified.attempt)
                return await _link(tx, settings, pending, account, client)
            await record_code_failure(tx, settings, account, verified.attempt, client.info)
    except _TakenError:
        return None
    # After the commit: an error inside the transaction would undo the counted failure.
    raise LoginError(verified.attempt.delay)


async def _link(
    tx: Transaction, settings: Settings, pending: PendingIdentity, account: Account, client: SignInClient
) -> LoginResult | None:
    provider = await single_sign_on_store.get_by_id(tx, pending.provider_id)
    if provider is None or not await single_sign_on_store.delete_pending_identity(tx, pending.token_hash):
        return None
    token_hash = pending.invitation_token_hash
    invitation = await _get_invitation(tx, provider, pending, token_hash)
    if invitation and token_hash:
        await _accept(tx, settings, provider, account, invitation, token_hash)
    await _require_role(tx, account.id, provider.plan_manager_id)
    await _insert_identity(tx, settings, pending, account)
    methods = SessionMethods(with_password=True, provider_ids=(provider.id,))
    return await complete_sign_in(
        tx, settings, account, client.info, provider.plan_manager_id, client.device_token, methods
    )


async def _open_session(
    tx: Transaction, settings: Settings, provider: Provider, account: Account, client: SignInClient
) -> LoginResult:
    await _require_role(tx, account.id, provider.plan_manager_id)
    session = client.session
    if session and session.account_id == account.id and not session.two_factor_pending:
        await add_to_session(tx, session.token_hash, provider.id)
        await store.set_chosen_plan_manager(tx, session.token_hash, provider.plan_manager_id)
        return LoginResult(await renew_token(tx, settings, account, session), two_factor_pending=False)
    methods = SessionMethods(with_password=False, provider_ids=(provider.id,))
    verified = VerifiedCredentials(account, None)
    return await open_session(
        tx, settings, verified, client.info, provider.plan_manager_id, client.device_token, methods
    )


async def _get_invitation(
    tx: Transaction, provider: Provider, identity: Identity | PendingIdentity, token_hash: bytes | None
) -> Invitation | None:
    """The open invitation to the provider's plan manager, if it is for the identity's email."""
    if token_hash is None:
        return None
    found = await member_store.get_open_invitation(tx, token_hash, datetime.now(UTC))
    if found is None or found.plan_manager_id != provider.plan_manager_id:
        return None
    return found.invitation if found.invitation.email.lower() == identity.email.lower() else None


async def _create_account(
    tx: Transaction, settings: Settings, identity: Identity, invitation: Invitation
) -> Account | None:
    """A new account for an invited identity; None if the email has one already."""
    account = _build_account(identity, invitation)
    if await store.insert(tx, account) is None:
        return None
    await _insert_identity(tx, settings, identity, account)
    return account


def _build_account(identity: Identity, invitation: Invitation) -> Account:
    """A new account without a password."""
    name = invitation.name or identity.name or single_line(identity.email.partition("@")[0], 255)
    return Account(
        id=uuid7(), email=invitation.email, name=name, password_hash=NO_PASSWORD, created_at=datetime.now(UTC)
    )


async def _accept(
    tx: Transaction,
    settings: Settings,
    provider: Provider,
    account: Account,
    invitation: Invitation,
    token_hash: bytes,
) -> None:
    """Give an account the role of an invitation."""
    ctx = WriteContext(tx, provider.plan_manager_id, settings, account_actor(account))
    await members.add(ctx, account, invitation.role, invitation.details)
    if not await member_store.accept_invitation(tx, provider.plan_manager_id, token_hash, datetime.now(UTC)):
        raise _TakenError


async def _insert_identity(
    tx: Transaction, settings: Settings, identity: Identity | PendingIdentity, account: Account
) -> None:
    if not await insert(tx, identity.issuer, identity.subject, account.id, datetime.now(UTC)):
        raise _TakenError
    await record_account_event(tx, settings, account, "account.single_sign_on_linked")


async def _require_role(tx: Transaction, account_id: UUID, plan_manager_id: UUID) -> None:
    roles = await member_store.select_roles_for_share(tx, account_id)
    if plan_manager_id not in [role.plan_manager_id for role in roles]:
        raise NotAMemberError
