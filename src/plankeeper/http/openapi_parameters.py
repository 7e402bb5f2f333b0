"""The parameters of operations in the OpenAPI document."""

from typing import Any

from msgspec import NODEFAULT, UNSET
from msgspec.structs import fields

from plankeeper.core.examples import EXAMPLES
from plankeeper.core.fields import UUID_PATTERN, Query
from plankeeper.core.ids import UuidOr404
from plankeeper.http.openapi_schemas import build_components
from plankeeper.http.routing import Operation


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
    resource = "invoice view session" if name == "session_id" else name.removesuffix("_id").replace("_", " ")
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
