"""The schemas of the OpenAPI document, from the structs of requests and responses."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Annotated, Any, cast, get_args, get_origin

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import fields

from plankeeper.core.examples import EXAMPLES
from plankeeper.core.fields import Query, custom_schema

Schema = dict[str, Any]

_REF = "#/components/schemas/"
# The keywords that stay beside the reference to a component.
_OUTSIDE = ("description", "default", "x-plankeeper-extension")
_SCHEMA_TYPES: dict[type, str] = {str: "string", int: "integer"}


def reference(name: str) -> Schema:
    return {"$ref": _REF + name}


def component_name(struct_type: Any) -> str:
    """The name of a struct's schema: `ParticipantPage` for a `Page[Participant]`."""
    [schema], _ = msgspec.json.schema_components([struct_type], schema_hook=custom_schema, ref_template="{name}")
    return _name_pages(schema["$ref"])


def build_components(struct_types: Sequence[Any]) -> dict[str, Schema]:
    """The schemas of structs, of the structs within them, and of types with a name."""
    _, generated = msgspec.json.schema_components(struct_types, schema_hook=custom_schema, ref_template=_REF + "{name}")
    schemas: dict[str, Schema] = json.loads(_name_pages(json.dumps(generated)))
    for schema in schemas.values():
        schema.pop("title", None)
        for property_schema in schema.get("properties", {}).values():
            _tidy_property(property_schema)
    schemas_of = {each: schemas[each.__name__] for each in _structs_in(struct_types) if each.__name__ in schemas}
    for struct, schema in schemas_of.items():
        optional = {field.encode_name for field in fields(struct) if _can_be_absent(field.type)}
        if "required" in schema:
            schema["required"] = [name for name in schema["required"] if name not in optional]
    in_json = {each: schema for each, schema in schemas_of.items() if not issubclass(each, Query)}
    for schema in in_json.values():
        for property_schema in schema.get("properties", {}).values():
            items: Schema = property_schema.get("items", {})
            if items.get("format") == "decimal":
                property_schema["items"] = {"type": "number"}
            if property_schema.get("format") == "decimal":  # a number, not a text
                del property_schema["format"]
                property_schema["type"] = "number"
    _share_descriptions(in_json)
    return extract_components(schemas)


def _can_be_absent(kind: Any) -> bool:
    return UnsetType in get_args(kind) or (get_origin(kind) is Annotated and _can_be_absent(get_args(kind)[0]))


def _tidy_property(property_schema: Schema) -> None:
    if property_schema.get("default", ...) is None:  # generators take it for the default of a text that can't be null
        del property_schema["default"]
    if isinstance(property_schema.get("type"), list):
        property_schema.pop("anyOf", None)  # `type` lists the types already (an amount is a number)
    for choice in property_schema.get("anyOf", []):
        if "description" in choice:  # of an alias that is used with null
            property_schema.setdefault("description", choice.pop("description"))


def _share_descriptions(schemas: Mapping[type[Struct], Schema]) -> None:
    """Describe fields that their struct doesn't describe like those with the same name in the same module.

    The description stands in one struct, usually in that with the most fields, and holds for the bodies of updates.
    """
    known: dict[tuple[str, str], str] = {}
    for struct, schema in schemas.items():
        for name, property_schema in schema["properties"].items():
            if "description" in property_schema:
                known.setdefault((struct.__module__, name), property_schema["description"])
    for struct, schema in schemas.items():
        for name, property_schema in schema["properties"].items():
            description = known.get((struct.__module__, name))
            if description:
                property_schema.setdefault("description", description)


def extract_components(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """The schemas with references in place of the types that have a name, and the schemas of these."""
    components: dict[str, Schema] = {}
    replaced = {name: _replace_components(schema, components) for name, schema in schemas.items()}
    return replaced | components


def _replace_components(node: Any, components: dict[str, Schema]) -> Any:
    if isinstance(node, list):
        return [_replace_components(each, components) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = {name: _replace_components(each, components) for name, each in cast("Schema", node).items()}
    if schema.get("format") == "uuid":
        schema.pop("pattern", None)  # which says the same, and which generators can't apply to a UUID
    declared = schema.pop("x-component", None)
    if declared is None:
        return schema
    name, own = declared["name"], {each: value for each, value in schema.items() if each not in _OUTSIDE}
    components[name] = own | {"description": declared["description"]}
    if values := declared.get("enum") or schema.get("enum"):
        components[name] = {"type": _SCHEMA_TYPES[type(values[0])], **components[name], "enum": values}
    kept = {each: value for each, value in schema.items() if each in _OUTSIDE}
    return kept | reference(name)


def _structs_in(kinds: Iterable[Any]) -> Iterator[type[Struct]]:
    """The structs of types, with those of their fields."""
    for kind in kinds:
        for part in (kind, get_origin(kind), *get_args(kind)):
            if isinstance(part, type) and issubclass(part, Struct):
                yield part
                yield from _structs_in(field.type for field in fields(part))
            elif part is not kind:
                yield from _structs_in([part])


def _name_pages(text: str) -> str:
    """Rename `Page_Participant_` to `ParticipantPage`."""
    return re.sub(r"\b(Page|BulkResult)_(\w+?)_(?![A-Za-z_])", r"\2\1", text)


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
        values = cast("dict[str, Any]", value)
        yield from ((each, values[name]) for name, each in schema.get("properties", {}).items() if name in values)
    elif isinstance(value, list) and "items" in schema:
        yield from ((schema["items"], item) for item in cast("list[Any]", value))
