"""Matches items of requests and imports with records by the value of a field, such as their id in another system."""

from collections import defaultdict
from collections.abc import Awaitable, Callable, Sequence
from typing import NamedTuple
from uuid import UUID

from msgspec import Struct

from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.fields import FieldErrorCode
from plankeeper.core.formatting import digits_of
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation


class ValueHolder(Struct):
    """A record and its value in the field."""

    id: UUID
    value: str


class MatchField(NamedTuple):
    """A field by which records are found.

    `list_holders` gets the values in the form of `normalize`, and may return records with other values. A value that
    has this number of `digits` is the same with and without spaces and hyphens.
    """

    name: str
    list_holders: Callable[[Executor, UUID, Sequence[str]], Awaitable[list[ValueHolder]]]
    digits: int | None = None

    def normalize(self, value: str) -> str:
        digits = digits_of(value)
        return digits if len(digits) == self.digits else value


class MatchError(NamedTuple):
    """The reason why a value matches no record and can't be used for a new one."""

    message: str
    code: FieldErrorCode


class RecordMatcher:
    """Finds the records of one request or file. It keeps the values of earlier batches."""

    def __init__(self, field: MatchField, noun: str) -> None:
        """`noun` is the word for a record of the request in messages, such as `item`."""
        self.field = field
        self._noun = noun
        self._seen = set[str]()

    async def match(
        self, db: Executor, plan_manager_id: UUID, values: Sequence[object]
    ) -> list[UUID | MatchError | None]:
        """For each value the id of its record, None for a new record, or the error."""
        keys = [self.field.normalize(each) if isinstance(each, str) and each else None for each in values]
        known = defaultdict[str, list[UUID]](list)
        if searched := sorted({each for each in keys if each}):
            for holder in await self.field.list_holders(db, plan_manager_id, searched):
                known[self.field.normalize(holder.value)].append(holder.id)
        return [self._match(each, known[each] if each else []) for each in keys]

    def _match(self, key: str | None, ids: Sequence[UUID]) -> UUID | MatchError | None:
        if key is None:
            return MatchError(f"is required, because each {self._noun} finds its record by it", "required")
        if key in self._seen:
            return MatchError(f"is a duplicate of an earlier {self._noun}", "duplicate")
        self._seen.add(key)
        if len(ids) > 1:
            return MatchError(f"belongs to {len(ids)} records: send the `id` of one of them", "duplicate")
        return ids[0] if ids else None


def external_id_error(resource: str) -> Callable[[Executor, UUID, ConstraintViolation], Awaitable[DomainError]]:
    """The error for a single write, or for a race between two, that gives two records the same external id."""

    async def handle(_db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation) -> DomainError:
        return ValidationError(FieldError("external_id", f"belongs to another {resource}", "duplicate"))

    return handle
