"""Signing in and out, and taking up an invitation: what the console and the command line do alike."""

from datetime import UTC, datetime
from uuid import UUID

import msgspec
from uuid_utils.compat import uuid7

from plankeeper.accounts import member_store, passwords, store, totp
from plankeeper.accounts.audit import Origin, actor_of, tell
from plankeeper.accounts.credentials import Proof, count, fail, prove
from plankeeper.accounts.policy import (
    INVITATION_LASTS,
    ROLES,
    SECOND_STEP_LASTS,
    SESSION_LASTS,
    csrf_of,
    fault_of_password,
    hash_of,
    line,
    new_token,
    recovery_code_of,
)
from plankeeper.accounts.schemas import (
    Account,
    AccountShown,
    Invitation,
    Invited,
    NewSession,
    Refused,
    Role,
    Session,
    SignedIn,
)
from plankeeper.database.client import Database, Queries, Transaction
from plankeeper.events.recorder import record
from plankeeper.http.context import Write, found
from plankeeper.http.errors import Invalid, Refusal
from plankeeper.http.schemas import Email, checked
from plankeeper.settings import Settings


class _TooLate(Exception):
    """Somebody else took up the invitation, or made the account, in the meantime."""


async def sign_in(
    db: Database, settings: Settings, email: str, password: str, address: str, user_agent: str
) -> SignedIn | Refused:
    """Open a session for an email and its password."""
    origin = Origin(line(address, 100), line(user_agent, 500))
    proof = await prove(db, settings, line(email.strip(), 254), password, origin)
    if isinstance(proof, Refused):
        return proof
    newer = await passwords.hash_of(password) if passwords.is_outdated(proof.account.password_hash) else None
    async with db.transaction() as tx:
        account = await store.fetch_for_update(tx, proof.account.id)
        if account is None or account.password_hash != proof.account.password_hash:
            return Refused()
        if newer:
            await store.set_password(tx, account.id, newer)
        return await _enter(tx, settings, Proof(account, proof.counted), origin, None)


async def second_step(db: Database, settings: Settings, token: str, code: str) -> SignedIn | Refused:
    """Complete a session with an authenticator's code or a recovery code; its token is a new one."""
    now = datetime.now(UTC)
    async with db.transaction() as tx:
        pending = await store.session_for_update(tx, hash_of(token), now)
        account = await store.fetch_for_update(tx, pending.account_id) if pending else None
        if pending is None or account is None or not pending.second_step_due:
            return Refused()
        origin = Origin(pending.address, pending.user_agent)
        counted = await count(tx, account.email, now)
        if isinstance(counted, Refused):
            return counted
        if not await is_good_code(tx, account, code):
            return await fail(tx, settings, account, counted, origin)
        await store.remove_session(tx, pending.token_hash)
        opened = await _open(tx, account, origin, pending.chosen_plan_manager_id, second_step_due=False)
        await store.forget_failures(tx, account.email)
        await tell(tx, settings, account, "account.signed_in", origin)
        return opened


async def session(db: Queries, token: str) -> Session | None:
    """The session of a token; null where it has ended, or there is none."""
    row = await store.session_by_hash(db, hash_of(token), datetime.now(UTC))
    if row is None:
        return None
    held = [] if row.second_step_due else row.memberships
    roles: dict[UUID, str] = {each.plan_manager_id: each.role for each in held}
    chosen = row.chosen_plan_manager_id if row.chosen_plan_manager_id in roles else next(iter(roles), None)
    return Session(
        account_id=row.account_id, email=row.email, name=row.name, second_step_due=row.second_step_due,
        plan_manager_id=chosen, roles=roles, csrf=csrf_of(token),
        plan_manager_names={each.plan_manager_id: each.name for each in held},
        token_hash=hash_of(token), totp=row.totp,
    )  # fmt: skip


async def choose(tx: Transaction, session: Session, plan_manager_id: UUID) -> None:
    """Go on for another plan manager; raises NotFound where the session has no role for it."""
    found(session.roles.get(plan_manager_id))
    await store.choose(tx, session.token_hash, plan_manager_id)


async def sign_out(db: Queries, token: str) -> None:
    await store.remove_session(db, hash_of(token))


async def invite(call: Write, email: str, role: str, name: str | None = None) -> str:
    """Invite somebody to the call's plan manager; answers the token of the link. Raises Invalid.

    Who was invited before and has not come gets a new link, and the old one ends.
    """
    await require_still_owner(call)
    now, token = datetime.now(UTC), new_token()
    made = Invitation(
        uuid7(), good_email(email), name, good_role(role), call.actor.name or call.actor.kind, now,
        now + INVITATION_LASTS,
    )  # fmt: skip
    if await member_store.holds(call.tx, call.plan_manager_id, made.email):
        raise Invalid(email="belongs to somebody who has a role here")
    kept = await member_store.invite(call.tx, call.plan_manager_id, made, hash_of(token))
    await record(call, "account.invited", None, kept)
    return token


