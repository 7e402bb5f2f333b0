"""Operations and references of an OpenAPI document, for the generators of the reference and of the collection."""

from collections.abc import Iterator
from typing import Any

METHODS = ("get", "post", "put", "delete")


def operations(document: dict[str, Any]) -> Iterator[tuple[str, str, dict[str, Any]]]:
    """The path, the method and the operation of each, with the parameters of its path, all resolved."""
    for path, item in document["paths"].items():
        for method in METHODS:
            if method in item:
                parameters = [*item.get("parameters", []), *item[method].get("parameters", [])]
                yield path, method, item[method] | {"parameters": [resolve(document, each) for each in parameters]}


def resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """What a reference within the document points to."""
    while "$ref" in schema:
        target: Any = document
        for part in schema["$ref"].removeprefix("#/").split("/"):
            target = target[part]
        schema = target
    return schema
