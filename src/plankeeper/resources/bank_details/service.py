"""Changes of bank details. One person proposes them, and another one approves them, after a call to the payee.

The API, the console and the commands share these operations. The operator, who holds the database, can set details
directly.
"""

from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.access.accounts.member_store import count_owners, count_with_permission, is_owner
from plankeeper.access.api_keys.service import responsible_account
from plankeeper.core.context import Disclosure, WriteContext, or_404
from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.core.errors import DomainError, FieldError, NotFound, ValidationError
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.database.versions import next_updated_at
from plankeeper.events.recorder import record_events
from plankeeper.resources.bank_details import store
from plankeeper.resources.bank_details.accounts import (
    Payee,
    PayeeKind,
    account_hashes,
    decrypt_account,
    encrypt_account,
)
from plankeeper.resources.bank_details.bank_text import account_ending
from plankeeper.resources.bank_details.schemas import (
    AccountSummary,
    Action,
    BankDetailChange,
    BankDetails,
    BankDetailsRow,
    BankDetailsState,
    PayeeRef,
)

OWN_PROPOSAL = "Another person must approve these bank details: you have proposed them, or your API key has."
OPERATOR_PROPOSAL = (
    "A key that was made by command has proposed these bank details. Accounts of the plan manager can approve them in"
    " the console."
)
ESTATE_PROPOSAL = "Only an owner can approve who gets the money for the estate of a participant who has died."
NOT_WAITING = "This proposal of bank details isn't waiting: it was approved, rejected, or replaced by another one."

EVENT_TYPES: Mapping[Action, str] = {"proposed": "bank_details.proposed", "rejected": "bank_details.rejected"}


class _Change(NamedTuple):
    """A row before and after a change, and its entries of the history."""

    before: BankDetailsRow
    after: BankDetailsRow
    entries: Sequence[BankDetailChange]


async def get(db: Executor, settings: Settings, plan_manager_id: UUID, payee: Payee) -> BankDetails:
    """The bank details of a payee; raises NotFound."""
    if not await store.payee_exists(db, plan_manager_id, payee):
        raise NotFound
    return summarize(settings, plan_manager_id, await store.get(db, plan_manager_id, payee))


def summarize(settings: Settings, plan_manager_id: UUID, row: BankDetailsRow | None) -> BankDetails:
    """The details without account numbers. Raises SecretKeyMissingError."""
    current, proposed = _decrypt(settings, plan_manager_id, row)
    if row is None:
        return BankDetails(current=None, proposed=None, updated_at=None)
    return BankDetails(
        current=_summary(current, row.current_estate_payee),
        proposed=_summary(proposed, row.proposed_estate_payee),
        updated_at=row.updated_at,
    )


def _summary(account: BankAccount | None, estate_payee: str | None) -> AccountSummary | None:
    if account is None:
        return None
    ending = account_ending(account.number)
    return AccountSummary(bsb=account.bsb, account_ending=ending, account_name=account.name, estate_payee=estate_payee)


def _decrypt(
    settings: Settings, plan_manager_id: UUID, row: BankDetailsRow | None
) -> tuple[BankAccount | None, BankAccount | None]:
    """The current and the proposed account."""
    if row is None:
        return None, None
    current, proposed = (
        decrypt_account(settings, plan_manager_id, row.payee, each) if each else None
        for each in (row.current_account, row.proposed_account)
    )
    return current, proposed


def same_account_hashes(settings: Settings, plan_manager_id: UUID, row: BankDetailsRow) -> list[bytes]:
    """The hashes of the proposed account, by which payees with the same account are found."""
    _, proposed = _decrypt(settings, plan_manager_id, row)
    return account_hashes(settings, plan_manager_id, proposed) if proposed else []


async def lock(ctx: WriteContext, payee: Payee) -> None:
    """Lock the details of a payee until the transaction ends. Without any, nothing is locked."""
    await store.select_for_update(ctx.tx, ctx.plan_manager_id, payee)


# One person


