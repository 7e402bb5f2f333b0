"""The examples of the OpenAPI document. They come from the sample data: `make examples` asks a server that has it."""

import json
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, cast

from plankeeper.http.openapi_schemas import Schema

# Ids for paths, and bodies of requests and responses by the name of their schema.
EXAMPLES: dict[str, dict[str, Any]] = json.loads(Path(__file__).with_name("examples.json").read_text())

_REF = "#/components/schemas/"


def add_examples(schemas: Mapping[str, Schema], more: dict[str, Any]) -> None:
    """Add an example to each schema. `more` are examples that aren't in the file, by the name of their schema.

    The example of a nested schema is a part of another example, and that of an enum its first value.
    """
    examples: dict[str, Any] = {}
    for name, value in (EXAMPLES["responses"] | EXAMPLES["bodies"] | more).items():
        _collect_examples({"$ref": _REF + name}, value, schemas, examples)
    for name, schema in schemas.items():
        if "enum" in schema:
            examples[name] = schema["enum"][0]
        if name in examples:
            schema["examples"] = [examples[name]]


def _collect_examples(schema: Schema, value: Any, schemas: Mapping[str, Schema], examples: dict[str, Any]) -> None:
    """Collect the parts of a value that have a schema with a name."""
    if "$ref" in schema:
        name = schema["$ref"].removeprefix(_REF)
        if name not in schemas:
            return
        schema = schemas[name]
        if isinstance(value, dict) or "properties" not in schema:  # otherwise it is another choice of a union
            examples.setdefault(name, value)
    for part, each in _parts(schema, value):
        _collect_examples(part, each, schemas, examples)


def _parts(schema: Schema, value: Any) -> Iterator[tuple[Schema, Any]]:
    """The parts of a value with their schemas; of a union, the value with each choice."""
    if value is not None:
        yield from ((choice, value) for choice in schema.get("anyOf", []))
    if isinstance(value, dict):
        members = cast("dict[str, Any]", value)
        yield from ((each, members[name]) for name, each in schema.get("properties", {}).items() if name in members)
    elif isinstance(value, list) and "items" in schema:
        yield from ((schema["items"], item) for item in cast("list[Any]", value))
