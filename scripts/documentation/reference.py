"""The API reference as a page of Markdown, from the OpenAPI document: all operations and schemas."""

import json
from collections.abc import Iterator
from typing import Any

from openapi_document import operations, resolve

PREFIX = "/api/public/v1"
INTRODUCTION = """\
# API reference

All operations and schemas, from the [OpenAPI document](/openapi.json) of this version. Every path begins with
`{prefix}`. The [overview](README.md) has the conventions that apply to every operation. To send requests from the
browser, open the [reference with try-it](/docs/api).
"""


def reference(document: dict[str, Any]) -> str:
    tags: dict[str, list[str]] = {}
    for path, method, operation in operations(document):
        tag = operation.get("tags", ["Other"])[0]
        tags.setdefault(tag, []).append(_operation(document, method, path, operation))
    sections = [f"## {tag.replace('_', ' ').capitalize()}\n\n{_lines(*each)}" for tag, each in tags.items()]
    schemas = document["components"]["schemas"]
    sections.append(_lines("## Schemas", *(_schema(name, schema) for name, schema in sorted(schemas.items()))))
    return _lines(INTRODUCTION.format(prefix=PREFIX), *sections)


def _lines(*parts: str) -> str:
    """Paragraphs with an empty line between them."""
    return "\n\n".join(part.strip() for part in parts if part.strip()) + "\n"


def _operation(document: dict[str, Any], method: str, path: str, operation: dict[str, Any]) -> str:
    parts = [
        f"### {method.upper()} {path.removeprefix(PREFIX)}",
        f"**{operation.get('summary', '')}.** {operation.get('description', '')}",
    ]
    if operation["parameters"]:
        rows = [
            (f"`{each['name']}`", each["in"], _limited(each.get("schema", {})), _yes(each), each.get("description", ""))
            for each in operation["parameters"]
        ]
        parts.append(_table(("Parameter", "In", "Type", "Required", "Meaning"), rows))
    body = operation.get("requestBody", {}).get("content", {}).get("application/json")
    if body:
        example = json.dumps(body["example"], indent=2, ensure_ascii=False)
        parts.append(f"Request body: {_type(body['schema'])}, for example\n\n```json\n{example}\n```")
    responses = operation.get("responses", {}).items()
    parts.append(_table(("Status", "Body", "Meaning"), [_response(document, *each) for each in responses]))
    return _lines(*parts)


def _response(document: dict[str, Any], status: str, response: dict[str, Any]) -> tuple[str, str, str]:
    response = resolve(document, response)
    content = response.get("content", {}).get("application/json", {})
    return status, _type(content["schema"]) if "schema" in content else "", response.get("description", "")


def _schema(name: str, schema: dict[str, Any]) -> str:
    heading = _lines(f"### {name} schema", schema.get("description", ""))
    fields = schema.get("properties")
    if fields is None:
        return _lines(heading, f"Type: {_type(schema)}")
    required = schema.get("required", [])
    rows = [
        (f"`{field}`", _limited(each), "yes" if field in required else "no", each.get("description", ""))
        for field, each in fields.items()
    ]
    return _lines(heading, _table(("Field", "Type", "Required", "Meaning"), rows))


def _yes(parameter: dict[str, Any]) -> str:
    return "yes" if parameter.get("required") else "no"


def _table(heads: tuple[str, ...], rows: list[tuple[str, ...]]) -> str:
    lines = [heads, ("---",) * len(heads), *rows]
    return "\n".join(f"| {' | '.join(cell.replace('|', '&#124;') for cell in line)} |" for line in lines)


def _limited(schema: dict[str, Any]) -> str:
    """A type with its limits and its default: `integer, 1 to 1000, default 20`."""
    choices = [schema, *schema.get("anyOf", [])]
    limits = {name: each[name] for each in choices for name in ("minimum", "maximum", "maxLength") if name in each}
    parts = [_type(schema)]
    if "minimum" in limits and "maximum" in limits:
        parts.append(f"{limits['minimum']:,} to {limits['maximum']:,}")
    if "maxLength" in limits:
        parts.append(f"at most {limits['maxLength']:,} characters")
    if "default" in schema:
        parts.append(f"default {_literal(schema['default'])}")
    return ", ".join(parts)


def _type(schema: dict[str, Any]) -> str:
    """A type in words: `string (uuid) or null`, or a link to a schema."""
    if "$ref" in schema:
        name = schema["$ref"].rpartition("/")[2]
        return f"[{name}](#{name.lower()}-schema)"
    for keyword in ("allOf", "anyOf", "oneOf"):
        if keyword in schema:
            return " or ".join(dict.fromkeys(_type(each) for each in schema[keyword]))
    if "const" in schema or "enum" in schema:
        return ", ".join(f"`{_literal(each)}`" for each in schema.get("enum", [schema.get("const")]))
    if "items" in schema:
        return f"list of {_type(schema['items'])}"
    types = schema.get("type", "any value")
    return " or ".join(_words(schema, types if isinstance(types, list) else [types]))


def _words(schema: dict[str, Any], types: list[str]) -> Iterator[str]:
    for each in types:
        yield f"string ({schema['format']})" if each == "string" and "format" in schema else each


def _literal(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value)
