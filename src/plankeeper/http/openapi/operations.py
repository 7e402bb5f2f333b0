"""The parameters of operations in the OpenAPI document."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from msgspec import NODEFAULT, UNSET, Struct
from msgspec.structs import fields

from plankeeper.core.examples import EXAMPLES
from plankeeper.core.fields import UUID_PATTERN, EmptyRequest, Query
from plankeeper.core.ids import UuidOr404
from plankeeper.core.read_only_fields import ID, bulk_item_type
from plankeeper.http.openapi.schemas import Schema, build_components, reference
from plankeeper.http.routing import Operation, path_id_resource


def describe_parameters(operation: Operation) -> list[dict[str, Any]]:
    parameters = [_path_parameter(name, kind) for name, kind in operation.path_ids.items()]
    parameters += _query_parameters(operation.query) if operation.query else []
    header_parameters = [
        name
        for name, applies in (
            ("IdempotencyKey", operation.method == "POST" and operation.writes),
            ("IfNoneMatch", operation.has_etag and operation.method == "GET"),
            ("IfMatch", operation.lock is not None),
        )
        if applies
    ]
    return parameters + [{"$ref": f"#/components/parameters/{name}"} for name in header_parameters]


def _path_parameter(name: str, kind: Any) -> dict[str, Any]:
    resource = path_id_resource(name).replace("_", " ")
    form, schema = (
        ("id, an integer", {"type": "integer"}) if kind is int else ("UUID", {"type": "string", "format": "uuid"})
    )
    status = 404 if kind is UuidOr404 else 400
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": f"The {resource}'s {form}. A malformed one returns {status}.",
        "schema": schema,
        "example": EXAMPLES["path_ids"][name],
    }


def _query_parameters(query_type: type[Query]) -> list[dict[str, Any]]:
    components = build_components([query_type])
    properties = components[query_type.__name__]["properties"]
    parameters: list[dict[str, Any]] = []
    for field in fields(query_type):
        schema: dict[str, Any] = properties[field.encode_name]
        parameter: dict[str, Any] = {
            "name": field.encode_name,
            "in": "query",
            "required": False,
            "schema": schema,
        }
        for keyword in ("description", "x-plankeeper-extension"):
            if keyword in schema:
                parameter[keyword] = schema.pop(keyword)
        if field.default not in (UNSET, NODEFAULT):
            schema["default"] = field.default
        if schema.get("type") == "array":
            items: dict[str, Any] = schema["items"]
            enum = components.get(items.get("$ref", "").rpartition("/")[2])
            parameter["schema"] = _separated_by_commas(enum or items, schema["maxItems"])
        else:
            schema |= {"minLength": 1} if schema.get("type") == "string" else {}
        parameters.append(parameter)
    return parameters


def _separated_by_commas(items: dict[str, Any], max_items: int) -> dict[str, Any]:
    """A list in a query as text, because most generators send an array as repeated parameters."""
    is_id = items.get("format") == "uuid"
    if "enum" in items:
        item = f"({'|'.join(items['enum'])})"
    else:
        item = UUID_PATTERN if is_id else items.get("pattern", "^[^,]+$").removeprefix("^").removesuffix("$")
    return {"type": "string", "minLength": 1, "pattern": f"^{item}(,{item}){{0,{max_items - 1}}}$"}


_READ_ONLY = {"readOnly": True, "description": "Ignored in requests.", "x-plankeeper-extension": True}
_OWN_ID = "The id of the resource. It can be sent if it is the id in the path."
_ID_OF_ITEM = (
    "In a bulk request, the id of the resource to update; without it, a resource is created. In an update, it can be"
    " sent if it is the id in the path."
)


def body_name(operation: Operation) -> str:
    """The name of a body's schema: `ParticipantCreate` for a create with the struct `ParticipantUpdate`."""
    name: str = (operation.body or EmptyRequest).__name__
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


# The plan manager as a part of the credentials, so that clients and tools ask for it once, and not for each request.
SECURITY_SCHEMES = {
    "api_key": {"type": "http", "scheme": "bearer", "description": "An API key: `Authorization: Bearer plk_...`."},
    "plan_manager": {
        "type": "apiKey",
        "in": "header",
        "name": "X-Plan-Manager-Id",
        "description": "The UUID of the plan manager that the request acts for.",
    },
}
_HEADER_PARAMETERS = {
    "Idempotency-Key": "The client's key, 1 to 255 visible ASCII characters. A successful response is stored for a day,"
    " and returned again for the same request with the same key, which makes retries safe.",
    "If-None-Match": "The `ETag` of an earlier response. If the resource is unchanged, a GET returns 304, and a write"
    " 412. `*` is every version.",
    "If-Match": "The `ETag` of an earlier response. Returns 412 if a field of the resource has changed.",
}
_LIMITS = {"Idempotency-Key": {"minLength": 1, "maxLength": 255, "pattern": "^[!-~]+$"}}
PARAMETERS = {
    name.replace("-", ""): {
        "name": name,
        "in": "header",
        "required": False,
        "description": description,
        "schema": {"type": "string", **_LIMITS.get(name, {})},
        "x-plankeeper-extension": True,
    }
    for name, description in _HEADER_PARAMETERS.items()
}
# The headers of responses by the names of their components: the name of each, and its description.
_HEADERS = {
    "RequestId": ("X-Request-Id", "The request's id: that of its header `X-Request-Id`, or a new one."),
    "RateLimitPolicy": (
        "RateLimit-Policy",
        'The key\'s quota: `"default";q=<requests>;w=<seconds>`. Absent if the key has no limit.',
    ),
    "RateLimit": (
        "RateLimit",
        'The rest of the quota: `"default";r=<requests>;t=<seconds until it resets>`. Absent if the key has no limit.',
    ),
    "WwwAuthenticate": ("WWW-Authenticate", "Always `Bearer`."),
    "AcceptEncoding": ("Accept-Encoding", "`identity`, if the body is compressed: send it without compression."),
    "RetryAfter": ("Retry-After", "Seconds to wait."),
    "SyncedUntil": (
        "Synced-Until",
        "The `updated_since` with which this list returns everything that other clients change later.",
    ),
    "ETag": ("ETag", "The version of the resource, and a hash of the response."),
    "Location": ("Location", "The path of the new resource."),
    "ContentLocation": ("Content-Location", "The path of the resource. A GET of it returns the same `ETag`."),
    "IdempotentReplayed": ("Idempotent-Replayed", "`true` if this is the stored response of an earlier request."),
}
_HEADER_SCHEMAS = {"RetryAfter": {"type": "integer"}, "SyncedUntil": {"type": "string", "format": "date-time"}}
HEADERS = {
    name: {"description": description, "schema": _HEADER_SCHEMAS.get(name, {"type": "string"})}
    for name, (_, description) in _HEADERS.items()
}


def refer_to_headers(names: Iterable[str]) -> dict[str, Any]:
    """The headers of a response: those of every response, and more of them by their name in the components."""
    all_names = ["RequestId", "RateLimitPolicy", "RateLimit", *names]
    return {_HEADERS[name][0]: {"$ref": f"#/components/headers/{name}"} for name in all_names}
