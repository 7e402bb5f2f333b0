"""The participants, providers and accounts that requests name by their ids or numbers, in SQL."""

from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from typing import Literal, LiteralString, NamedTuple
from uuid import UUID

from msgspec import Struct

from plankeeper.core.formatting import digits_of, plain_number
from plankeeper.database.client import Executor
from plankeeper.database.number_keys import abn_key, participant_number_key
from plankeeper.database.row_ids import in_array
from plankeeper.resources.invoices.schemas import InvoiceUpdate

ReferenceKind = Literal["participant", "provider"]
_DIGITS: Mapping[ReferenceKind, int] = {"participant": 9, "provider": 11}


class FoundRecord(Struct):
    """A participant or a provider. `number` is the sent one that it has, or null if it was found by its id.

    `is_own`: it is the office's own record among the providers.
    """

    kind: ReferenceKind
    number: str | None
    id: UUID
    approval_required: bool
    is_own: bool


# Whether the provider `found` is the office, however its ABN is written.
IS_OWN: LiteralString = f"""
    exists (select from office_settings where plan_manager_id = $1 and abn = {abn_key("found.abn")})
"""
# Up to two records for each number say whether it is that of one, of several or of none. With the limit, PostgreSQL
# looks each number up in its index.
FIND_RECORDS = f"""
    select 'participant' as kind, sent.number, found.id, found.approval_required, false as is_own
    from unnest($2::text[]) sent (number)
    cross join lateral (
        select id, approval_required
        from participants
        where plan_manager_id = $1 and {participant_number_key()} = sent.number
        limit 2
    ) found
    union all
    select 'provider', sent.number, found.id, false, {IS_OWN}
    from unnest($3::text[]) sent (number)
    cross join lateral (
        select id, abn from providers where plan_manager_id = $1 and {abn_key()} = sent.number limit 2
    ) found
    union all
    select 'participant', null, id, approval_required, false
    from participants
    where plan_manager_id = $1 and {in_array("id", "$4::uuid[]")}
    union all
    select 'provider', null, id, false, {IS_OWN}
    from providers found
    where plan_manager_id = $1 and {in_array("id", "$5::uuid[]")}
"""
LIST_ACCOUNTS = "select account_id from account_roles where plan_manager_id = $1 and account_id = any ($2)"


class References(NamedTuple):
    """The records that exist. The keys of `by_number` are kinds and numbers as `sent_number` returns them."""

    by_id: dict[UUID, FoundRecord]
    by_number: defaultdict[tuple[ReferenceKind, str], list[FoundRecord]]
    accounts: set[UUID]


def sent_number(kind: ReferenceKind, text: str) -> str:
    """A participant number or an ABN in the form in which records are compared."""
    digits = digits_of(text)
    return digits if len(digits) == _DIGITS[kind] else plain_number(text).replace(" ", "")


async def find(db: Executor, plan_manager_id: UUID, changes: Sequence[InvoiceUpdate]) -> References:
    """Those of the records that the changes name which the plan manager has."""
    references = References({}, defaultdict(list), set())
    numbers = [
        _numbers("participant", (each.participant_number for each in changes)),
        _numbers("provider", (each.provider_abn for each in changes)),
    ]
    ids = [_ids(each.participant_id for each in changes), _ids(each.pm_provider_id for each in changes)]
    if any(numbers) or any(ids):
        for record in await db.rows(FoundRecord, FIND_RECORDS, plan_manager_id, *numbers, *ids):
            references.by_id[record.id] = record
            if record.number is not None:
                references.by_number[record.kind, record.number].append(record)
    if accounts := _ids(each.assigned_to for each in changes):
        references.accounts.update(await db.rows(UUID, LIST_ACCOUNTS, plan_manager_id, accounts))
    return references


def _numbers(kind: ReferenceKind, sent: Iterable[object]) -> list[str]:
    return sorted({sent_number(kind, each) for each in sent if isinstance(each, str) and each.strip()})


def _ids(sent: Iterable[object]) -> list[UUID]:
    return sorted({UUID(each) for each in sent if isinstance(each, str)})
