"""Request bodies in the OpenAPI document, with the read-only fields that clients can send back."""

from collections.abc import Mapping, Sequence

from plankeeper.http.openapi_schemas import Schema
from plankeeper.http.read_only_fields import ID, bulk_item_type
from plankeeper.http.routing import Operation

_READ_ONLY = {"readOnly": True, "description": "Ignored in requests.", "x-plankeeper-extension": True}
_OWN_ID = "The id of the resource. It can be sent if it is the id in the path."


def body_name(operation: Operation) -> str:
    """The name of a body's schema: `ParticipantCreate` for a create with the struct `ParticipantUpdate`."""
    name: str = operation.body.__name__ if operation.body else ""
    return f"{name.removesuffix('Update')}Create" if operation.creates and name.endswith("Update") else name


def name_bodies(operations: Sequence[Operation], schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The schemas of all bodies, and of the items of bulk bodies, by their names.

    `schemas` has those of the structs of bodies and responses.
    """
    bodies: dict[str, Schema] = {}
    for operation in operations:
        if operation.body:
            bodies[body_name(operation)] = _with_read_only(schemas[operation.body.__name__], operation)
        if operation.body and operation.is_bulk:
            item = bulk_item_type(operation.body).__name__
            bodies[item] = _with_read_only(schemas[item], operation)
            bodies[body_name(operation)] = schemas[operation.body.__name__]
    return bodies


def _with_read_only(schema: Schema, operation: Operation) -> Schema:
    """The schema with the read-only fields, which have any value."""
    read_only: dict[str, Schema] = {name: dict(_READ_ONLY) for name in sorted(operation.read_only - {ID})}
    if operation.method == "PUT" and ID in operation.read_only:
        read_only[ID] = {"description": _OWN_ID, "x-plankeeper-extension": True}
    return schema | {"properties": schema["properties"] | read_only}
