"""The breaking changes between two OpenAPI documents, according to docs/api/versions.md.

Requests may become more tolerant, and responses may gain fields and values. Everything else is a breaking change. Each
one is a sentence, such as "GET /participants: the query parameter state was removed".
"""

from collections.abc import Iterator, Mapping
from typing import Any, Literal, NamedTuple

Schema = Mapping[str, Any]
Direction = Literal["request", "response"]

METHODS = ("get", "post", "put", "patch", "delete", "head", "options", "trace")
# Bounds of requests: a new or stricter one rejects what was valid. The sign says in which direction it is stricter.
BOUNDS = {
    "minLength": 1, "minimum": 1, "exclusiveMinimum": 1, "minItems": 1, "minProperties": 1,
    "maxLength": -1, "maximum": -1, "exclusiveMaximum": -1, "maxItems": -1, "maxProperties": -1,
}  # fmt: skip


class Documents(NamedTuple):
    """Both documents, to resolve references in them."""

    old: dict[str, Any]
    new: dict[str, Any]


def breaking_changes(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """All breaking changes, in the order of the old document. Empty if there are none."""
    return list(dict.fromkeys([*_paths(Documents(old, new)), *_webhooks(Documents(old, new))]))


def _paths(documents: Documents) -> Iterator[str]:
    for path, old_item in documents.old.get("paths", {}).items():
        new_item = documents.new.get("paths", {}).get(path)
        if new_item is None:
            yield f"{path}: the path was removed"
            continue
        for method in METHODS:
            if method in old_item and method not in new_item:
                yield f"{method.upper()} {path}: the method was removed"
            elif method in old_item:
                shared = [item.get("parameters", []) for item in (old_item, new_item)]
                for change in _operation(documents, old_item[method], new_item[method], *shared):
                    yield f"{method.upper()} {path}: {change}"


def _webhooks(documents: Documents) -> Iterator[str]:
    """Messages that the server sends: for the client they are like responses."""
    for name, item in documents.old.get("webhooks", {}).items():
        if name not in documents.new.get("webhooks", {}):
            yield f"webhook {name}: was removed"
            continue
        contents = [each.get("post", {}).get("requestBody", {}) for each in (item, documents.new["webhooks"][name])]
        for change in _contents(documents, *contents, "response", "the message"):
            yield f"webhook {name}: {change}"


def _operation(
    documents: Documents, old: Schema, new: Schema, old_shared: list[Schema], new_shared: list[Schema]
) -> Iterator[str]:
    old_parameters = _parameters(documents.old, [*old_shared, *old.get("parameters", [])])
    new_parameters = _parameters(documents.new, [*new_shared, *new.get("parameters", [])])
    yield from _compare_parameters(documents, old_parameters, new_parameters)
    yield from _compare_bodies(documents, old.get("requestBody"), new.get("requestBody"))
    yield from _compare_responses(documents, old.get("responses", {}), new.get("responses", {}))
    old_security, new_security = (
        [set(each) for each in operation.get("security", document.get("security", []))]
        for operation, document in ((old, documents.old), (new, documents.new))
    )
    if new_security and not all(any(each <= before for each in new_security) for before in old_security or [set()]):
        yield "it requires other credentials"


def _parameters(document: Schema, parameters: list[Schema]) -> dict[tuple[str, str], Schema]:
    found = (resolve(document, each) for each in parameters)
    return {(each["in"], each["name"]): each for each in found}


def _compare_parameters(
    documents: Documents, old: dict[tuple[str, str], Schema], new: dict[tuple[str, str], Schema]
) -> Iterator[str]:
    for (place, name), parameter in old.items():
        about = f"the {place} parameter {name}"
        if (place, name) not in new:
            yield f"{about} was removed"
            continue
        after = new[place, name]
        if after.get("required") and not parameter.get("required"):
            yield f"{about} is required now"
        yield from compare(documents, parameter.get("schema", {}), after.get("schema", {}), "request", about)
    for (place, name), parameter in new.items():
        if parameter.get("required") and (place, name) not in old:
            yield f"the {place} parameter {name} is new and required"


def _compare_bodies(documents: Documents, old: Schema | None, new: Schema | None) -> Iterator[str]:
    old, new = resolve(documents.old, old or {}), resolve(documents.new, new or {})
    if old and not new:
        yield "the request body was removed"
    elif new.get("required") and not old.get("required"):
        yield "the request body is required now"
    elif old:
        yield from _contents(documents, old, new, "request", "the request body")


def _compare_responses(documents: Documents, old: Schema, new: Schema) -> Iterator[str]:
    for status, response in old.items():
        if status not in new:
            yield f"the response {status} was removed"
            continue
        before, after = resolve(documents.old, response), resolve(documents.new, new[status])
        yield from _contents(documents, before, after, "response", f"the response {status}")
        for name in before.get("headers", {}):
            if name.lower() not in map(str.lower, after.get("headers", {})):
                yield f"the response {status} lost the header {name}"


def _contents(documents: Documents, old: Schema, new: Schema, direction: Direction, about: str) -> Iterator[str]:
    for media_type, content in old.get("content", {}).items():
        if media_type not in new.get("content", {}):
            yield f"{about} can't be {media_type} any more"
        else:
            schemas = content.get("schema", {}), new["content"][media_type].get("schema", {})
            yield from compare(documents, *schemas, direction, about)


def resolve(document: Schema, schema: Schema) -> Schema:
    """The target of a reference within the document."""
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part.replace("~1", "/").replace("~0", "~")]
        schema = target
    return schema


