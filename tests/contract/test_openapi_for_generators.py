"""Choices in the OpenAPI document that generators of clients depend on."""

import re
from typing import Any

from contract.operations import ALL_OPERATIONS
from support.client import DOCUMENT


def all_objects(node: Any) -> list[dict[str, Any]]:
    if isinstance(node, list):
        return [found for each in node for found in all_objects(each)]
    if not isinstance(node, dict):
        return []
    return [node, *(found for each in node.values() for found in all_objects(each))]


def query_parameters() -> list[dict[str, Any]]:
    return [each for each in all_objects(DOCUMENT["paths"]) if each.get("in") == "query"]


def test_the_values_of_an_enum_differ_in_more_than_case() -> None:
    for each in all_objects(DOCUMENT):
        texts = [value.lower() for value in each.get("enum", []) if isinstance(value, str)]
        assert len(texts) == len(set(texts)), each


def test_a_uuid_has_no_pattern() -> None:
    assert [each for each in all_objects(DOCUMENT) if each.get("format") == "uuid" and "pattern" in each] == []


def test_an_enum_is_a_component_with_a_type() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    enums = {name: each for name, each in schemas.items() if "enum" in each}
    assert {"ParticipantStatus", "StateCode", "PermissionName", "EventType", "Scope"} <= set(enums)
    for name, each in enums.items():
        [kind] = {type(value) for value in each["enum"]}
        assert each["type"] == {str: "string", int: "integer"}[kind], name
    assert len([each for each in all_objects(DOCUMENT) if isinstance(each.get("enum"), list)]) == len(enums)
    values = [frozenset(each["enum"]) for each in enums.values()]
    assert len(values) == len(set(values)), "two enums have the same values"


def test_a_response_can_contain_event_types_of_later_versions() -> None:
    schemas = DOCUMENT["components"]["schemas"]
    for field in (schemas["Event"]["properties"]["type"], schemas["WebhookDelivery"]["properties"]["event_type"]):
        assert (field["type"], "enum" in field, "anyOf" in field) == ("string", False, False)


def test_the_plan_manager_is_a_part_of_the_credentials() -> None:
    schemes = DOCUMENT["components"]["securitySchemes"]
    assert DOCUMENT["security"] == [{name: [] for name in schemes}]
    assert schemes["plan_manager"] | {"description": ""} == {
        "type": "apiKey", "in": "header", "name": "X-Plan-Manager-Id", "description": "",
    }  # fmt: skip
    assert not [each for each in all_objects(DOCUMENT) if each.get("name") == "X-Plan-Manager-Id" and "schema" in each]
    without = [each["security"] for each in all_objects(DOCUMENT["paths"]) if "security" in each]
    assert without == [[{"api_key": []}]] * sum(each.is_for_key for each in ALL_OPERATIONS.values())


def test_a_list_in_a_query_is_text_with_a_pattern() -> None:
    assert not [each for each in query_parameters() if each["schema"].get("type") == "array"]
    patterns = {each["name"]: each["schema"]["pattern"] for each in query_parameters() if each["name"] in LISTS}
    assert set(patterns) == set(LISTS)
    for name, (valid, invalid) in LISTS.items():
        assert re.search(patterns[name], valid)
        assert not re.search(patterns[name], invalid)


ID = "017a5f00-0000-7000-8000-00000000da7a"
LISTS = {
    "account_manager": (f"{ID},{ID}", f"{ID},"),
    "type": ("participant.*,provider.created", "participant.*,"),
}
