"""The OpenAPI document has no breaking change since the last release, and each kind of change is recognised."""

import json
from copy import deepcopy
from typing import Any

import pytest

from contract.breaking_changes import breaking_changes
from support.client import DOCUMENT, PREFIX
from support.pages import PROJECT, text_of

# `make release-openapi` copies openapi.json to this file with each release.
RELEASED = PROJECT / "tests/contract/released/openapi.json"


def test_nothing_breaks_a_client_of_the_last_release() -> None:
    if RELEASED.exists():
        assert breaking_changes(json.loads(RELEASED.read_text()), DOCUMENT) == []
    else:  # There is nothing to compare with, which is right only before the first release.
        assert "## v1, not yet released" in text_of("docs/api/changelog.md"), "run `make release-openapi`"


def test_a_document_is_compatible_with_itself() -> None:
    assert breaking_changes(DOCUMENT, DOCUMENT) == []


PERSON: dict[str, Any] = {
    "type": "object",
    "properties": {
        "id": {"type": "string", "format": "uuid"},
        "name": {"anyOf": [{"type": "string", "maxLength": 50}, {"type": "null"}]},
        "status": {"type": "string", "enum": ["Active", "Lead"]},
        "roles": {"type": "array", "items": {"type": "string"}},
        "manager": {"$ref": "#/components/schemas/Person"},
    },
    "required": ["id", "status"],
}
CHANGE = deepcopy(PERSON) | {"additionalProperties": False}
del CHANGE["properties"]["manager"]
SMALL: dict[str, Any] = {
    "security": [{"key": []}],
    "paths": {
        "/people": {
            "parameters": [{"in": "query", "name": "state", "schema": {"type": "string", "minLength": 1}}],
            "get": {
                "responses": {
                    "200": {
                        "headers": {"ETag": {}},
                        "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Person"}}},
                    },
                    "404": {"content": {"application/json": {"schema": {}}}},
                }
            },
            "put": {
                "requestBody": {"content": {"application/json": {"schema": {"$ref": "#/components/schemas/Change"}}}},
                "responses": {"200": {}},
            },
        }
    },
    "webhooks": {
        "person.created": {"post": {"requestBody": {"content": {"application/json": {"schema": deepcopy(CHANGE)}}}}}
    },
    "components": {"schemas": {"Person": PERSON, "Change": CHANGE}},
}  # fmt: skip

REMOVED = object()
PEOPLE = ("paths", "/people")
STATE = (*PEOPLE, "parameters", 0)
GET = (*PEOPLE, "get")
OK, MISSING = (*GET, "responses", "200"), (*GET, "responses", "404")
PUT = (*PEOPLE, "put")
BODY = (*PUT, "requestBody")
PERSON_SCHEMA, CHANGE_SCHEMA = ("components", "schemas", "Person"), ("components", "schemas", "Change")
READ, WRITTEN = (*PERSON_SCHEMA, "properties"), (*CHANGE_SCHEMA, "properties")
WEBHOOK = ("webhooks", "person.created")
MESSAGE = (*WEBHOOK, "post", "requestBody", "content", "application/json", "schema", "properties")
NULLABLE = {"type": ["string", "null"]}
PARAMETER = {"in": "query", "name": "q", "schema": {"type": "string"}}


def edited(place: tuple[str | int, ...], value: object) -> dict[str, Any]:
    """The document with another value at a path."""
    document = deepcopy(SMALL)
    parent: Any = document
    for key in place[:-1]:
        parent = parent[key]
    if value is REMOVED:
        del parent[place[-1]]
    elif isinstance(parent, list) and place[-1] == len(parent):
        parent.append(value)
    else:
        parent[place[-1]] = value
    return document