async def propose(
    ctx: WriteContext, payee: Payee, account: BankAccount, estate_payee: str | None = None
) -> BankDetails:
    """Propose an account for a payee. It replaces a proposal that waits; raises NotFound.

    `estate_payee` is who gets the money of a participant who has died; raises ValidationError if it is missing then,
    or if it is given for another payee. Nothing changes if the account waits already for the same payee, or if it is
    the current one and needs no approval.
    """
    contact = or_404(await store.lock_payee(ctx.tx, ctx.plan_manager_id, payee))
    estate_payee = _check_estate_payee(estate_payee, is_deceased=contact.is_deceased)
    now = datetime.now(UTC)
    [row] = await store.select_or_insert_for_update(ctx.tx, ctx.plan_manager_id, payee.kind, [payee.id], now)
    change = _propose(ctx, row, account, _Proposer(await responsible_account(ctx), contact.phone, now), estate_payee)
    if change is None and payee.kind == "participant":
        ctx.disclosed.append(Disclosure("viewed", "participant", payee.id))
    await _write(ctx, [change] if change else [])
    return summarize(ctx.settings, ctx.plan_manager_id, change.after if change else row)


async def _propose_many(ctx: WriteContext, kind: PayeeKind, accounts: Mapping[UUID, BankAccount]) -> None:
    """Propose accounts for payees that exist and are locked."""
    now, account_id = datetime.now(UTC), await responsible_account(ctx)
    contacts = await store.list_contacts(ctx.tx, ctx.plan_manager_id, [Payee(kind, each) for each in accounts])
    rows = await store.select_or_insert_for_update(ctx.tx, ctx.plan_manager_id, kind, [*accounts], now)
    changes = [
        _propose(ctx, each, accounts[each.payee_id], _Proposer(account_id, contacts[each.payee].phone, now))
        for each in rows
    ]
    await _write(ctx, [each for each in changes if each])


def _check_estate_payee(name: str | None, *, is_deceased: bool) -> str | None:
    """The name with single blanks. Raises ValidationError if it is missing, or given for the living."""
    text = " ".join((name or "").split())
    if is_deceased and not text:
        message = "is required, because the participant has died: who gets the money for the estate"
        raise ValidationError(FieldError("estate_payee", message, "required"))
    if name is not None and not is_deceased:
        raise ValidationError(estate_payee="must be null, except for a participant who has died")
    return text or None


class _Proposer(NamedTuple):
    """Who proposes an account: the account, or null for the operator; the payee's phone on record; when."""

    account_id: UUID | None
    phone: str | None
    now: datetime


def _propose(
    ctx: WriteContext,
    row: BankDetailsRow,
    account: BankAccount,
    proposer: _Proposer,
    estate_payee: str | None = None,
) -> _Change | None:
    """The row with a proposal; null if nothing changes."""
    current, proposed = _decrypt(ctx.settings, ctx.plan_manager_id, row)
    is_same = account == current and estate_payee == row.current_estate_payee
    is_current = is_same and row.proposal_id is None and not row.needs_approval
    if (account == proposed and estate_payee == row.proposed_estate_payee) or is_current:
        return None
    encrypted = encrypt_account(ctx.settings, ctx.plan_manager_id, row.payee, account)
    after = replace(
        row,
        proposed_account=encrypted.stored,
        proposed_ending=account_ending(account.number),
        proposed_hash=encrypted.hash,
        proposed_estate_payee=estate_payee,
    )
    return _with_proposal(ctx, row, after, proposer)


def _with_proposal(ctx: WriteContext, before: BankDetailsRow, after: BankDetailsRow, proposer: _Proposer) -> _Change:
    """The proposal with a new id, so that nobody can approve it in the place of an earlier one."""
    after.proposal_id = uuid7()
    after.proposed_by = ctx.actor.display_name
    after.proposed_by_account = proposer.account_id
    after.proposed_phone = proposer.phone
    after.proposed_at = proposer.now
    after.updated_at = next_updated_at(before.updated_at)
    entries = [_entry(ctx, before, "closed", "Replaced by another proposal")] if before.proposal_id else []
    note = f"For the estate: {after.proposed_estate_payee}" if after.proposed_estate_payee else None
    return _Change(before, after, [*entries, _entry(ctx, after, "proposed", note)])


