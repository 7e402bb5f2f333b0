"""A batch of lines meets what there is: new records are made, known ones changed, each with its event."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from functools import cache
from typing import Any, TypeVar, get_args
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import fields
from uuid_utils.compat import uuid7

from plankeeper.database.client import Transaction
from plankeeper.events.recorder import record_events
from plankeeper.http.context import WriteContext
from plankeeper.http.json import to_json
from plankeeper.http.parsing import unwrap_type
from plankeeper.import_export.reader import ImportRow, RowError

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

FetchRecords = Callable[[Transaction, UUID, Sequence[Any]], Awaitable[Sequence[Any]]]


class InvalidRowsError(Exception):
    """Lines of a batch that cannot be taken."""

    def __init__(self, errors: Sequence[RowError]) -> None:
        super().__init__()
        self.errors = errors


@dataclass(slots=True)
class ImportCounts:
    """How many records an import made, changed, and found as they were."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0

    def add(self, other: "ImportCounts") -> None:
        self.created += other.created
        self.changed += other.changed
        self.unchanged += other.unchanged


def created_or_updated(kind: str) -> Callable[[Struct | None, Struct], str]:
    return lambda before, _after: f"{kind}.{'updated' if before else 'created'}"


def default_created_at(_values: Struct) -> dict[str, Any]:
    return {"created_at": datetime.now(UTC)}


def no_defaults(_values: Struct) -> dict[str, Any]:
    return {}


async def new_uuids(_tx: Transaction, count: int) -> list[Any]:
    return [uuid7() for _ in range(count)]


@dataclass(frozen=True, slots=True)
class RecordUpserter:
    """The merge of a resource whose lines are its records.

    `locked` fetches records for update, `put` writes them (new ones with `insert`, where they need another
    statement), `view` fetches what the API shows of them.
    """

    record_type: type[Struct]
    select_for_update: FetchRecords
    save: Callable[[Transaction, UUID, str], Awaitable[None]]
    fetch_view: FetchRecords
    event_type: Callable[[Struct | None, Struct], str]
    defaults: Callable[[Any], dict[str, Any]] = no_defaults
    new_ids: Callable[[Transaction, int], Awaitable[list[Any]]] = field(default=new_uuids)
    insert: Callable[[Transaction, UUID, str], Awaitable[None]] | None = None

    async def __call__(self, ctx: WriteContext, rows: Sequence[ImportRow[Any]]) -> ImportCounts:
        generated_ids = iter(await self.new_ids(ctx.tx, sum(row.values.id is UNSET for row in rows)))
        ids: list[Any] = [next(generated_ids) if row.values.id is UNSET else row.values.id for row in rows]
        if len({normalize_id(id_) for id_ in ids}) < len(ids):
            return await upsert_each(self, ctx, rows)
        old = by_id(await self.select_for_update(ctx.tx, ctx.plan_manager_id, ids))
        records = map_collecting_errors(
            lambda row, id_: merge_record(
                self.record_type, row, {"id": id_}, old.get(normalize_id(id_)), self.defaults
            ),
            rows,
            ids,
        )
        changed = [
            new for new in records if normalize_id(new.id) not in old or has_changed(old[normalize_id(new.id)], new)
        ]
        before = by_id(
            await self.fetch_view(
                ctx.tx, ctx.plan_manager_id, [i for new in changed if normalize_id(i := new.id) in old]
            )
        )
        created = [new for new in changed if self.insert and normalize_id(new.id) not in old]
        if self.insert and created:
            await self.insert(ctx.tx, ctx.plan_manager_id, to_json(created))
        existing = [new for new in changed if not self.insert or normalize_id(new.id) in old]
        if existing:
            await self.save(ctx.tx, ctx.plan_manager_id, to_json(existing))
        after = await self.fetch_view(ctx.tx, ctx.plan_manager_id, [new.id for new in changed])
        pairs = [(before.get(normalize_id(each.id)), each) for each in after]
        await record_events(ctx, [(self.event_type(*pair), *pair) for pair in pairs])
        return ImportCounts(len(changed) - len(before), len(before), len(rows) - len(changed))


async def upsert_each(
    upsert: Callable[[WriteContext, Sequence[ImportRow[Any]]], Awaitable[ImportCounts]],
    ctx: WriteContext,
    rows: Sequence[ImportRow[Any]],
) -> ImportCounts:
    """Merge a batch with lines about one record: each of these meets what the one before it made."""
    counts = ImportCounts()
    errors: list[RowError] = []
    for row in rows:
        try:
            counts.add(await upsert(ctx, [row]))
        except InvalidRowsError as error:
            errors += error.errors
    if errors:
        raise InvalidRowsError(errors)
    return counts


def normalize_id(id_: object) -> str:
    """An id as a text that is the same in either case."""
    return str(id_).lower()


def by_id(records: Sequence[Any]) -> dict[str, Any]:
    return {normalize_id(each.id): each for each in records}


def has_changed(old: Struct, new: Struct) -> bool:
    return to_json(old) != to_json(new)


def merge_record(
    record_type: type[Struct],
    row: ImportRow[Any],
    overrides: dict[str, Any],
    old: Struct | None,
    defaults: Callable[[Any], dict[str, Any]] = no_defaults,
) -> Any:
    """The record that a line makes of `old`, or of nothing; raises BadLines where a new one lacks what it needs."""
    names = set(record_type.__struct_fields__)
    provided = {name: getattr(row.values, name) for name in row.values.__struct_fields__ if name in names}
    provided = {name: value for name, value in provided.items() if value is not UNSET} | overrides
    for name in _normalized_fields(record_type):
        value = provided.get(name)
        if isinstance(value, datetime):
            provided[name] = value.astimezone(UTC)
        elif isinstance(value, str):
            provided[name] = value.lower()
    if old is not None:
        return msgspec.structs.replace(old, **provided)
    values = {**defaults(row.values), **provided}
    missing = [name for name in _required_fields(record_type) if values.get(name) is None]
    if missing:
        raise InvalidRowsError([RowError(row.line_number, name, "is required for a new record") for name in missing])
    return record_type(**values)


def map_collecting_errors(function: Callable[[A, B], T], rows: Sequence[A], others: Sequence[B]) -> list[T]:
    """What `make` makes of each line and what belongs to it; raises BadLines with the faults of all."""
    results: list[T] = []
    errors: list[RowError] = []
    for row, other in zip(rows, others, strict=True):
        try:
            results.append(function(row, other))
        except InvalidRowsError as error:
            errors += error.errors
    if errors:
        raise InvalidRowsError(errors)
    return results


@cache
def _normalized_fields(record_type: type[Struct]) -> list[str]:
    """The ids and datetimes, which a file may write otherwise than they are kept, and still mean the same."""
    return [
        field.name
        for field in fields(record_type)
        if {UUID, datetime} & {unwrap_type(field.type), *get_args(field.type)}
    ]


@cache
def _required_fields(record_type: type[Struct]) -> list[str]:
    return [field.name for field in fields(record_type) if field.required]
