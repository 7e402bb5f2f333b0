"""Read-only members that a client sends back in an update: a client can put what it got, with its changes.

They are accepted if they are as stored. Otherwise the client would believe that it has changed them.
"""

from collections.abc import Collection, Mapping
from decimal import Decimal
from typing import Any, cast, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import fields

from plankeeper.http.errors import FieldError, ValidationError

# What follows from other members or from the write itself.
DERIVED = {"updated_at", "errors", "state_management"}

UUID_LENGTH = 36
UNCHANGEABLE = "can't be changed: leave it out, or send its current value"

_decode = msgspec.json.Decoder(dict[str, Any], float_hook=Decimal).decode


def readable_members(response_type: Any, body_type: type[Struct] | None) -> frozenset[str]:
    """The members of a resource that an update takes in another form or not at all."""
    writable = body_type.__struct_encode_fields__ if body_type else ()
    return frozenset(
        field.encode_name
        for field in fields(response_type)
        if field.encode_name not in writable or _has_structs(field.type)
    )


def _has_structs(kind: Any) -> bool:
    return (isinstance(kind, type) and issubclass(kind, Struct)) or any(_has_structs(each) for each in get_args(kind))


def take_returned_members(
    document: dict[str, Any], readable: Collection[str], writable: Collection[str]
) -> dict[str, Any]:
    """Remove the members from a body that an update doesn't take, but a response has, and return them.

    A writable member counts, too, if it consists of objects with ids, as in responses: permissions, for example.
    """
    returned = {
        name: value
        for name, value in document.items()
        if name in readable and (name not in writable or _contains_references(value))
    }
    for name in returned:
        del document[name]
    return returned


def require_unchanged(returned: Mapping[str, Any], body: bytes) -> None:
    """Raise a ValidationError that names the members that differ from the resource, whose JSON this is."""
    changed = find_changed(returned, body)
    if changed:
        raise ValidationError(*(FieldError(name, UNCHANGEABLE) for name in changed))


def find_changed(returned: Mapping[str, Any], body: bytes) -> list[str]:
    """The members that differ from the resource, whose JSON this is."""
    current = _decode(body)
    return [name for name, value in returned.items() if name not in DERIVED and not _is_same(value, current.get(name))]


def _contains_references(value: Any) -> bool:
    items = cast("list[Any]", value) if isinstance(value, list) else [value]
    return any(isinstance(each, dict) and "id" in each for each in items)


def _is_same(sent: Any, stored: Any) -> bool:
    """Whether two JSON values are the same. Of a reference, only the id counts; ids are the same in either case."""
    if isinstance(sent, dict) and isinstance(stored, dict):
        return _is_same_object(cast("dict[str, Any]", sent), cast("dict[str, Any]", stored))
    if isinstance(sent, list) and isinstance(stored, list):
        pairs = list(zip(cast("list[Any]", sent), cast("list[Any]", stored), strict=False))
        return len(pairs) == max(len(sent), len(stored)) and all(_is_same(*pair) for pair in pairs)  # pyright: ignore[reportUnknownArgumentType]
    if isinstance(sent, str) and isinstance(stored, str):
        return sent == stored or (len(sent) == UUID_LENGTH and sent.lower() == stored)
    return bool(sent == stored) and isinstance(sent, bool) == isinstance(stored, bool)


def _is_same_object(sent: dict[str, Any], stored: dict[str, Any]) -> bool:
    if "id" in sent and "id" in stored:
        return _is_same(sent["id"], stored["id"])
    return set(sent) == set(stored) and all(_is_same(sent[name], stored[name]) for name in sent)
