"""Request bodies in the OpenAPI document.

A create and an update can share a struct, but not a schema: an update also takes read-only members as they are stored,
so that clients can send back what they got.
"""

from collections.abc import Mapping, Sequence

from plankeeper.http.openapi_schemas import Schema
from plankeeper.http.returned_members import DERIVED, UNCHANGEABLE, readable_members
from plankeeper.http.routing import Operation


def body_name(operation: Operation) -> str:
    """The name of a body's schema: `ParticipantCreate` for a create with the struct `ParticipantUpdate`."""
    name: str = operation.body.__name__ if operation.body else ""
    return f"{name.removesuffix('Update')}Create" if operation.creates and name.endswith("Update") else name


def name_bodies(operations: Sequence[Operation], schemas: Mapping[str, Schema]) -> dict[str, Schema]:
    """The schemas of all bodies by their names. `schemas` has those of the structs of bodies and responses."""
    reads = {operation.path: operation for operation in operations if operation.method == "GET"}
    bodies: dict[str, Schema] = {}
    for operation in operations:
        if operation.body:
            schema = schemas[operation.body.__name__]
            read = reads.get(operation.path) if operation.method == "PUT" else None
            bodies[body_name(operation)] = _with_returned_members(schema, operation, read, schemas) if read else schema
    return bodies


def _with_returned_members(schema: Schema, update: Operation, read: Operation, schemas: Mapping[str, Schema]) -> Schema:
    """The schema of an update, with the members of the resource that an update takes only as they are stored."""
    members = dict(schema["properties"])
    readable = readable_members(read.response_type, update.body)
    for name, member in schemas[read.response_type.__name__]["properties"].items():
        if name in readable:
            is_writable = name in schema["properties"]
            members[name] = _with_objects(schema["properties"][name]) if is_writable else _read_only(name, member)
    return schema | {"properties": members}


def _read_only(name: str, member: Schema) -> Schema:
    """Without a type: any value other than the current one is rejected, and only after the preconditions."""
    rule = "is ignored in an update" if name in DERIVED else UNCHANGEABLE
    return {"description": f"{member['description']} It {rule}.", "x-plankeeper-extension": True}


def _with_objects(member: Schema) -> Schema:
    """A list of what a client sends, or of objects as in responses: permissions. Only their ids are compared."""
    return member | {"items": {"anyOf": [member["items"], {"type": "object", "additionalProperties": True}]}}
