"""Bank details in SQL. Their rows are locked before invoices, and after batches and runs."""

from collections.abc import Sequence
from datetime import datetime
from typing import LiteralString
from uuid import UUID

from msgspec import Struct

from plankeeper.database.client import Executor, Transaction
from plankeeper.database.row_ids import in_array
from plankeeper.database.row_mapping import value_lists
from plankeeper.resources.bank_details.accounts import Payee, PayeeKind
from plankeeper.resources.bank_details.schemas import BankDetailChange, BankDetailsRow, PayeeContact

COLUMNS: LiteralString = """
    payee_kind, payee_id, current_account, current_ending, current_hash, current_estate_payee, current_since,
    needs_approval, proposal_id, proposed_account, proposed_ending, proposed_hash, proposed_estate_payee, proposed_by,
    proposed_by_account, proposed_at, proposed_phone, updated_at
"""

GET = f"select {COLUMNS} from bank_details where plan_manager_id = $1 and payee_kind = $2 and payee_id = $3"


async def get(db: Executor, plan_manager_id: UUID, payee: Payee) -> BankDetailsRow | None:
    return await db.one_or_none(BankDetailsRow, GET, plan_manager_id, payee.kind, payee.id)


SELECT_FOR_UPDATE: LiteralString = GET + " for update"


async def select_for_update(tx: Transaction, plan_manager_id: UUID, payee: Payee) -> BankDetailsRow | None:
    return await tx.one_or_none(BankDetailsRow, SELECT_FOR_UPDATE, plan_manager_id, payee.kind, payee.id)


# The join takes each row from the primary key, whatever the number of rows.
LIST_OF_PAYEES: LiteralString = f"""
    select {COLUMNS}
    from unnest($2::text[], $3::uuid[]) payee (kind, id)
    cross join lateral (
        select * from bank_details
        where plan_manager_id = $1 and payee_kind = payee.kind and payee_id = payee.id
        offset 0
    ) details
    order by payee_kind, payee_id
"""


async def list_of_payees(db: Executor, plan_manager_id: UUID, payees: Sequence[Payee]) -> list[BankDetailsRow]:
    """The rows of those of the payees that have details, in order of kind and id."""
    kinds, ids = [each.kind for each in payees], [each.id for each in payees]
    return await db.rows(BankDetailsRow, LIST_OF_PAYEES, plan_manager_id, kinds, ids)


SELECT_MANY_FOR_UPDATE: LiteralString = f"""
    select {COLUMNS}
    from bank_details
    where plan_manager_id = $1 and payee_kind = $2 and {in_array("payee_id", "$3::uuid[]")}
    order by payee_id
    for update
"""


async def select_many_for_update(
    tx: Transaction, plan_manager_id: UUID, kind: PayeeKind, payee_ids: Sequence[UUID]
) -> list[BankDetailsRow]:
    """The rows of payees of one kind, locked until the transaction ends, in order of id."""
    return await tx.rows(BankDetailsRow, SELECT_MANY_FOR_UPDATE, plan_manager_id, kind, payee_ids)


INSERT_EMPTY = """
    insert into bank_details (plan_manager_id, payee_kind, payee_id, updated_at)
    select $1, $2, unnest($3::uuid[]), $4
    on conflict (plan_manager_id, payee_kind, payee_id) do nothing
"""


async def select_or_insert_for_update(
    tx: Transaction, plan_manager_id: UUID, kind: PayeeKind, payee_ids: Sequence[UUID], now: datetime
) -> list[BankDetailsRow]:
    """The rows of payees of one kind, locked until the transaction ends. Those without details get a new one."""
    found = await select_many_for_update(tx, plan_manager_id, kind, payee_ids)
    missing = sorted({*payee_ids} - {each.payee_id for each in found})
    if not missing:
        return found
    await tx.execute(INSERT_EMPTY, plan_manager_id, kind, missing, now)
    return [*found, *await select_many_for_update(tx, plan_manager_id, kind, missing)]


GET_PROPOSAL = f"select {COLUMNS} from bank_details where plan_manager_id = $1 and proposal_id = $2"


async def get_proposal(db: Executor, plan_manager_id: UUID, proposal_id: UUID) -> BankDetailsRow | None:
    """The row with a proposal that waits for approval."""
    return await db.one_or_none(BankDetailsRow, GET_PROPOSAL, plan_manager_id, proposal_id)


