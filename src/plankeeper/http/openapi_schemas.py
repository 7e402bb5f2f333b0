"""The schemas of the OpenAPI document, from the structs of requests and responses."""

import json
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, cast, get_args, get_origin

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import fields

from plankeeper.http.schemas import Query, custom_schema

Schema = dict[str, Any]

_REF = "#/components/schemas/{name}"
_SCHEMA_TYPES: dict[type, str] = {str: "string", int: "integer"}


def reference(name: str) -> Schema:
    return {"$ref": _REF.format(name=name)}


def component_name(struct_type: Any) -> str:
    """The name of a struct's schema: `ParticipantPage` for a `Page[Participant]`."""
    [schema], _ = msgspec.json.schema_components([struct_type], schema_hook=custom_schema, ref_template="{name}")
    return _name_pages(schema["$ref"])


def build_components(struct_types: Sequence[Any]) -> dict[str, Schema]:
    """The schemas of structs, of the structs within them, and of their enums, by name."""
    _, generated = msgspec.json.schema_components(struct_types, schema_hook=custom_schema, ref_template=_REF)
    schemas: dict[str, Schema] = json.loads(_name_pages(json.dumps(generated)))
    for schema in schemas.values():
        schema.pop("title", None)
        for member in schema.get("properties", {}).values():
            _tidy_member(member)
    schemas_of = {each: schemas[each.__name__] for each in _structs_in(struct_types) if each.__name__ in schemas}
    for struct, schema in schemas_of.items():
        optional = {field.encode_name for field in fields(struct) if UnsetType in get_args(field.type)}
        if "required" in schema:
            schema["required"] = [name for name in schema["required"] if name not in optional]
    _share_descriptions({each: schema for each, schema in schemas_of.items() if not issubclass(each, Query)})
    return extract_enums(schemas)


def _tidy_member(member: Schema) -> None:
    if isinstance(member.get("type"), list):
        member.pop("anyOf", None)  # `type` lists the types already (an amount is a number)
    for choice in member.get("anyOf", []):
        if "description" in choice:  # of an alias that is used with null
            member.setdefault("description", choice.pop("description"))


def _share_descriptions(schemas: Mapping[type[Struct], Schema]) -> None:
    """Describe members that their struct doesn't describe like those with the same name in the same module.

    The description stands in one struct, usually in that with the most members, and holds for the bodies of updates.
    """
    known: dict[tuple[str, str], str] = {}
    for struct, schema in schemas.items():
        for name, member in schema["properties"].items():
            if "description" in member:
                known.setdefault((struct.__module__, name), member["description"])
    for struct, schema in schemas.items():
        for name, member in schema["properties"].items():
            description = known.get((struct.__module__, name))
            if description:
                member.setdefault("description", description)


def extract_enums(schemas: dict[str, Schema]) -> dict[str, Schema]:
    """The schemas with references in place of named enums, and the schemas of these."""
    enums: dict[str, Schema] = {}
    replaced = {name: _replace_enums(schema, enums) for name, schema in schemas.items()}
    return replaced | enums


def _replace_enums(node: Any, enums: dict[str, Schema]) -> Any:
    if isinstance(node, list):
        return [_replace_enums(each, enums) for each in cast("list[Any]", node)]
    if not isinstance(node, dict):
        return node
    schema = {name: _replace_enums(each, enums) for name, each in cast("Schema", node).items()}
    declared = schema.pop("x-component", None)
    if declared is None:
        return schema
    name, values = declared["name"], declared.get("enum") or schema["enum"]
    enums[name] = {"type": _SCHEMA_TYPES[type(values[0])], "description": declared["description"], "enum": values}
    kept = {name: each for name, each in schema.items() if name in ("description", "default") or name.startswith("x-")}
    if kept.pop("x-open-enum", False):
        return kept | {"anyOf": [reference(name), {"type": "string"}]}
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
    return re.sub(r"\bPage_(\w+?)_(?![A-Za-z_])", r"\1Page", text)
