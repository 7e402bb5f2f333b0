"""The review queue in SQL: which invoices wait for somebody, and who looks at which of them.

The oldest come first, by the time of their receipt. All statements read the index `invoices_in_review`. What waits is
found by `waiting_line_status`, so that a rejected line beside paid ones is, whatever the state of its invoice says.
"""

from collections.abc import Sequence
from datetime import datetime, timedelta
from typing import Literal, LiteralString, NamedTuple
from uuid import UUID

from asyncpg import UniqueViolationError
from msgspec import Struct

from plankeeper.database.client import Executor

LEASE_TIME = timedelta(minutes=10)
MAX_CANDIDATES = 20  # that one statement returns
MAX_COUNTED = 2000  # of each filter
Queue = Literal["waiting", "held", "approval", "rejected"]

# The predicate of the index, which each statement repeats.
IN_REVIEW: LiteralString = """not is_deleted and not wont_claim and (
        claim_status = 'on_hold' or waiting_line_status in ('flagged', 'rejected')
        or waiting_line_status = 'new' and (errors or approval_status in ('pending', 'rejected'))
    )"""
# What waits for somebody: an open warning, a rejected approval, or an answer of the agency.
WAITS: LiteralString = """claim_status <> 'on_hold'
        and (errors or approval_status = 'rejected' or waiting_line_status in ('flagged', 'rejected'))"""
HELD: LiteralString = "claim_status = 'on_hold'"
APPROVAL: LiteralString = "claim_status <> 'on_hold' and approval_status = 'pending'"
# Also of invoices that are held.
REJECTED: LiteralString = "waiting_line_status = 'rejected'"
# $2: the queue, $3: an account or null, $4: only those of nobody, $5: a warning or null.
MATCHES: LiteralString = f"""{IN_REVIEW}
    and case $2::text
        when 'held' then {HELD} when 'approval' then {APPROVAL} when 'rejected' then {REJECTED} else {WAITS}
    end
    and ($3::uuid is null or assigned_to = $3) and (assigned_to is null or not $4::boolean)
    and ($5::text is null or $5 = any (warning_codes))"""


class ReviewFilter(NamedTuple):
    """A part of the queue. `assigned_to` and `warning` are null for all; `is_unassigned`: only those of nobody."""

    queue: Queue = "waiting"
    assigned_to: UUID | None = None
    is_unassigned: bool = False
    warning: str | None = None


LIST_CANDIDATES: LiteralString = f"""
    select id
    from invoices
    where plan_manager_id = $1 and {MATCHES}
        and (received_at, id) > (
            coalesce((select received_at from invoices where plan_manager_id = $1 and id = $6), '-infinity'),
            coalesce($6::uuid, '00000000-0000-0000-0000-000000000000')
        )
        and id <> all (array(
            select invoice_id from review_leases
            where plan_manager_id = $1 and account_id <> $7 and expires_at >= $8
        ))
    order by received_at, id
    limit $9
"""


async def list_candidates(
    db: Executor,
    plan_manager_id: UUID,
    account_id: UUID,
    wanted: ReviewFilter,
    after: UUID | None,
    now: datetime,
    limit: int = MAX_CANDIDATES,
) -> list[UUID]:
    """The invoices of a part of the queue that follow an invoice, or the first ones, and that no other has leased."""
    values = (after, account_id, now, limit)
    return await db.rows(UUID, LIST_CANDIDATES, plan_manager_id, *wanted_values(wanted), *values)


LIST_PRECEDING: LiteralString = f"""
    select id
    from invoices
    where plan_manager_id = $1 and {MATCHES}
        and (received_at, id) < ((select received_at from invoices where plan_manager_id = $1 and id = $6), $6)
    order by received_at desc, id desc
    limit $7
"""


async def list_preceding(
    db: Executor, plan_manager_id: UUID, wanted: ReviewFilter, before: UUID, limit: int
) -> list[UUID]:
    """The invoices of a part of the queue before an invoice, the nearest first, also those that others look at."""
    return await db.rows(UUID, LIST_PRECEDING, plan_manager_id, *wanted_values(wanted), before, limit)


def wanted_values(wanted: ReviewFilter) -> tuple[str, UUID | None, bool, str | None]:
    """The values of MATCHES."""
    return wanted.queue, wanted.assigned_to, wanted.is_unassigned, wanted.warning


# The candidate can have been decided since it was found. Citus loses the type of a selected `$1`.
TAKE: LiteralString = f"""
    insert into review_leases (plan_manager_id, invoice_id, account_id, expires_at)
    select plan_manager_id, id, $7, $8 from invoices where plan_manager_id = $1 and id = $6 and {MATCHES}
    on conflict (plan_manager_id, invoice_id) do update set
        account_id = excluded.account_id, expires_at = excluded.expires_at
    where review_leases.expires_at < $9 or review_leases.account_id = excluded.account_id
    returning invoice_id
"""
DELETE_OTHERS = "delete from review_leases where plan_manager_id = $1 and account_id = $2 and invoice_id <> $3"


async def take_next(
    db: Executor, plan_manager_id: UUID, account_id: UUID, wanted: ReviewFilter, after: UUID | None, now: datetime
) -> UUID | None:
    """Lease the first invoice after another one, or else from the beginning of the queue; null if there is none.

    Each statement commits by itself, so nobody waits for another's lease, and no two people get the same invoice.
    """
    for start in dict.fromkeys((after, None)):
        position = start
        while candidates := await list_candidates(db, plan_manager_id, account_id, wanted, position, now):
            for candidate in candidates:
                if candidate != after and await _take(db, plan_manager_id, account_id, wanted, candidate, now):
                    return candidate
            position = candidates[-1]
    if after and await _take(db, plan_manager_id, account_id, wanted, after, now):
        return after  # the only one that is left
    return None