SELECT_PROPOSAL_FOR_UPDATE: LiteralString = GET_PROPOSAL + " for update"


async def select_proposal_for_update(
    tx: Transaction, plan_manager_id: UUID, proposal_id: UUID
) -> BankDetailsRow | None:
    """The row with a proposal that waits for approval, locked until the transaction ends."""
    return await tx.one_or_none(BankDetailsRow, SELECT_PROPOSAL_FOR_UPDATE, plan_manager_id, proposal_id)


FIND_PLAN_MANAGER = "select plan_manager_id from bank_details where proposal_id = $1"


async def find_plan_manager(db: Executor, proposal_id: UUID) -> UUID | None:
    """The plan manager of a proposal that waits, for a command. It reads the details of all plan managers."""
    return await db.one_or_none(UUID, FIND_PLAN_MANAGER, proposal_id)


LIST_WAITING = f"""
    select {COLUMNS}
    from bank_details
    where plan_manager_id = $1 and proposal_id is not null and proposal_id > $2
    order by proposal_id
    limit $3
"""


async def list_waiting(db: Executor, plan_manager_id: UUID, after: UUID, limit: int) -> list[BankDetailsRow]:
    """The details whose proposals wait for approval, those that have waited longest first."""
    return await db.rows(BankDetailsRow, LIST_WAITING, plan_manager_id, after, limit)


COUNT_WAITING = "select count(*) from bank_details where plan_manager_id = $1 and proposal_id is not null"


async def count_waiting(db: Executor, plan_manager_id: UUID) -> int:
    return await db.one(int, COUNT_WAITING, plan_manager_id)


UPSERT = f"""
    insert into bank_details (plan_manager_id, {COLUMNS})
    select $1, {COLUMNS}
    from unnest(
        $2::text[], $3::uuid[], $4::text[], $5::text[], $6::bytea[], $7::text[], $8::timestamptz[], $9::boolean[],
        $10::uuid[], $11::text[], $12::text[], $13::bytea[], $14::text[], $15::text[], $16::uuid[], $17::timestamptz[],
        $18::text[], $19::timestamptz[]
    ) written ({COLUMNS})
    on conflict (plan_manager_id, payee_kind, payee_id) do update set
        ({COLUMNS}) = (select {COLUMNS} from (select excluded.*) written)
"""


async def upsert(tx: Transaction, plan_manager_id: UUID, rows: Sequence[BankDetailsRow]) -> None:
    """Write rows that `select_or_insert_for_update` has locked, with their current details and proposals."""
    await tx.execute(UPSERT, plan_manager_id, *value_lists(BankDetailsRow, rows))


NO_PROPOSAL: LiteralString = """
        proposal_id = null, proposed_account = null, proposed_ending = null, proposed_hash = null,
        proposed_estate_payee = null, proposed_by = null, proposed_by_account = null, proposed_at = null,
        proposed_phone = null"""

# The second person: neither the account that proposed it, nor, unless `$4`, the operator for a proposal of its own.
APPROVE = f"""
    update bank_details set
        current_account = proposed_account, current_ending = proposed_ending, current_hash = proposed_hash,
        current_estate_payee = proposed_estate_payee, current_since = $5, needs_approval = false,
        updated_at = $5,{NO_PROPOSAL}
    where plan_manager_id = $1 and proposal_id = $2 and (proposed_by_account is distinct from $3::uuid or $4)
    returning {COLUMNS}
"""


async def approve(
    tx: Transaction,
    plan_manager_id: UUID,
    proposal_id: UUID,
    account_id: UUID | None,
    now: datetime,
    *,
    approves_own: bool,
) -> BankDetailsRow | None:
    """Make a proposal the current details, and return the row; null if this account can't, or it isn't waiting.

    An account of null is the operator.
    """
    return await tx.one_or_none(
        BankDetailsRow, APPROVE, plan_manager_id, proposal_id, account_id, approves_own and account_id is None, now
    )


REJECT = f"""
    update bank_details set updated_at = $3,{NO_PROPOSAL}
    where plan_manager_id = $1 and proposal_id = $2
    returning {COLUMNS}
"""


async def reject(tx: Transaction, plan_manager_id: UUID, proposal_id: UUID, now: datetime) -> BankDetailsRow | None:
    """Remove a proposal, and return the row; null if it isn't waiting."""
    return await tx.one_or_none(BankDetailsRow, REJECT, plan_manager_id, proposal_id, now)


