"""Read-only fields in request bodies: ignored, so that a client can send back what it received (AIP-203)."""

from typing import Any, get_args, get_origin
from uuid import UUID

from msgspec import Struct
from msgspec.structs import fields

from plankeeper.core.bulk import BulkResult
from plankeeper.core.errors import FieldError

ID = "id"
# A client that sends a secret believes that it sets it, so the field is unknown.
_NEVER_IGNORED = {"secret"}


def find_read_only_fields(body_type: type[Struct], response_type: Any) -> frozenset[str]:
    """The fields of the resource in a response that the body, or an item of a bulk body, can't set."""
    if get_origin(response_type) is BulkResult:
        [response_type] = get_args(response_type)
        body_type = bulk_item_type(body_type)
    writable = {each.encode_name for each in fields(body_type)}
    return frozenset(each.encode_name for each in fields(response_type)) - writable - _NEVER_IGNORED


def bulk_item_type(body_type: type[Struct]) -> type[Struct]:
    """The struct of the items of a bulk body."""
    [item_list] = fields(body_type)
    [kind] = get_args(get_args(item_list.type)[0])
    return kind


def remove_read_only_fields(
    document: dict[str, Any], read_only: frozenset[str], path_id: UUID | int | None
) -> list[FieldError]:
    """Remove the read-only fields of a body, or of each item of a bulk body. Returns the error of the `id`, if any.

    An `id` must be that of the path. A bulk body has its ids in the items, where they can be set.
    """
    if read_only:
        items: Any = document.get("items")
        for each in [document, *(items if isinstance(items, list) else [])]:  # pyright: ignore[reportUnknownVariableType]
            if isinstance(each, dict):
                for name in read_only - {ID}:
                    each.pop(name, None)  # pyright: ignore[reportUnknownMemberType]
    if ID not in read_only or ID not in document:
        return []
    sent = document.pop(ID)
    if path_id is None:
        return [FieldError(ID, "can't be set: leave it out", "read_only")]
    is_same = sent == path_id if isinstance(path_id, int) else isinstance(sent, str) and sent.lower() == str(path_id)
    return [] if is_same else [FieldError(ID, "must be the id in the path, or be left out", "read_only")]
