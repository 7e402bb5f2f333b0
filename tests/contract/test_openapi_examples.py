"""The examples in the OpenAPI document are valid, and a server with the sample data accepts and returns them."""

import json
import re
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Any

import pytest
from jsonschema_rs import Draft202012Validator

from contract.operations import ALL_OPERATIONS, content_of
from plankeeper.core.errors import CODES
from plankeeper.core.examples import EXAMPLES
from plankeeper.core.files import Download
from support.client import DOCUMENT, Client, describe_error, referenced_schemas
from support.cluster import SharedCluster
from support.openapi_examples import (
    FILE,
    SOURCES,
    WRITES,
    WRITTEN_BY_HAND,
    render,
    sample_client,
    updated_examples,
)
from support.sample_data import new_sample_database
from support.server import RunningServer, wait_until
from support.sweeps import sweep

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
    return [describe_error(each) for each in validator_of(json.dumps(schema)).iter_errors(example)]


@cache
def validator_of(schema_json: str) -> Draft202012Validator:
    components = {"schemas": referenced_schemas(schema_json)}  # with all of the document, it takes 25 ms
    return Draft202012Validator({"components": components, **json.loads(schema_json)}, validate_formats=True)


@sweep("name", SCHEMAS)
def test_a_schema_has_a_valid_example(name: str) -> None:
    [example] = SCHEMAS[name]["examples"]
    assert example_errors({"$ref": f"#/components/schemas/{name}"}, example) == []


def test_the_example_of_a_schema_has_no_other_fields() -> None:
    for name, schema in SCHEMAS.items():
        if schema.get("properties") and "allOf" not in schema:
            assert set(schema["examples"][0]) <= set(schema["properties"]), name


def test_every_body_has_a_valid_example() -> None:
    for name, entry in ENTRIES.items():
        if "requestBody" in entry and ALL_OPERATIONS[name].body:
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


def test_every_response_with_a_resource_has_the_example_of_its_request() -> None:
    assert set(EXAMPLES["operations"]) == set(WRITES)
    for name, entry in ENTRIES.items():
        if ALL_OPERATIONS[name].response_type is Download:
            continue
        response = entry["responses"][str(ALL_OPERATIONS[name].status)]
        content = response["content"].get("application/json") or next(iter(response["content"].values()))
        example = content.get("example", SCHEMAS[content["schema"]["$ref"].rpartition("/")[2]]["examples"][0])
        assert example_errors(content["schema"], example) == [], name
        path_ids = [each["example"] for each in entry["parameters"] if each.get("in") == "path"]
        if name.startswith(("GET", "PUT")) and name.endswith("}"):
            assert example["id"] == path_ids[-1], name
        body = entry.get("requestBody", {}).get("content", {}).get("application/json", {}).get("example", {})
        others = ["permissions", "components", "line_items", "id"]  # a response has more in them
        others += ["reference"] * name.endswith("/returned")  # the bank's of the return, and that of the payment
        sent = {field: value for field, value in body.items() if field in example and field not in others}
        assert {field: example[field] for field in sent} == sent, name


# Ids that no load of the sample data has, with the reason. As they stand, the requests with them return 404.
GENERATED_IDS = {
    "event_id": "an event gets a new id when the sample data is loaded",
    "webhook_endpoint_id": "the sample data has no endpoint, because nothing receives its messages",
    "statement_id": "the sample data has no statements",
    "statement_run_id": "the sample data has no runs of statements",
    "webhook_delivery_id": "there is no delivery without an endpoint",
}


# Whether an action on the invoice of the examples is allowed depends on the actions before.
ACTIONS = {name for name in ALL_OPERATIONS if re.match(r"POST /invoices/\{invoice_id\}/", name)}
# Requests that the sample data doesn't allow, with the code of the error.
REJECTED = {
    "DELETE /participants/{participant_id}/plans/{plan_id}": "plan_in_use",
    "DELETE /note-types/{note_type_id}": "note_type_in_use",
    "POST /statement-runs/{statement_run_id}/retry": "invalid_request",  # its items have ids of their own
}


# Claims and payments get new ids when the sample data is loaded, and lock the invoices of other examples.
MONEY = {name for name, each in ALL_OPERATIONS.items() if {"claims", "payments"} & {*each.required_scopes}}


def test_every_request_succeeds_with_its_examples(sample_data: Client) -> None:
    order = sorted({*ALL_OPERATIONS} - MONEY, key=lambda name: (name.startswith("DELETE"), -name.count("/"), name))
    order.sort(key=lambda name: ALL_OPERATIONS[name].response_type is Download)  # after the upload
    wrong: list[str] = []
    for name in order:
        entry = ENTRIES[name]
        examples = {each["name"]: each["example"] for each in entry["parameters"] if "example" in each}
        in_path = {each["name"] for each in entry["parameters"] if each.get("in") == "path"}
        query = {field: value for field, value in examples.items() if field not in in_path}
        content = entry.get("requestBody", {}).get("content", {})
        method, path = name.split(" ")
        more: dict[str, Any] = {"params": query}
        if "application/json" in content:
            more["json"] = content["application/json"]["example"]
        elif content:
            more |= content_of(name)
        response = sample_data.request(method, path.format(**examples), **more)
        if name in ACTIONS and response.status_code in (400, 409):
            continue
        if in_path & GENERATED_IDS.keys():
            assert response.status_code == 404, name
            if "webhook_delivery_id" in in_path:
                continue
            response = sample_data.request(method, path.format(**examples | new_ids(sample_data, in_path)), **more)
        if not response.is_success and response.json()["error"] != REJECTED.get(name):
            wrong.append(f"{name}: {response.text}")
    assert not wrong, "\n".join(wrong)


def new_ids(sample_data: Client, in_path: set[str]) -> dict[str, str]:
    """The ids of an event, of a new endpoint, of a new statement and of a run of statements."""
    [event] = wait_until(lambda: sample_data.get("/events", limit=1).json()["data"])
    endpoint = sample_data.create("/webhook-endpoints", EXAMPLES["bodies"]["WebhookEndpointCreate"])
    ids = {"event_id": event["id"], "webhook_endpoint_id": endpoint["id"]}
    if "statement_id" in in_path:  # the participant is deleted later
        path = f"/participants/{EXAMPLES['path_ids']['participant_id']}/statements"
        ids["statement_id"] = sample_data.create(path, EXAMPLES["bodies"]["NewStatement"])["id"]
    if "statement_run_id" in in_path:  # of the same month as before
        body = EXAMPLES["bodies"]["NewStatementRun"]
        ids["statement_run_id"] = sample_data.create("/statement-runs", body)["id"]
    return ids