DELETE: LiteralString = f"""
    delete from bank_details
    where plan_manager_id = $1 and payee_kind = $2 and {in_array("payee_id", "$3::uuid[]")}
    returning payee_id
"""


async def delete_of_missing(db: Executor, plan_manager_id: UUID, payees: Sequence[Payee]) -> None:
    """Delete the details of those of the payees that no longer exist."""
    existing = await list_contacts(db, plan_manager_id, payees) if payees else {}
    for kind in ("provider", "participant"):
        missing = [each.id for each in payees if each.kind == kind and each not in existing]
        if missing:
            await delete(db, plan_manager_id, kind, missing)


async def delete(db: Executor, plan_manager_id: UUID, kind: PayeeKind, payee_ids: Sequence[UUID]) -> int:
    """Delete the details of payees, and return the number of those that had some."""
    return len(await db.rows(UUID, DELETE, plan_manager_id, kind, payee_ids))


class SameAccount(Struct):
    """A payee with the account of a proposal. `is_proposed`: the account waits for approval."""

    hash: bytes
    kind: PayeeKind
    id: UUID
    is_proposed: bool


LIST_BY_HASHES: LiteralString = f"""
    select current_hash as hash, payee_kind as kind, payee_id as id, false as is_proposed
    from bank_details
    where plan_manager_id = $1 and {in_array("current_hash", "$2::bytea[]")} and current_hash is not null
    union all
    select proposed_hash, payee_kind, payee_id, true
    from bank_details
    where plan_manager_id = $1 and {in_array("proposed_hash", "$2::bytea[]")} and proposed_hash is not null
"""


async def list_by_hashes(db: Executor, plan_manager_id: UUID, hashes: Sequence[bytes]) -> list[SameAccount]:
    """The payees with these accounts, current or proposed."""
    return await db.rows(SameAccount, LIST_BY_HASHES, plan_manager_id, hashes)


# Payees

PROVIDER_CONTACT: LiteralString = """
    'provider' as kind, id, entity_name as name, primary_phone_number as phone, false as is_deceased
"""
PARTICIPANT_CONTACT: LiteralString = """
    'participant' as kind, id, nullif(concat_ws(' ', first_name, last_name), '') as name, phone_number as phone,
    deceased_on is not null as is_deceased
"""
# Others can change the record, but not delete it.
LOCK_PROVIDER = f"select {PROVIDER_CONTACT} from providers where plan_manager_id = $1 and id = $2 for key share"
LOCK_PARTICIPANT = f"""
    select {PARTICIPANT_CONTACT} from participants where plan_manager_id = $1 and id = $2 for key share
"""


async def lock_payee(tx: Transaction, plan_manager_id: UUID, payee: Payee) -> PayeeContact | None:
    """The name and the phone number of a payee, which can't be deleted until the transaction ends."""
    if payee.kind == "provider":
        return await tx.one_or_none(PayeeContact, LOCK_PROVIDER, plan_manager_id, payee.id)
    return await tx.one_or_none(PayeeContact, LOCK_PARTICIPANT, plan_manager_id, payee.id)


LIST_CONTACTS: LiteralString = f"""
    select {PROVIDER_CONTACT} from providers where plan_manager_id = $1 and {in_array("id", "$2::uuid[]")}
    union all
    select {PARTICIPANT_CONTACT} from participants where plan_manager_id = $1 and {in_array("id", "$3::uuid[]")}
"""


async def list_contacts(db: Executor, plan_manager_id: UUID, payees: Sequence[Payee]) -> dict[Payee, PayeeContact]:
    """The names and phone numbers of those of the payees that exist."""
    ids = [[each.id for each in payees if each.kind == kind] for kind in ("provider", "participant")]
    rows = await db.rows(PayeeContact, LIST_CONTACTS, plan_manager_id, *ids)
    return {Payee(each.kind, each.id): each for each in rows}


PAYEE_EXISTS = """
    select case $2::text
        when 'participant' then exists (select from participants where plan_manager_id = $1 and id = $3)
        else exists (select from providers where plan_manager_id = $1 and id = $3)
    end
"""


async def payee_exists(db: Executor, plan_manager_id: UUID, payee: Payee) -> bool:
    return await db.one(bool, PAYEE_EXISTS, plan_manager_id, payee.kind, payee.id)