async def require_approval_again(ctx: WriteContext, payee: Payee) -> None:
    """The bank has returned a payment: the payee is left out of runs until a second person approves its details.

    The current details are proposed as they are, unless another proposal waits. Lock bank details before invoices.
    """
    row = await store.select_for_update(ctx.tx, ctx.plan_manager_id, payee)
    if row is None or row.current_account is None or row.needs_approval:
        return
    now = datetime.now(UTC)
    if row.proposal_id:
        after = replace(row, needs_approval=True, updated_at=next_updated_at(row.updated_at))
        await store.upsert(ctx.tx, ctx.plan_manager_id, [after])
        return
    contacts = await store.list_contacts(ctx.tx, ctx.plan_manager_id, [payee])
    after = replace(
        row,
        needs_approval=True,
        proposed_account=row.current_account,
        proposed_ending=row.current_ending,
        proposed_hash=row.current_hash,
        proposed_estate_payee=row.current_estate_payee,
    )
    phone = contacts[payee].phone if payee in contacts else None
    proposer = _Proposer(await responsible_account(ctx), phone, now)
    await _write(ctx, [_with_proposal(ctx, row, after, proposer)])


# Another person


async def approve(ctx: WriteContext, proposal_id: UUID, called_back: str) -> BankDetailsRow:
    """Make the proposal the current details. `called_back` says how the payee has confirmed it.

    Raises NotFound, and DomainError if the proposal isn't waiting, if the approver has proposed it, or if it is for an
    estate and the approver isn't an owner.
    """
    if ctx.actor.kind == "api_key":
        raise DomainError("insufficient_scope", "Only people can approve bank details, in the console or by command.")
    before = await _select_waiting(ctx, proposal_id)
    is_operator = ctx.actor.account_id is None
    if before.proposed_by_account == ctx.actor.account_id and not is_operator:
        raise DomainError("invalid_transition", OWN_PROPOSAL)
    if before.proposed_estate_payee and not await _may_approve_estate(ctx, before):
        raise DomainError("invalid_transition", ESTATE_PROPOSAL)
    approvers = await count_with_permission(ctx.tx, ctx.plan_manager_id, "approve_bank_details") if is_operator else 0
    current, proposed = _decrypt(ctx.settings, ctx.plan_manager_id, before)
    now, approves_own = next_updated_at(before.updated_at), is_operator and approvers <= 1
    place = (ctx.tx, ctx.plan_manager_id, proposal_id, ctx.actor.account_id)
    after = await store.approve(*place, now, approves_own=approves_own)
    if after is None:
        raise DomainError("invalid_transition", OPERATOR_PROPOSAL if is_operator else OWN_PROPOSAL)
    action: Action = "confirmed" if current == proposed else "approved"
    await _record(ctx, [_Change(before, after, [_entry(ctx, before, action, called_back)])])
    return after


async def _may_approve_estate(ctx: WriteContext, row: BankDetailsRow) -> bool:
    """Whether the actor is an owner; or the operator, if the only owner has proposed the payee."""
    if ctx.actor.account_id is None:
        return not await count_owners(ctx.tx, ctx.plan_manager_id, other_than=row.proposed_by_account)
    return await is_owner(ctx.tx, ctx.plan_manager_id, ctx.actor.account_id)


async def reject(ctx: WriteContext, proposal_id: UUID, reason: str) -> BankDetailsRow:
    """Remove a proposal. The current details stay; after a returned payment, they still need approval.

    Raises NotFound, and DomainError if the proposal isn't waiting.
    """
    if ctx.actor.kind == "api_key":
        raise DomainError("insufficient_scope", "Only people can reject bank details, in the console or by command.")
    before = await _select_waiting(ctx, proposal_id)
    now = next_updated_at(before.updated_at)
    after = or_404(await store.reject(ctx.tx, ctx.plan_manager_id, proposal_id, now))
    await _record(ctx, [_Change(before, after, [_entry(ctx, before, "rejected", reason)])])
    return after


async def _select_waiting(ctx: WriteContext, proposal_id: UUID) -> BankDetailsRow:
    row = await store.select_proposal_for_update(ctx.tx, ctx.plan_manager_id, proposal_id)
    if row is None:
        if await store.was_proposed(ctx.tx, ctx.plan_manager_id, proposal_id):
            raise DomainError("invalid_transition", NOT_WAITING)
        raise NotFound
    return row


# The operator


async def set_accounts(ctx: WriteContext, kind: PayeeKind, accounts: Mapping[UUID, BankAccount]) -> None:
    """Set the details of payees at once, for the operator, who holds the database. The payees exist, and are locked.

    A proposal that waits is closed, unless the account is the current one.
    """
    now = datetime.now(UTC)
    rows = await store.select_or_insert_for_update(ctx.tx, ctx.plan_manager_id, kind, [*accounts], now)
    changes = [_set(ctx, each, accounts[each.payee_id], now) for each in rows]
    await _write(ctx, [each for each in changes if each])


