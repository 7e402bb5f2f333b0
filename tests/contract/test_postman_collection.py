"""The Postman collection of the documentation site: every operation, with variables instead of placeholders."""

import json
import re
import subprocess
import sys
from typing import Any

import pytest

from contract.operations import ALL_OPERATIONS
from plankeeper.http.public.documentation import SITE
from support.client import PREFIX
from support.documentation import require_site
from support.pages import PROJECT

VARIABLE = re.compile(r"\{\{(\$?\w+)\}\}")


@pytest.fixture(scope="module")
def collection() -> dict[str, Any]:
    command = [sys.executable, "scripts/documentation/postman.py", "openapi.json"]
    return json.loads(subprocess.run(command, cwd=PROJECT, capture_output=True, check=True).stdout)


@pytest.fixture(scope="module")
def requests(collection: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """Each request by its operation, such as `GET /participants`."""
    found: dict[str, dict[str, Any]] = {}
    for folder in collection["item"]:
        for item in folder["item"]:
            path = re.sub(r":(\w+)", r"{\1}", item["request"]["url"]["raw"].removeprefix("{{base_url}}" + PREFIX))
            found[f"{item['request']['method']} {path}"] = item["request"]
    return found


def test_every_operation_is_a_request(requests: dict[str, dict[str, Any]]) -> None:
    assert set(requests) == set(ALL_OPERATIONS)


def test_all_variables_are_those_of_the_collection(collection: dict[str, Any]) -> None:
    used = set(VARIABLE.findall(json.dumps(collection)))
    assert used == {each["key"] for each in collection["variable"]} | {"$guid"}
    assert collection["auth"] == {
        "type": "bearer", "bearer": [{"key": "token", "value": "{{api_key}}", "type": "string"}],
    }  # fmt: skip


def test_a_sent_header_has_a_variable_and_all_others_are_switched_off(requests: dict[str, dict[str, Any]]) -> None:
    for name, request in requests.items():
        sent = {each["key"]: each["value"] for each in request["header"] if not each.get("disabled")}
        has_body = "body" in request
        assert sent.pop("X-Plan-Manager-Id", "{{plan_manager_id}}") == "{{plan_manager_id}}"
        assert sent.pop("Content-Type", None) == ("application/json" if has_body else None)
        assert sent.pop("Idempotency-Key", "{{$guid}}") == "{{$guid}}"
        assert sent == {}, name
        assert all(each["value"] == "" for each in request["header"] if each.get("disabled")), name
        assert all(each["disabled"] for each in request["url"]["query"]), name
    assert "X-Plan-Manager-Id" not in {each["key"] for each in requests["GET /me"]["header"]}


def test_bodies_are_json_objects(requests: dict[str, dict[str, Any]]) -> None:
    bodies = {name: json.loads(each["body"]["raw"]) for name, each in requests.items() if "body" in each}
    assert len(bodies) >= 10
    assert [name for name, body in bodies.items() if not isinstance(body, dict)] == []


def test_the_site_has_the_collection(collection: dict[str, Any]) -> None:
    require_site()
    assert json.loads((SITE / "plankeeper.postman_collection.json").read_text()) == collection