Change = tuple[str, tuple[str | int, ...], object]
BREAKING: list[Change] = [
    ("/people: the path was removed", PEOPLE, REMOVED),
    ("GET /people: the method was removed", GET, REMOVED),
    ("GET /people: it requires other credentials", (*GET, "security"), [{"other": []}]),
    ("GET /people: the query parameter state was removed", STATE, REMOVED),
    ("GET /people: the query parameter state is required now", (*STATE, "required"), True),
    ("GET /people: the query parameter state has a stricter minLength", (*STATE, "schema", "minLength"), 2),
    ("GET /people: the query parameter state has a stricter maxLength", (*STATE, "schema", "maxLength"), 9),
    ("GET /people: the query parameter state requires another pattern", (*STATE, "schema", "pattern"), "^[A-Z]+$"),
    ("GET /people: the query parameter state accepts only certain values now", (*STATE, "schema", "enum"), ["NSW"]),
    ("GET /people: the query parameter state doesn't accept string any more", (*STATE, "schema", "type"), "integer"),
    ("GET /people: the query parameter q is new and required", (*STATE[:-1], 1), PARAMETER | {"required": True}),
    ("GET /people: the response 404 was removed", MISSING, REMOVED),
    ("GET /people: the response 404 can't be application/json any more", (*MISSING, "content"), {}),
    ("GET /people: the response 200 lost the header ETag", (*OK, "headers"), {}),
    ("GET /people: name of the response 200 was removed", (*READ, "name"), REMOVED),
    ("GET /people: id of the response 200 is not always present any more", (*PERSON_SCHEMA, "required"), ["status"]),
    ("GET /people: id of the response 200 can be null", (*READ, "id", "type"), ["string", "null"]),
    ("GET /people: id of the response 200 can be integer", (*READ, "id", "type"), "integer"),
    ("GET /people: id of the response 200 doesn't have the format uuid any more", (*READ, "id", "format"), REMOVED),
    ("GET /people: an item of roles of the response 200 can be null", (*READ, "roles", "items"), NULLABLE),
    ("PUT /people: the request body was removed", BODY, REMOVED),
    ("PUT /people: the request body is required now", (*BODY, "required"), True),
    ("PUT /people: the request body can't be application/json any more", (*BODY, "content"), {}),
    ("PUT /people: name of the request body is required now", (*CHANGE_SCHEMA, "required"), ["id", "status", "name"]),
    ("PUT /people: name of the request body was removed", (*WRITTEN, "name"), REMOVED),
    ("PUT /people: name of the request body doesn't accept null any more", (*WRITTEN, "name", "anyOf", 1), REMOVED),
    ("PUT /people: name of the request body has a stricter maxLength", (*WRITTEN, "name", "anyOf", 0, "maxLength"), 49),
    (
        "PUT /people: status of the request body doesn't accept 'Lead' any more",
        (*WRITTEN, "status", "enum", 1),
        REMOVED,
    ),
    ("PUT /people: id of the request body requires another format", (*WRITTEN, "id", "format"), "date"),
    ("webhook person.created: was removed", WEBHOOK, REMOVED),
    ("webhook person.created: id of the message was removed", (*MESSAGE, "id"), REMOVED),
    ("webhook person.created: status of the message can be null", (*MESSAGE, "status", "enum", 2), None),
]
ADDITIONS: list[tuple[tuple[str | int, ...], object]] = [
    (("paths", "/places"), {"get": {"responses": {}}}),
    ((*PEOPLE, "post"), {"responses": {}}),
    ((*STATE[:-1], 1), PARAMETER),
    ((*STATE, "schema", "minLength"), 0),
    ((*GET, "security"), [{"key": []}, {"other": []}]),
    ((*GET, "responses", "429"), {}),
    ((*OK, "headers", "RateLimit"), {}),
    ((*OK, "content", "text/csv"), {}),
    ((*READ, "email"), NULLABLE),
    ((*READ, "status", "enum", 2), "Inactive"),
    ((*READ, "name", "anyOf", 0, "maxLength"), 100),
    ((*READ, "name", "anyOf", 1), REMOVED),
    ((*PERSON_SCHEMA, "required"), ["id", "status", "name"]),
    ((*WRITTEN, "email"), NULLABLE),
    ((*WRITTEN, "id", "type"), ["string", "null"]),
    ((*WRITTEN, "status", "enum", 2), "Inactive"),
    ((*WRITTEN, "name", "anyOf", 0, "maxLength"), 51),
    ((*CHANGE_SCHEMA, "required"), ["id"]),
    (("webhooks", "person.deleted"), {}),
    ((*MESSAGE, "email"), NULLABLE),
]


@pytest.mark.parametrize("sentence, place, value", BREAKING, ids=[each[0] for each in BREAKING])
def test_a_breaking_change_is_reported_in_words(sentence: str, place: tuple[str | int, ...], value: object) -> None:
    changes = breaking_changes(SMALL, edited(place, value))
    assert sentence in changes
    operation = sentence.partition(" of ")[0].partition(": ")[0]
    assert {each.partition(": ")[0] for each in changes} <= {operation, operation.replace("GET", "PUT")}


@pytest.mark.parametrize("place, value", ADDITIONS, ids=[" ".join(map(str, place[-3:])) for place, _ in ADDITIONS])
def test_an_addition_is_no_breaking_change(place: tuple[str | int, ...], value: object) -> None:
    assert breaking_changes(SMALL, edited(place, value)) == []


def test_removing_an_operation_of_the_api_is_a_breaking_change() -> None:
    without = deepcopy(DOCUMENT)
    del without["paths"][f"{PREFIX}/participants"]["post"]
    assert breaking_changes(DOCUMENT, without) == [f"POST {PREFIX}/participants: the method was removed"]
    assert breaking_changes(without, DOCUMENT) == []