async def _take(
    db: Executor, plan_manager_id: UUID, account_id: UUID, wanted: ReviewFilter, invoice_id: UUID, now: datetime
) -> bool:
    await db.execute(DELETE_OTHERS, plan_manager_id, account_id, invoice_id)
    values = (invoice_id, account_id, now + LEASE_TIME, now)
    try:
        taken = await db.one_or_none(UUID, TAKE, plan_manager_id, *wanted_values(wanted), *values)
    except UniqueViolationError:  # in a second window, the account has taken another one
        return False
    # A colleague can have decided about it and given it up after the statement had read it.
    return taken is not None and await matches(db, plan_manager_id, wanted, invoice_id)


RENEW: LiteralString = """
    insert into review_leases (plan_manager_id, invoice_id, account_id, expires_at)
    select plan_manager_id, id, $3, $4 from invoices where plan_manager_id = $1 and id = $2
    on conflict (plan_manager_id, invoice_id) do update set
        account_id = excluded.account_id, expires_at = excluded.expires_at
    where review_leases.expires_at < $5 or review_leases.account_id = excluded.account_id
    returning invoice_id
"""


async def renew(db: Executor, plan_manager_id: UUID, account_id: UUID, invoice_id: UUID, now: datetime) -> bool:
    """Lease an invoice that somebody opens or still looks at; false if a colleague looks at it."""
    await db.execute(DELETE_OTHERS, plan_manager_id, account_id, invoice_id)
    try:
        taken = await db.one_or_none(UUID, RENEW, plan_manager_id, invoice_id, account_id, now + LEASE_TIME, now)
    except UniqueViolationError:
        return False
    return taken is not None


GET_HOLDER = """
    select account_id from review_leases where plan_manager_id = $1 and invoice_id = $2 and expires_at >= $3
"""


async def get_holder(db: Executor, plan_manager_id: UUID, invoice_id: UUID, now: datetime) -> UUID | None:
    """The account that looks at an invoice."""
    return await db.one_or_none(UUID, GET_HOLDER, plan_manager_id, invoice_id, now)


MATCHES_FILTER: LiteralString = f"""
    select exists (select from invoices where plan_manager_id = $1 and id = $6 and {MATCHES})
"""


async def matches(db: Executor, plan_manager_id: UUID, wanted: ReviewFilter, invoice_id: UUID) -> bool:
    """Whether an invoice is in a part of the queue."""
    return await db.one(bool, MATCHES_FILTER, plan_manager_id, *wanted_values(wanted), invoice_id)


class QueueCounts(Struct):
    """The numbers of invoices by filter, each at most MAX_COUNTED."""

    waiting: int
    mine: int
    unassigned: int
    held: int
    approval: int
    rejected: int


OF_QUEUE: LiteralString = f"select from invoices where plan_manager_id = $1 and {IN_REVIEW}"
# Not `=`, for which PostgreSQL could read everything that was ever assigned to the account.
MINE: LiteralString = "assigned_to is not distinct from $2"
LIMITED: LiteralString = "order by received_at, id limit $3::bigint"
COUNT: LiteralString = f"""
    select (select count(*) from ({OF_QUEUE} and {WAITS} {LIMITED}) found) as waiting,
        (select count(*) from ({OF_QUEUE} and {WAITS} and {MINE} {LIMITED}) found) as mine,
        (select count(*) from ({OF_QUEUE} and {WAITS} and assigned_to is null {LIMITED}) found) as unassigned,
        (select count(*) from ({OF_QUEUE} and {HELD} {LIMITED}) found) as held,
        (select count(*) from ({OF_QUEUE} and {APPROVAL} {LIMITED}) found) as approval,
        (select count(*) from ({OF_QUEUE} and {REJECTED} {LIMITED}) found) as rejected
"""


async def count(db: Executor, plan_manager_id: UUID, account_id: UUID) -> QueueCounts:
    return await db.one(QueueCounts, COUNT, plan_manager_id, account_id, MAX_COUNTED)


class WarningCount(Struct):
    """The invoices with a warning among the oldest MAX_COUNTED that wait."""

    code: str
    count: int


COUNT_WARNINGS: LiteralString = f"""
    select code, count(*)
    from (
        select unnest(warning_codes) as code
        from (
            select warning_codes from invoices
            where plan_manager_id = $1 and {IN_REVIEW} and {WAITS}
            order by received_at, id
            limit $2
        ) oldest
    ) warning
    group by code
    order by count(*) desc, code
"""


async def count_warnings(db: Executor, plan_manager_id: UUID) -> Sequence[WarningCount]:
    """The warnings, the most frequent first, with those that only inform."""
    return await db.rows(WarningCount, COUNT_WARNINGS, plan_manager_id, MAX_COUNTED)


class AssigneeCount(Struct):
    """The invoices of an account that wait, or of nobody, and when the oldest of them was received."""

    assigned_to: UUID | None
    count: int
    oldest: datetime


COUNT_BY_ASSIGNEE: LiteralString = f"""
    select assigned_to, count(*), min(received_at) as oldest
    from invoices
    where plan_manager_id = $1 and {IN_REVIEW} and {WAITS}
    group by assigned_to
    order by count(*) desc, assigned_to
"""


async def count_by_assignee(db: Executor, plan_manager_id: UUID) -> list[AssigneeCount]:
    """What waits for whom, exactly. It reads the whole queue: the sums of Home keep the result."""
    return await db.rows(AssigneeCount, COUNT_BY_ASSIGNEE, plan_manager_id)