async def require_still_owner(call: Write) -> None:
    """Raises Refusal where who changes people here has lost the role since their page was asked for.

    The roles are locked: nobody changes them until the transaction ends.
    """
    holders = await member_store.holders_for_update(call.tx, call.plan_manager_id)
    owners = [str(each.account_id) for each in holders if each.role == "owner"]
    if call.actor.kind == "user" and call.actor.id not in owners:
        raise Refusal("plan_manager_not_allowed", "Your role was changed meanwhile: only an owner may do this.")


async def invitation(db: Queries, token: str) -> Invited | None:
    """The open invitation of a link."""
    return await member_store.invited(db, hash_of(token), datetime.now(UTC))


async def accept(
    db: Database, settings: Settings, token: str, name: str, password: str, address: str = "", user_agent: str = ""
) -> SignedIn | Refused | None:
    """Take up an invitation and sign in: with a new account, or with the password of the one that the email has.

    Null where the invitation is not open; raises Invalid where a new account's name or password won't do.
    """
    origin = Origin(line(address, 100), line(user_agent, 500))
    invited = await invitation(db, token)
    if invited is None:
        return None
    email = invited.invitation.email
    if invited.known:
        proof = await prove(db, settings, email, password, origin)
    else:
        proof = Proof(await new_account(email, name, password), None)
    if isinstance(proof, Refused):
        return proof
    try:
        async with db.transaction() as tx:
            return await _join(tx, settings, invited, hash_of(token), proof, origin)
    except _TooLate:
        return None


async def _join(
    tx: Transaction, settings: Settings, invited: Invited, token_hash: bytes, proof: Proof, origin: Origin
) -> SignedIn:
    now, account, plan_manager_id = datetime.now(UTC), proof.account, invited.plan_manager_id
    made = proof.counted is not None or await store.insert(tx, account)
    current = await store.fetch_for_update(tx, account.id) if made else None
    taken = await member_store.take_up(tx, plan_manager_id, token_hash, now)
    if current is None or current.password_hash != account.password_hash or not taken:
        raise _TooLate
    if await member_store.insert(tx, plan_manager_id, account.id, invited.invitation.role, now):
        after = AccountShown(account.id, account.email, account.name, invited.invitation.role)
        await record(Write(tx, plan_manager_id, settings, actor_of(account)), "account.joined", None, after)
    return await _enter(tx, settings, Proof(current, proof.counted), origin, plan_manager_id)


async def new_account(email: str, name: str, password: str) -> Account:
    """An account to keep; raises Invalid."""
    faults: dict[str, str] = {}
    if not name.strip() or line(name, 255) != name:
        faults["name"] = "must be one line of 1 to 255 characters, not all blank"
    fault = fault_of_password(password, email)
    if fault:
        faults["password"] = fault
    if faults:
        raise Invalid(**faults)
    hashed = await passwords.hash_of(password)
    return Account(id=uuid7(), email=email, name=name, password_hash=hashed, created_at=datetime.now(UTC))


def good_email(email: str) -> str:
    """The email; raises Invalid."""
    try:
        return str(checked(Email, email.strip()))
    except ValueError as error:
        raise Invalid(email=str(error)) from None


def good_role(role: str) -> Role:
    """The role; raises Invalid."""
    try:
        return msgspec.convert(role, Role)
    except msgspec.ValidationError:
        raise Invalid(role=f"must be one of {', '.join(ROLES)}") from None


async def is_good_code(tx: Transaction, account: Account, code: str) -> bool:
    """Whether a code is an authenticator's or a recovery code that was not used before; it is used then."""
    now = datetime.now(UTC)
    counter = totp.counter_of(account.totp_secret or "", code, account.totp_counter, now)
    if counter is not None:
        await store.set_totp(tx, account.id, account.totp_secret, counter)
        return True
    return await store.use_recovery_code(tx, account.id, hash_of(recovery_code_of(code)), now)


async def _enter(tx: Transaction, settings: Settings, proof: Proof, origin: Origin, chosen: UUID | None) -> SignedIn:
    """Open a session for who proved to be the account's; with a second step, only the way to that."""
    account, due = proof.account, proof.account.totp_secret is not None
    await store.purge_sessions(tx, account.id, datetime.now(UTC))
    opened = await _open(tx, account, origin, chosen, second_step_due=due)
    if not due:
        await store.forget_failures(tx, account.email)
        await tell(tx, settings, account, "account.signed_in", origin)
    elif proof.counted:
        await store.uncount_failure(tx, account.email, proof.counted, datetime.now(UTC))
    return opened


async def _open(
    tx: Transaction, account: Account, origin: Origin, chosen: UUID | None, *, second_step_due: bool
) -> SignedIn:
    now, token = datetime.now(UTC), new_token()
    lasts = SECOND_STEP_LASTS if second_step_due else SESSION_LASTS
    kept = NewSession(
        token_hash=hash_of(token), account_id=account.id, chosen_plan_manager_id=chosen, created_at=now,
        expires_at=now + lasts, address=origin.address, user_agent=origin.user_agent, second_step_due=second_step_due,
    )  # fmt: skip
    await store.insert_session(tx, kept)
    return SignedIn(token, second_step_due)
