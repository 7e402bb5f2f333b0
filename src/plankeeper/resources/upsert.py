"""Writes a batch of rows: creates new records, updates existing ones, and records an event for each."""

from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from functools import cache
from typing import Any, Generic, NamedTuple, Protocol, TypeVar
from uuid import UUID

import msgspec
from msgspec import UNSET, Struct
from msgspec.structs import fields
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.fields import has_type, to_row_values
from plankeeper.core.json import to_json
from plankeeper.database.client import Transaction
from plankeeper.events.recorder import Change, record_events

S = TypeVar("S", bound=Struct)
T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

GetRecords = Callable[[Transaction, UUID, Sequence[Any]], Awaitable[Sequence[Any]]]
WriteRecords = Callable[[Transaction, UUID, str], Awaitable[None]]


class RowError(NamedTuple):
    """An error of a line: its number from 1, the field (empty for the whole line), the message."""

    line_number: int
    field: str
    message: str


class ImportRow(NamedTuple, Generic[S]):
    """A valid line: its number from 1, and its values."""

    line_number: int
    values: S


class InvalidRowsError(Exception):
    """Invalid rows of a batch, with all their errors."""

    def __init__(self, errors: Sequence[RowError]) -> None:
        super().__init__()
        self.errors = errors


class RecordPart(Protocol):
    """What a resource writes with its records into other tables.

    `prepare` gets each changed record with the existing one and its line. It can change the record, and raises
    InvalidRowsError. `write` writes what `prepare` has returned after the records, and returns further events.
    """

    async def prepare(self, ctx: WriteContext, changed: Sequence[tuple[int, Any, Any]]) -> Any: ...
    async def write(self, ctx: WriteContext, prepared: Any) -> Sequence[Change]: ...


@dataclass(slots=True)
class ImportCounts:
    """The number of records that an import created, changed, and left unchanged."""

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


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordUpserter:
    """Upserts a resource with one record per row.

    `save` writes records as JSON; with `insert`, it writes only existing ones. `get_many` returns the records as the
    API shows them, for the events; without it, `select_for_update` does. `event_type` gets a record before and after.
    Imported rows without an id get one. `part` writes to other tables.
    """

    record_type: type[Struct]
    select_for_update: GetRecords
    save: WriteRecords
    insert: WriteRecords | None = None
    get_many: GetRecords | None = None
    event_type: Callable[[Struct | None, Struct], str]
    defaults: Callable[[Any], dict[str, Any]] = no_defaults
    new_ids: Callable[[Transaction, int], Awaitable[list[Any]]] = new_uuids
    part: RecordPart | None = None

    async def __call__(self, ctx: WriteContext, rows: Sequence[ImportRow[Any]]) -> ImportCounts:
        generated_ids = iter(await self.new_ids(ctx.tx, sum(row.values.id is UNSET for row in rows)))
        ids: list[Any] = [next(generated_ids) if row.values.id is UNSET else row.values.id for row in rows]
        if len({normalize_id(id_) for id_ in ids}) < len(ids):
            return await upsert_each(self, ctx, rows)
        selected = await self.select_for_update(ctx.tx, ctx.plan_manager_id, ids)
        names = self.record_type.__struct_fields__  # without the time of the last change, which a row doesn't have
        old = by_id([self.record_type(**{name: getattr(each, name) for name in names}) for each in selected])
        records = map_collecting_errors(
            lambda row, id_: merge_record(
                self.record_type, row, {"id": id_}, old.get(normalize_id(id_)), self.defaults
            ),
            rows,
            ids,
        )
        keyed = [(row.line_number, normalize_id(record.id), record) for row, record in zip(rows, records, strict=True)]
        written = [each for each in keyed if each[1] not in old or has_changed(old[each[1]], each[2])]
        changed = [(key, record) for _, key, record in written]
        part = self.part
        prepared = part and await part.prepare(ctx, [(number, old.get(key), each) for number, key, each in written])
        created = [record for key, record in changed if key not in old]
        updated = [record for key, record in changed if key in old]
        saved = updated if self.insert else [record for _, record in changed]
        before = by_id(await self._get_many(ctx, updated))
        if self.insert and created:
            await self.insert(ctx.tx, ctx.plan_manager_id, to_json(created))
        if saved:
            await self.save(ctx.tx, ctx.plan_manager_id, to_json(saved))
        others = await part.write(ctx, prepared) if part else ()
        after = await self._get_many(ctx, [record for _, record in changed])
        pairs = [(before.get(normalize_id(record.id)), record) for record in after]
        await record_events(ctx, [*((self.event_type(*pair), *pair) for pair in pairs), *others])
        for row, id_ in zip(rows, ids, strict=True):
            row.values.id = id_
        return ImportCounts(len(created), len(updated), len(rows) - len(changed))

    async def _get_many(self, ctx: WriteContext, records: Sequence[Any]) -> Sequence[Any]:
        if not records:
            return []
        get_many = self.get_many or self.select_for_update
        return await get_many(ctx.tx, ctx.plan_manager_id, [record.id for record in records])


async def upsert_each(
    upsert: Callable[[WriteContext, Sequence[ImportRow[Any]]], Awaitable[ImportCounts]],
    ctx: WriteContext,
    rows: Sequence[ImportRow[Any]],
) -> ImportCounts:
    """Upsert rows one by one, because several are about the same record: each sees the changes of the one before."""
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
    """An id as lower-case text."""
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
    """The existing record with the values of a row, or a new one. Raises InvalidRowsError if it lacks a value."""
    given: Struct = row.values
    names = _common_fields(type(given), record_type)
    provided = {name: value for name in names if (value := getattr(given, name)) is not UNSET} | overrides
    to_row_values(record_type, provided)
    for name in _datetime_fields(record_type):
        if isinstance(value := provided.get(name), datetime):
            provided[name] = value.astimezone(UTC)
    if old is not None:
        return msgspec.structs.replace(old, **provided)
    values = defaults(row.values) | provided
    missing = [name for name in _required_fields(record_type) if values.get(name) is None]
    if missing:
        raise InvalidRowsError([RowError(row.line_number, name, "is required for a new record") for name in missing])
    return record_type(**values)


def map_collecting_errors(function: Callable[[A, B], T], rows: Sequence[A], others: Sequence[B]) -> list[T]:
    """Call `function` with each pair. Raises InvalidRowsError with the errors of all calls."""
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
def _common_fields(row_type: type[Struct], record_type: type[Struct]) -> list[str]:
    names = set(record_type.__struct_fields__)
    return [name for name in row_type.__struct_fields__ if name in names]


@cache
def _datetime_fields(record_type: type[Struct]) -> list[str]:
    return [field.name for field in fields(record_type) if has_type(field.type, datetime)]


@cache
def _required_fields(record_type: type[Struct]) -> list[str]:
    return [field.name for field in fields(record_type) if field.required]