def compare(
    documents: Documents,
    old: Schema,
    new: Schema,
    direction: Direction,
    about: str,
    seen: frozenset[tuple[str, str]] = frozenset(),
) -> Iterator[str]:
    """Compare two schemas. Each alternative of one side needs a compatible one on the other.

    A request must accept each old alternative. A response must not contain new alternatives, such as null.
    """
    if "$ref" in old and "$ref" in new:
        if (old["$ref"], new["$ref"]) in seen:
            return
        seen |= {(old["$ref"], new["$ref"])}
    old_alternatives, new_alternatives = alternatives(documents.old, old), alternatives(documents.new, new)
    is_request = direction == "request"
    for one in old_alternatives if is_request else new_alternatives:
        candidates = [
            list(_compare_one(documents, *pair, direction, about, seen))
            for other in (new_alternatives if is_request else old_alternatives)
            for pair in [(one, other) if is_request else (other, one)]
            if _kind(pair[0]) == _kind(pair[1]) or _kind(other) == "anything"
        ]
        if candidates:
            yield from min(candidates, key=len)
        else:
            yield f"{about} doesn't accept {_kind(one)} any more" if is_request else f"{about} can be {_kind(one)}"


def alternatives(document: Schema, schema: Schema) -> list[Schema]:
    """The schema as alternatives that each have one type."""
    schema = resolve(document, schema)
    for keyword in ("anyOf", "oneOf"):
        if keyword in schema:
            return [each for choice in schema[keyword] for each in alternatives(document, choice)]
    if isinstance(schema.get("type"), list):
        return [dict(schema) | {"type": each} for each in schema["type"]]
    if None in schema.get("enum", []):
        others = [value for value in schema["enum"] if value is not None]
        return [dict(schema) | {"enum": others}, {"type": "null"}]
    return [schema]


def _kind(schema: Schema) -> str:
    """The type; `anything` if the schema doesn't restrict it."""
    if "type" in schema:
        return schema["type"]
    values = _values(schema)
    if values:
        return "boolean" if isinstance(values[0], bool) else "string" if isinstance(values[0], str) else "number"
    return "object" if "properties" in schema else "anything"


def _values(schema: Schema) -> list[Any] | None:
    """The only values that are allowed; None if there are others."""
    return [schema["const"]] if "const" in schema else schema.get("enum")


def _compare_one(
    documents: Documents, old: Schema, new: Schema, direction: Direction, about: str, seen: frozenset[tuple[str, str]]
) -> Iterator[str]:
    """Compare two schemas of one type."""
    if direction == "request":
        yield from _stricter(old, new, about)
    elif "format" in old and new.get("format") != old["format"]:
        yield f"{about} doesn't have the format {old['format']} any more"
    if "items" in old and "items" in new:
        yield from compare(documents, old["items"], new["items"], direction, f"an item of {about}", seen)
    old_properties, new_properties = old.get("properties", {}), new.get("properties", {})
    for name, schema in old_properties.items():
        path = f"{name} of {about}"
        if name in new_properties:
            yield from compare(documents, schema, new_properties[name], direction, path, seen)
        elif direction == "response" or new.get("additionalProperties") is False or new_properties:
            yield f"{path} was removed"
    old_required, new_required = set(old.get("required", [])), set(new.get("required", []))
    if direction == "request":
        yield from (f"{name} of {about} is required now" for name in sorted(new_required - old_required))
        if old.get("additionalProperties", True) is not False and new.get("additionalProperties") is False:
            yield f"{about} doesn't accept additional fields any more"
    else:
        present = sorted((old_required - new_required) & set(new_properties))
        yield from (f"{name} of {about} is not always present any more" for name in present)


def _stricter(old: Schema, new: Schema, about: str) -> Iterator[str]:
    """The values that a request may no longer contain."""
    old_values, new_values = _values(old), _values(new)
    if new_values is not None and old_values is None:
        yield f"{about} accepts only certain values now"
    elif new_values is not None:
        removed = [value for value in old_values or [] if value not in new_values]
        yield from (f"{about} doesn't accept {value!r} any more" for value in removed)
    for name in ("format", "pattern"):
        if name in new and new[name] != old.get(name):
            yield f"{about} requires another {name}"
    for name, sign in BOUNDS.items():
        if name in new and (name not in old or (new[name] - old[name]) * sign > 0):
            yield f"{about} has a stricter {name}"
