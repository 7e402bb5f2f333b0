"""Request bodies in the OpenAPI document, with the read-only fields that clients can send back."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from plankeeper.core.read_only_fields import ID, bulk_item_type
from plankeeper.http.openapi_schemas import Schema, reference
from plankeeper.http.routing import Operation

_READ_ONLY = {"readOnly": True, "description": "Ignored in requests.", "x-plankeeper-extension": True}
_OWN_ID = "The id of the resource. It can be sent if it is the id in the path."
_ID_OF_ITEM = (
    "In a bulk request, the id of the resource to update; without it, a resource is created. In an update, it can be"
    " sent if it is the id in the path."
)


def body_name(operation: Operation) -> str:
    """The name of a body's schema: `ParticipantCreate` for a create with the struct `ParticipantUpdate`."""
    name: str = operation.body.__name__ if operation.body else ""
    return f"{name.removesuffix('Update')}Create" if operation.creates and name.endswith("Update") else name


def name_bodies(operations: Sequence[Operation], schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The schemas of all bodies by their names. `schemas` has those of the structs of bodies and responses.

    An update, an item of a bulk request and, without its id, a create have the same fields, so they share a schema.
    """
    items = {body_name(each): _shared_name(each.body) for each in operations if each.body and each.is_bulk}
    bodies: dict[str, Schema] = {}
    for operation in operations:
        if operation.body:
            schema, name = schemas[operation.body.__name__], body_name(operation)
            if operation.is_bulk:
                field: Schema = schema["properties"]["items"] | {"items": reference(items[name])}
                bodies[name] = schema | {"properties": {"items": field}}
            else:
                bodies[name] = _with_read_only(schema, operation, is_item=name in items.values())
    for name in [name for name in bodies if name.endswith("Create")]:
        bodies[name] = _as_update_without_id(name.replace("Create", "Update"), bodies[name], bodies)
    return bodies


def _shared_name(bulk_body: type[Struct]) -> str:
    """The name of the struct that an item of a bulk body adds an id to."""
    return bulk_item_type(bulk_body).__mro__[1].__name__


def _as_update_without_id(update_name: str, create: Schema, bodies: Mapping[str, Schema]) -> Schema:
    """The schema of a create as that of the update, or itself if their fields differ."""
    update: Schema = bodies[update_name]["properties"]
    if create.get("required") or create["properties"] != {name: update[name] for name in update if name != ID}:
        return create
    without_id: Schema = {"not": {"properties": {ID: {}}, "required": [ID]}}
    return {"description": create["description"], "allOf": [reference(update_name)], **without_id}


def _with_read_only(schema: Schema, operation: Operation, *, is_item: bool) -> Schema:
    """The schema with the read-only fields, which have any value."""
    read_only: dict[str, Schema] = {name: dict(_READ_ONLY) for name in sorted(operation.read_only - {ID})}
    if operation.method == "PUT" and ID in operation.read_only:
        is_integer = [*operation.path_ids.values()][-1] is int
        id_schema: Schema = {"type": "integer"} if is_integer else {"type": "string", "format": "uuid"}
        description = _ID_OF_ITEM if is_item else _OWN_ID
        read_only[ID] = {"description": description, **id_schema, "x-plankeeper-extension": True}
    return schema | {"properties": schema["properties"] | read_only}
