"""The examples in the OpenAPI document are valid, and a server with the sample data accepts and returns them."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from contract.operations import ALL_OPERATIONS
from plankeeper.http.errors import CODES
from plankeeper.http.openapi_examples import EXAMPLES
from support.client import DOCUMENT, Client, describe_error
from support.cluster import SharedCluster
from support.openapi_examples import (
    FILE,
    SOURCES,
    WRITTEN_BY_HAND,
    render,
    sample_client,
    send_example,
    updated_examples,
)
from support.sample_data import new_sample_database
from support.server import RunningServer

SCHEMAS: dict[str, Any] = DOCUMENT["components"]["schemas"]
ENTRIES: dict[str, dict[str, Any]] = {
    name: DOCUMENT["paths"][each.path][each.method.lower()] for name, each in ALL_OPERATIONS.items()
}


@contextmanager
def new_sample_client(cluster: SharedCluster) -> Iterator[Client]:
    """A client of a new server with the sample data."""
    server = RunningServer(new_sample_database(cluster)).start()
    client = sample_client(server)
    yield client
    client.http.close()
    server.stop()


@pytest.fixture(scope="module")
def sample_data(cluster: SharedCluster) -> Iterator[Client]:
    """A client for requests that change the sample data."""
    with new_sample_client(cluster) as client:
        yield client


def example_errors(schema: dict[str, Any], example: Any) -> list[str]:
    validator = Draft202012Validator({"components": DOCUMENT["components"], **schema}, validate_formats=True)
    return [describe_error(each) for each in validator.iter_errors(example)]


@pytest.mark.parametrize("name", SCHEMAS)
def test_a_schema_has_a_valid_example(name: str) -> None:
    [example] = SCHEMAS[name]["examples"]
    assert example_errors({"$ref": f"#/components/schemas/{name}"}, example) == []


def test_the_example_of_a_schema_has_no_other_members() -> None:
    for name, schema in SCHEMAS.items():
        if schema.get("properties") and "allOf" not in schema:
            assert set(schema["examples"][0]) <= set(schema["properties"]), name


def test_every_body_has_a_valid_example() -> None:
    for name, entry in ENTRIES.items():
        if "requestBody" in entry:
            [content] = entry["requestBody"]["content"].values()
            assert example_errors(content["schema"], content["example"]) == [], name


def test_every_id_in_a_path_has_a_valid_example() -> None:
    for name, entry in ENTRIES.items():
        for parameter in (each for each in entry["parameters"] if each.get("in") == "path"):
            assert example_errors(parameter["schema"], parameter["example"]) == [], name


def test_every_error_response_has_valid_examples() -> None:
    examples = DOCUMENT["components"]["examples"]
    assert set(examples) == set(CODES) - {"path_not_found", "method_not_allowed"}
    for response in DOCUMENT["components"]["responses"].values():
        [content] = response["content"].values()
        for code in content["examples"]:
            assert example_errors(content["schema"], examples[code]["value"]) == [], code
            assert examples[code]["value"]["documentation_url"].endswith(f"#{code}")


def test_every_example_of_a_response_has_a_source() -> None:
    assert set(EXAMPLES["responses"]) == set(SOURCES) | set(WRITTEN_BY_HAND)
    assert not set(SOURCES) & set(WRITTEN_BY_HAND)


def test_the_examples_are_those_of_the_sample_data(cluster: SharedCluster) -> None:
    with new_sample_client(cluster) as client:
        assert render(updated_examples(client)) == FILE.read_text(), "run make examples"


# The delivery of the examples isn't in the sample data.
RETRY = "POST /webhook-deliveries/{webhook_delivery_id}/retry"


@pytest.mark.parametrize(
    "name", [name for name in ALL_OPERATIONS if name.startswith(("POST", "PUT")) and name != RETRY]
)
def test_a_request_with_the_examples_succeeds(sample_data: Client, name: str) -> None:
    endpoint = sample_data.create("/webhook-endpoints", {"url": "https://hooks.example.com/plankeeper"})
    ids = EXAMPLES["path_ids"] | {"webhook_endpoint_id": endpoint["id"]}  # nor is the endpoint
    entry = ENTRIES[name]
    body = entry["requestBody"]["content"]["application/json"]["example"] if "requestBody" in entry else None
    response = send_example(sample_data, name, ids, body)
    assert response.is_success, response.text
