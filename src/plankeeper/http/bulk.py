"""Requests that create or update many resources at once, all of them or none."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Annotated, Any, Generic, Protocol, TypeVar
from uuid import UUID

from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.http.errors import FieldError
from plankeeper.http.json import encode
from plankeeper.http.returned_members import UNCHANGEABLE, find_changed
from plankeeper.http.schemas import UuidText

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

MAX_ITEMS = 500
MAX_BODY_BYTES = 5 * 1024 * 1024

ITEMS = Meta(
    min_length=1,
    max_length=MAX_ITEMS,
    description=f"1 to {MAX_ITEMS} resources, each to create or, with `id`, to update.",
)
ItemId = Annotated[
    UuidText | UnsetType, Meta(description="The resource to update. Without an id, a resource is created.")
]


# A member of a response that an update takes only as it is stored.
ReadOnly = Annotated[
    Any | UnsetType,
    Meta(description="Can't be changed: leave it out, or with an `id` send its current value."),
]
UpdatedAtField = Annotated[Any | UnsetType, Meta(description="Is ignored.")]


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
                yield item_error(index, "id", f"must be the id of an existing {resource}")
            elif id_ in seen:
                yield item_error(index, "id", "occurs in an earlier item")
            seen.add(id_)


def find_read_only_errors(
    items: Sequence[BulkItem], stored: Mapping[UUID, Struct], names: Sequence[str]
) -> Iterator[FieldError]:
    """The errors of read-only members that differ from the stored resource, or that a new resource can't have."""
    for index, item in enumerate(items):
        sent = {name: value for name in names if (value := getattr(item, name)) is not UNSET}
        before = stored[UUID(item.id)] if isinstance(item.id, str) else None
        for name in find_changed(sent, encode(before) if before else b"{}") if sent else ():
            yield item_error(index, name, UNCHANGEABLE if before else "can't be set: leave it out")


def without_read_only(item: S, names: Sequence[str]) -> S:
    """The item with the members that an update writes."""
    return replace(item, id=UNSET, **dict.fromkeys(names, UNSET))


def item_error(index: int, field: str, message: str) -> FieldError:
    return FieldError(f"items[{index}].{field}", message)
