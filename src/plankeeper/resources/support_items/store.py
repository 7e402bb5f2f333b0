"""The support catalogue in SQL. It belongs to no plan manager; only the tables' owner writes it.

An item has a row for each period of its prices. If two periods of a number contain a day, the later one counts.
"""

from collections.abc import Collection
from datetime import date, datetime
from typing import LiteralString

from msgspec import UNSET, Struct

from plankeeper.core.lists import PageRows, cut_page
from plankeeper.database.client import Executor, Transaction
from plankeeper.resources.support_items.schemas import SupportCatalogue, SupportItem, SupportItemListQuery

WRITTEN_COLUMNS: LiteralString = """
    support_item_number, start_date, end_date, name, registration_group_number, registration_group_name, category,
    pace_category, category_name, pace_category_name, unit, is_quote_required, type, has_price_limit, price_limits,
    allows_non_face_to_face, allows_provider_travel, allows_short_notice_cancellations, allows_ndia_requested_reports,
    allows_irregular_sil
"""
COLUMNS: LiteralString = WRITTEN_COLUMNS.replace(" price_limits,", " price_limits::json as price_limits,")
IN_FORCE: LiteralString = "start_date <= {day} and (end_date is null or end_date >= {day})"

GET_CATALOGUE = "select revision, imported_at from support_catalogue"


async def get_catalogue(db: Executor) -> SupportCatalogue:
    return await db.one(SupportCatalogue, GET_CATALOGUE)


LOCK_CATALOGUE = "select revision from support_catalogue for update"


async def lock_catalogue(tx: Transaction) -> int:
    """The revision; no other transaction changes the catalogue until this one ends."""
    return await tx.one(int, LOCK_CATALOGUE)


INCREASE_REVISION = """
    update support_catalogue set revision = revision + 1, imported_at = $1 returning revision
"""


async def increase_revision(tx: Transaction, now: datetime) -> int:
    return await tx.one(int, INCREASE_REVISION, now)


LIST_ALL: LiteralString = f"""
    select {COLUMNS} from support_items order by support_item_number collate "C", start_date
"""


async def list_all(db: Executor) -> list[SupportItem]:
    """The items of all periods."""
    return await db.rows(SupportItem, LIST_ALL)


class CategoryName(Struct):
    """A support category with its name."""

    number: int
    name: str


LIST_CATEGORY_NAMES = """
    select category as number, min(category_name) as name
    from support_items
    where category_name is not null
    group by category
    order by category
"""


async def list_category_names(db: Executor) -> list[CategoryName]:
    """The categories of all items."""
    return await db.rows(CategoryName, LIST_CATEGORY_NAMES)


UPSERT: LiteralString = f"""
    insert into support_items ({WRITTEN_COLUMNS})
    select {WRITTEN_COLUMNS} from json_populate_recordset(null::support_items, $1)
    on conflict (support_item_number, start_date) do update set
        end_date = excluded.end_date, name = excluded.name,
        registration_group_number = excluded.registration_group_number,
        registration_group_name = excluded.registration_group_name, category = excluded.category,
        pace_category = excluded.pace_category, category_name = excluded.category_name,
        pace_category_name = excluded.pace_category_name, unit = excluded.unit,
        is_quote_required = excluded.is_quote_required, type = excluded.type,
        has_price_limit = excluded.has_price_limit, price_limits = excluded.price_limits,
        allows_non_face_to_face = excluded.allows_non_face_to_face,
        allows_provider_travel = excluded.allows_provider_travel,
        allows_short_notice_cancellations = excluded.allows_short_notice_cancellations,
        allows_ndia_requested_reports = excluded.allows_ndia_requested_reports,
        allows_irregular_sil = excluded.allows_irregular_sil
"""


async def upsert(tx: Transaction, records: str) -> None:
    """Insert items or replace existing ones. `records` is a JSON list of SupportItem."""
    await tx.execute(UPSERT, records)


class ItemOnDay(SupportItem, frozen=True, kw_only=True):
    """The item that its number names on a day."""

    day: date


GET_IN_FORCE: LiteralString = f"""
    select item.*, wanted.day
    from unnest($1::text[], $2::date[]) as wanted (number, day)
    cross join lateral (
        select {COLUMNS}
        from support_items
        where support_item_number = wanted.number and {IN_FORCE.format(day="wanted.day")}
        order by start_date desc
        limit 1
    ) item
"""


async def get_in_force(db: Executor, wanted: Collection[tuple[str, date]]) -> dict[tuple[str, date], SupportItem]:
    """The items that numbers name on days. Pairs without an item are left out."""
    pairs = [*set(wanted)]
    rows = await db.rows(ItemOnDay, GET_IN_FORCE, [number for number, _ in pairs], [day for _, day in pairs])
    return {(each.support_item_number, each.day): each for each in rows}


LIST_KNOWN = """
    select number
    from unnest($1::text[]) as wanted (number)
    where exists (select from support_items where support_item_number = wanted.number)
"""


async def list_known(db: Executor, numbers: Collection[str]) -> list[str]:
    """Those of the numbers that the catalogue has, on any day."""
    return await db.rows(str, LIST_KNOWN, [*set(numbers)])


# The catalogue has a few thousand rows, which are read in a few milliseconds.
MATCHING: LiteralString = f"""
    select distinct on (support_item_number collate "C") {COLUMNS}
    from support_items
    where {IN_FORCE.format(day="$1::date")}
    order by support_item_number collate "C", start_date desc
"""
MATCHES: LiteralString = """
    ($2::int is null or category = $2 or pace_category = $2)
        and lower(support_item_number || ' ' || name) like all ($3::text[])
"""
PAGE: LiteralString = f"""
    select *
    from ({MATCHING}) item
    where {MATCHES} and support_item_number collate "C" > $4
    order by support_item_number collate "C"
    limit $5 offset $6
"""


async def list_page(db: Executor, query: SupportItemListQuery, day: date) -> PageRows[SupportItem]:
    """A page of the items in force on a day."""
    rows = await db.rows(SupportItem, PAGE, *_values(query, day), *query.position)
    return cut_page(rows, query.limit, "support_item_number")


COUNT: LiteralString = f"select count(*) from ({MATCHING}) item where {MATCHES}"


async def count(db: Executor, query: SupportItemListQuery, day: date) -> int:
    return await db.one(int, COUNT, *_values(query, day))


def _values(query: SupportItemListQuery, day: date) -> tuple[date, int | None, list[str]]:
    words = "" if query.q is UNSET else query.q.lower()
    for special in "\\%_":
        words = words.replace(special, f"\\{special}")
    return day, None if query.category is UNSET else query.category, [f"%{each}%" for each in words.split()]