async def import_accounts(ctx: WriteContext, kind: PayeeKind, accounts: Mapping[UUID, BankAccount]) -> None:
    """Set the details in an import by command. In an import by a person, they are proposed."""
    if accounts:
        await (set_accounts if ctx.actor.kind == "system" else _propose_many)(ctx, kind, accounts)


def _set(ctx: WriteContext, row: BankDetailsRow, account: BankAccount, now: datetime) -> _Change | None:
    """The row with the account; null if it has it already."""
    current, _ = _decrypt(ctx.settings, ctx.plan_manager_id, row)
    if account == current:
        return None
    encrypted = encrypt_account(ctx.settings, ctx.plan_manager_id, row.payee, account)
    after = replace(
        _without_proposal(row),
        current_account=encrypted.stored,
        current_ending=account_ending(account.number),
        current_hash=encrypted.hash,
        current_estate_payee=None,
        current_since=now,
        needs_approval=False,
        updated_at=next_updated_at(row.updated_at),
    )
    closed = [_entry(ctx, row, "closed", "Replaced by an import")] if row.proposal_id else []
    entry = replace(_entry(ctx, row, "set"), proposal_id=None, new_ending=after.current_ending)
    return _Change(row, after, [*closed, entry])


def _without_proposal(row: BankDetailsRow) -> BankDetailsRow:
    return replace(
        row,
        proposal_id=None,
        proposed_account=None,
        proposed_ending=None,
        proposed_hash=None,
        proposed_estate_payee=None,
        proposed_by=None,
        proposed_by_account=None,
        proposed_at=None,
        proposed_phone=None,
    )


# Deleted payees


async def delete_of(ctx: WriteContext, kind: PayeeKind, payee_ids: Sequence[UUID]) -> None:
    """Delete the details of payees that are deleted for good. Payments keep a copy of those that they went to."""
    if payee_ids:
        await store.delete(ctx.tx, ctx.plan_manager_id, kind, payee_ids)


async def erase(ctx: WriteContext, participant_id: UUID) -> int:
    """Erase the details of a participant, and the texts of their history. Returns the number of erased details."""
    payee = Payee("participant", participant_id)
    await store.erase_notes(ctx.tx, ctx.plan_manager_id, payee)
    return await store.delete(ctx.tx, ctx.plan_manager_id, "participant", [participant_id])


# History and events


def _entry(ctx: WriteContext, row: BankDetailsRow, action: Action, note: str | None = None) -> BankDetailChange:
    """An entry about the proposal of a row. An approval is about the row before it."""
    return BankDetailChange(
        id=uuid7(),
        payee_kind=row.payee_kind,
        payee_id=row.payee_id,
        proposal_id=row.proposal_id,
        action=action,
        old_ending=row.current_ending,
        new_ending=row.proposed_ending,
        note=note,
        actor_kind=ctx.actor.kind,
        actor_id=ctx.actor.id,
        actor_name=ctx.actor.name,
        created_at=datetime.now(UTC),
    )


async def _write(ctx: WriteContext, changes: Sequence[_Change]) -> None:
    """Write rows that are locked, with their history and events."""
    if changes:
        await store.upsert(ctx.tx, ctx.plan_manager_id, [each.after for each in changes])
        await _record(ctx, changes)


async def _record(ctx: WriteContext, changes: Sequence[_Change]) -> None:
    """Record the history and the event of each change, which is about the last entry."""
    entries = [entry for each in changes for entry in each.entries]
    await store.insert_changes(ctx.tx, ctx.plan_manager_id, to_json(entries))
    await record_events(
        ctx,
        [
            (EVENT_TYPES.get(each.entries[-1].action, "bank_details.approved"), _state(each.before), _state(each.after))
            for each in changes
        ],
    )


def _state(row: BankDetailsRow) -> BankDetailsState:
    return BankDetailsState(
        id=row.payee_id,
        payee=PayeeRef(row.payee_kind, row.payee_id),
        current_ending=row.current_ending,
        current_since=row.current_since,
        needs_approval=row.needs_approval,
        proposal_id=row.proposal_id,
        proposed_ending=row.proposed_ending,
        proposed_by=row.proposed_by,
    )
