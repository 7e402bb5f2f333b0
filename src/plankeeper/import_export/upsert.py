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
from plankeeper.events.recorder import record_many
from plankeeper.http.context import Write
from plankeeper.http.parsing import plain_type
from plankeeper.http.schemas import json_text
from plankeeper.import_export.reader import BadLine, Line

T = TypeVar("T")
A = TypeVar("A")
B = TypeVar("B")

Records = Callable[[Transaction, UUID, Sequence[Any]], Awaitable[Sequence[Any]]]


class BadLines(Exception):
    """Lines of a batch that cannot be taken."""

    def __init__(self, faults: Sequence[BadLine]) -> None:
        super().__init__()
        self.faults = faults


@dataclass(slots=True)
class Tally:
    """How many records an import made, changed, and found as they were."""

    created: int = 0
    changed: int = 0
    unchanged: int = 0

    def add(self, other: "Tally") -> None:
        self.created += other.created
        self.changed += other.changed
        self.unchanged += other.unchanged


def created_or_updated(kind: str) -> Callable[[Struct | None, Struct], str]:
    return lambda before, _after: f"{kind}.{'updated' if before else 'created'}"


def now_created(_values: Struct) -> dict[str, Any]:
    return {"created_at": datetime.now(UTC)}


def nothing(_values: Struct) -> dict[str, Any]:
    return {}


async def new_uuids(_tx: Transaction, count: int) -> list[Any]:
    return [uuid7() for _ in range(count)]


@dataclass(frozen=True, slots=True)
class PlainMerge:
    """The merge of a resource whose lines are its records.

    `locked` fetches records for update, `put` writes them (new ones with `insert`, where they need another
    statement), `view` fetches what the API shows of them.
    """

    record: type[Struct]
    locked: Records
    put: Callable[[Transaction, UUID, str], Awaitable[None]]
    view: Records
    event: Callable[[Struct | None, Struct], str]
    defaults: Callable[[Any], dict[str, Any]] = nothing
    new_ids: Callable[[Transaction, int], Awaitable[list[Any]]] = field(default=new_uuids)
    insert: Callable[[Transaction, UUID, str], Awaitable[None]] | None = None

    async def __call__(self, call: Write, lines: Sequence[Line[Any]]) -> Tally:
        made = iter(await self.new_ids(call.tx, sum(line.values.id is UNSET for line in lines)))
        ids: list[Any] = [next(made) if line.values.id is UNSET else line.values.id for line in lines]
        if len({key(id_) for id_ in ids}) < len(ids):
            return await one_by_one(self, call, lines)
        old = by_id(await self.locked(call.tx, call.plan_manager_id, ids))
        records = every(
            lambda line, id_: merged(self.record, line, {"id": id_}, old.get(key(id_)), self.defaults), lines, ids
        )
        changed = [new for new in records if key(new.id) not in old or differs(old[key(new.id)], new)]
        before = by_id(
            await self.view(call.tx, call.plan_manager_id, [i for new in changed if key(i := new.id) in old])
        )
        created = [new for new in changed if self.insert and key(new.id) not in old]
        if self.insert and created:
            await self.insert(call.tx, call.plan_manager_id, json_text(created))
        known = [new for new in changed if not self.insert or key(new.id) in old]
        if known:
            await self.put(call.tx, call.plan_manager_id, json_text(known))
        after = await self.view(call.tx, call.plan_manager_id, [new.id for new in changed])
        pairs = [(before.get(key(each.id)), each) for each in after]
        await record_many(call, [(self.event(*pair), *pair) for pair in pairs])
        return Tally(len(changed) - len(before), len(before), len(lines) - len(changed))


async def one_by_one(
    merge: Callable[[Write, Sequence[Line[Any]]], Awaitable[Tally]], call: Write, lines: Sequence[Line[Any]]
) -> Tally:
    """Merge a batch with lines about one record: each of these meets what the one before it made."""
    tally = Tally()
    faults: list[BadLine] = []
    for line in lines:
        try:
            tally.add(await merge(call, [line]))
        except BadLines as bad:
            faults += bad.faults
    if faults:
        raise BadLines(faults)
    return tally


def key(id_: object) -> str:
    """An id as a text that is the same in either case."""
    return str(id_).lower()


def by_id(records: Sequence[Any]) -> dict[str, Any]:
    return {key(each.id): each for each in records}


def differs(old: Struct, new: Struct) -> bool:
    return json_text(old) != json_text(new)


def merged(
    shape: type[Struct],
    line: Line[Any],
    known: dict[str, Any],
    old: Struct | None,
    defaults: Callable[[Any], dict[str, Any]] = nothing,
) -> Any:
    """The record that a line makes of `old`, or of nothing; raises BadLines where a new one lacks what it needs."""
    names = set(shape.__struct_fields__)
    sent = {name: getattr(line.values, name) for name in line.values.__struct_fields__ if name in names}
    sent = {name: value for name, value in sent.items() if value is not UNSET} | known
    for name in _with_one_form(shape):
        value = sent.get(name)
        if isinstance(value, datetime):
            sent[name] = value.astimezone(UTC)
        elif isinstance(value, str):
            sent[name] = value.lower()
    if old is not None:
        return msgspec.structs.replace(old, **sent)
    values = {**defaults(line.values), **sent}
    missing = [name for name in _required(shape) if values.get(name) is None]
    if missing:
        raise BadLines([BadLine(line.number, name, "is required for a new record") for name in missing])
    return shape(**values)


def every(make: Callable[[A, B], T], lines: Sequence[A], others: Sequence[B]) -> list[T]:
    """What `make` makes of each line and what belongs to it; raises BadLines with the faults of all."""
    made: list[T] = []
    faults: list[BadLine] = []
    for line, other in zip(lines, others, strict=True):
        try:
            made.append(make(line, other))
        except BadLines as bad:
            faults += bad.faults
    if faults:
        raise BadLines(faults)
    return made


@cache
def _with_one_form(shape: type[Struct]) -> list[str]:
    """The ids and datetimes, which a file may write otherwise than they are kept, and still mean the same."""
    return [field.name for field in fields(shape) if {UUID, datetime} & {plain_type(field.type), *get_args(field.type)}]


@cache
def _required(shape: type[Struct]) -> list[str]:
    return [field.name for field in fields(shape) if field.required]
