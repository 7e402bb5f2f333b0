"""Requests that create or update many resources at once, all of them or none."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Protocol, TypeVar, cast
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import fields, replace
from uuid_utils.compat import uuid7

from plankeeper.core.errors import FieldError
from plankeeper.core.fields import FieldErrorCode, UuidText
from plankeeper.core.record_matches import MatchError, MatchField, RecordMatcher
from plankeeper.core.validation import validate
from plankeeper.database.client import Executor

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

MAX_ITEMS = 500
MAX_BODY_BYTES = 5 * 1024 * 1024

ITEMS = Meta(
    min_length=1,
    max_length=MAX_ITEMS,
    description=f"1 to {MAX_ITEMS} resources, each to create or, with `id`, to update.",
)
MATCH = Meta(
    description="The field by which an item without an `id` finds the resource to update. If there is none, the item"
    " creates one. A number is the same with and without spaces and hyphens."
)
ItemId = Annotated[
    UuidText | UnsetType, Meta(description="The resource to update. Without an id, a resource is created.")
]


class BulkResult(Struct, Generic[T]):
    """The created and updated resources, in the order of the request."""

    data: Annotated[list[T], Meta(description="The created and updated resources, in the order of the request.")]


class BulkItem(Protocol):
    """An item of a request: `id` names the resource to update."""

    @property
    def id(self) -> str | UnsetType: ...


def existing_ids(items: Sequence[BulkItem]) -> list[UUID]:
    """The ids of the resources to update."""
    return [UUID(each.id) for each in items if isinstance(each.id, str)]


def item_ids(items: Sequence[BulkItem]) -> list[UUID]:
    """The id of each item: its own, or a new one."""
    return [UUID(each.id) if isinstance(each.id, str) else uuid7() for each in items]


def find_id_errors(items: Sequence[BulkItem], found: set[UUID], resource: str) -> Iterator[FieldError]:
    """The errors of ids that are not among the existing ones, or that occur twice."""
    seen = set[UUID]()
    for index, item in enumerate(items):
        if isinstance(item.id, str):
            id_ = UUID(item.id)
            if id_ not in found:
                yield item_error(index, "id", f"must be the id of an existing {resource}", "not_found")
            elif id_ in seen:
                yield item_error(index, "id", "is a duplicate of an earlier item", "duplicate")
            seen.add(id_)


async def find_matches(
    db: Executor,
    plan_manager_id: UUID,
    items: Sequence[S],
    fields: Mapping[str, MatchField],
    match: str | UnsetType,
    resource: str,
) -> tuple[Sequence[S], list[FieldError]]:
    """The items with the ids of the resources that they match, and the errors of those that can't be saved."""
    matched, errors = list(items), list[FieldError]()
    if isinstance(match, str):
        unknown = [index for index, each in enumerate(items) if cast("BulkItem", each).id is UNSET]
        values = [getattr(items[index], match) for index in unknown]
        results = await RecordMatcher(fields[match], "item").match(db, plan_manager_id, values)
        for index, result in zip(unknown, results, strict=True):
            if isinstance(result, MatchError):
                errors.append(item_error(index, match, *result))
            elif result:
                matched[index] = replace(items[index], id=str(result))
    rejected = {each.field for each in errors}
    taken = await _find_taken(db, plan_manager_id, matched, fields["external_id"], resource)
    return matched, [*errors, *(each for each in taken if each.field not in rejected)]


async def _find_taken(
    db: Executor, plan_manager_id: UUID, items: Sequence[Any], external_id: MatchField, resource: str
) -> list[FieldError]:
    """The errors of external ids that are in use by another resource or an earlier item."""
    sent = {index: str(each.external_id) for index, each in enumerate(items) if each.external_id}
    if not sent:
        return []
    holders = {each.value: each.id for each in await external_id.list_holders(db, plan_manager_id, [*sent.values()])}
    errors, seen = list[FieldError](), set[str]()
    for index, value in sent.items():
        own_id = items[index].id
        if value in holders and (own_id is UNSET or UUID(own_id) != holders[value]):
            errors.append(item_error(index, "external_id", f"belongs to another {resource}", "duplicate"))
        elif value in seen:
            errors.append(item_error(index, "external_id", "is a duplicate of an earlier item", "duplicate"))
        seen.add(value)
    return errors


def without_id(item: S) -> S:
    """The item with the fields that a write sets."""
    return replace(item, id=UNSET)


def valid_parts(item_type: type[S], items: Sequence[Any], errors: Sequence[FieldError]) -> list[S]:
    """The valid fields of each item, so that errors that require the database can be found, too."""
    invalid: dict[str, set[str]] = {}
    for error in errors:
        place, _, name = error.field.partition(".")
        invalid.setdefault(place, set()).add(re.split(r"[.\[]", name)[0])
    known = {each.encode_name for each in fields(item_type)}
    parts: list[S] = []
    for index, item in enumerate(items):
        values = cast("dict[str, Any]", item) if isinstance(item, dict) else {}
        valid = known & set(values) - invalid.get(f"items[{index}]", set())
        part, _ = validate(item_type, {name: values[name] for name in valid})
        parts.append(item_type() if part is None else part)  # there can be more errors than are listed
    return parts


def in_item_order(errors: Iterable[FieldError]) -> list[FieldError]:
    """The errors in the order of the items, after those of other fields."""
    return sorted(errors, key=_item_index)


def _item_index(error: FieldError) -> int:
    found = re.match(r"items\[(\d+)\]", error.field)
    return int(found[1]) if found else -1


def item_error(index: int, field: str, message: str, code: FieldErrorCode) -> FieldError:
    return FieldError(f"items[{index}].{field}", message, code)