class PhoneChange(Struct):
    """A change of a payee's phone number: the number before it, when, and who changed it."""

    payee_id: UUID
    before: str | None
    at: datetime
    actor_kind: str
    actor_name: str | None


# A deletion changes the number if the payee was created with another one afterwards.
LIST_PHONE_CHANGES: LiteralString = """
    select payee_id, change.before, change.created_at as at, change.actor_kind, change.actor_name
    from unnest($2::text[], $3::uuid[], $4::text[]) payee (kind, payee_id, proposed_phone)
    cross join lateral (
        select previous ->> field as before, created_at, actor_kind, actor_name
        from events
        cross join lateral (
            select case payee.kind when 'provider' then 'primary_phone_number' else 'phone_number' end as field
        ) phone
        where plan_manager_id = $1 and resource_id = payee.payee_id::text and resource_kind = payee.kind
            and created_at >= $5 and previous::jsonb ? field and (
                type in ('provider.updated', 'participant.updated')
                or type in ('provider.deleted', 'participant.deleted')
                    and previous ->> field is distinct from payee.proposed_phone
            )
        order by created_at
        limit 20
    ) change
"""


async def list_phone_changes(
    db: Executor, plan_manager_id: UUID, rows: Sequence[BankDetailsRow], since: datetime
) -> list[PhoneChange]:
    """The first changes of the phone numbers of the payees of proposals since a time, the oldest first."""
    kinds, ids, phones = zip(*((each.payee_kind, each.payee_id, each.proposed_phone) for each in rows), strict=True)
    return await db.rows(PhoneChange, LIST_PHONE_CHANGES, plan_manager_id, kinds, ids, phones, since)


# History

CHANGE_COLUMNS: LiteralString = """
    id, payee_kind, payee_id, proposal_id, action, old_ending, new_ending, note, actor_kind, actor_id, actor_name,
    created_at
"""
INSERT_CHANGES = f"""
    insert into bank_detail_changes (plan_manager_id, {CHANGE_COLUMNS})
    select $1, {CHANGE_COLUMNS} from json_populate_recordset(null::bank_detail_changes, $2)
"""


async def insert_changes(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    """Add entries to the history. `records` is a JSON list of BankDetailChange."""
    await tx.execute(INSERT_CHANGES, plan_manager_id, records)


LIST_CHANGES = f"""
    select {CHANGE_COLUMNS}
    from bank_detail_changes
    where plan_manager_id = $1 and payee_kind = $2 and payee_id = $3
    order by id desc
    limit $4
"""


async def list_changes(db: Executor, plan_manager_id: UUID, payee: Payee, limit: int) -> list[BankDetailChange]:
    """The history of a payee's details, the newest entry first."""
    return await db.rows(BankDetailChange, LIST_CHANGES, plan_manager_id, *payee, limit)


WAS_PROPOSED = "select exists (select from bank_detail_changes where plan_manager_id = $1 and proposal_id = $2)"


async def was_proposed(db: Executor, plan_manager_id: UUID, proposal_id: UUID) -> bool:
    """Whether a proposal was made, whatever happened to it."""
    return await db.one(bool, WAS_PROPOSED, plan_manager_id, proposal_id)


ERASE_NOTES = """
    update bank_detail_changes set note = null where plan_manager_id = $1 and payee_kind = $2 and payee_id = $3
"""


async def erase_notes(tx: Transaction, plan_manager_id: UUID, payee: Payee) -> None:
    """Remove the call-backs and reasons from the history of a person. The endings are kept."""
    await tx.execute(ERASE_NOTES, plan_manager_id, *payee)


# Exports


class StoredAccount(Struct):
    """The current account of a provider, for an export."""

    payee_id: UUID
    current_account: str


LIST_PROVIDER_ACCOUNTS: LiteralString = f"""
    select payee_id, current_account
    from bank_details
    where plan_manager_id = $1 and payee_kind = 'provider' and {in_array("payee_id", "$2::uuid[]")}
        and current_account is not null
"""


async def list_provider_accounts(db: Executor, plan_manager_id: UUID, provider_ids: Sequence[UUID]) -> dict[UUID, str]:
    """The encrypted accounts of providers."""
    rows = await db.rows(StoredAccount, LIST_PROVIDER_ACCOUNTS, plan_manager_id, provider_ids)
    return {each.payee_id: each.current_account for each in rows}
