"""Everything in the OpenAPI document has a description."""

from collections.abc import Iterator
from typing import Any

from support.client import DOCUMENT

COMPONENTS: dict[str, Any] = DOCUMENT["components"]
OPERATIONS: dict[str, Any] = {
    f"{method.upper()} {path}": operation
    for path, operations in DOCUMENT["paths"].items()
    for method, operation in operations.items()
}


def described_parts() -> Iterator[tuple[str, dict[str, Any]]]:
    """All parts that need a description, with their paths."""
    yield "info", DOCUMENT["info"]
    for kind in ("schemas", "parameters", "headers", "responses", "securitySchemes"):
        yield from ((f"{kind}.{name}", part) for name, part in COMPONENTS[kind].items())
    for name, schema in COMPONENTS["schemas"].items():
        yield from ((f"{name}.{field}", part) for field, part in schema.get("properties", {}).items())
    for name, operation in OPERATIONS.items():
        yield name, operation
        own_parameters = (each for each in operation["parameters"] if "$ref" not in each)
        yield from ((f"{name} {each['name']}", each) for each in own_parameters)
        yield from ((f"{name} {status}", each) for status, each in operation["responses"].items() if status < "400")
    for type_, webhook in DOCUMENT["webhooks"].items():
        yield type_, webhook["post"]
        yield from ((f"{type_} {status}", each) for status, each in webhook["post"]["responses"].items())
    yield from ((f"tag {each['name']}", each) for each in DOCUMENT["tags"])
    yield from ((f"server {each['url']}", each) for each in DOCUMENT["servers"])


def test_every_part_has_a_description() -> None:
    parts = list(described_parts())
    assert len(parts) > 700
    assert [place for place, part in parts if len(part.get("description", "").strip()) < len("Any text.")] == []


def test_a_description_is_a_sentence() -> None:
    sentences = {place: part["description"].rstrip() for place, part in described_parts()}
    statuses = {place for place in sentences if place.startswith("responses.")}  # they list the codes
    assert {place for place, text in sentences.items() if text[-1] != "."} <= statuses
    assert {place for place, text in sentences.items() if text[0].islower()} == set()


def test_an_operation_says_more_than_its_summary() -> None:
    for name, operation in OPERATIONS.items():
        assert operation["summary"] not in operation["description"], name
