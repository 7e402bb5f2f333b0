"""Authentication: the API key, the plan manager header, scopes, and the order of the checks."""

from collections.abc import Callable
from contextlib import closing
from datetime import timedelta
from http.client import HTTPConnection
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys.format import new_key as unknown_key
from plankeeper.core.errors import CODES
from support.client import PREFIX, Client, check_response
from support.server import RunningServer
from support.sweeps import sweep

MISSING, INVALID, EXPIRED = (
    CODES[code].description for code in ("missing_api_key", "invalid_api_key", "expired_api_key")
)


def post_with(api: Client, headers: list[tuple[str, Any]]) -> httpx.Response:
    """A create with only these headers; a name can occur twice."""
    response = api.http.post(PREFIX + "/participants", headers=headers, json={"first_name": "Ann"})
    check_response(response)
    return response


def error_of(response: httpx.Response) -> tuple[int, str, str]:
    """The status, the code and the detail of a response without other fields."""
    body = response.json()
    assert set(body) == {"success", "error", "detail", "request_id", "documentation_url"}
    return response.status_code, body["error"], body["detail"]


def with_character_changed(key: str, place: int) -> str:
    """The key with another character at an index; -1 is the last."""
    place %= len(key)
    return key[:place] + ("A" if key[place] != "A" else "B") + key[place + 1 :]


def invalid_authorizations(key: str) -> dict[str, list[Any]]:
    return {
        "first character changed": [f"Bearer {with_character_changed(key, 0)}"],
        "a middle character changed": [f"Bearer {with_character_changed(key, 20)}"],
        "last character changed": [f"Bearer {with_character_changed(key, -1)}"],
        "one character short": [f"Bearer {key[:-1]}"],
        "well formed, and nobody's": [f"Bearer {unknown_key()}"],
        "not ASCII": [f"Bearer {key}é".encode()],
        "twice": [f"Bearer {key}", f"Bearer {key}"],
        "twice, one wrong": [f"Bearer {key}", "Bearer wrong"],
    }


def without_keys(key: str) -> dict[str, list[Any]]:
    return {
        "no header": [],
        "another scheme": [f"Basic {key}"],
        "no scheme": [key],
        "the scheme alone": ["Bearer"],
        "empty": [""],
    }


@pytest.mark.parametrize("case", without_keys(""))
def test_a_request_without_a_key_is_rejected_and_the_form_is_named(api: Client, case: str) -> None:
    headers = [("Authorization", value) for value in without_keys(api.key)[case]]
    response = post_with(api, [*headers, ("X-Plan-Manager-Id", api.plan_manager_id)])
    assert "Authorization: Bearer <API key>" in MISSING
    assert error_of(response) == (401, "missing_api_key", MISSING)
    assert response.headers["www-authenticate"] == "Bearer"
    assert api.get("/participants").json()["pagination"]["total"] == 0


@sweep("case", invalid_authorizations(unknown_key()))
def test_a_request_with_an_invalid_key_is_rejected(api: Client, case: str) -> None:
    scoped = [("X-Plan-Manager-Id", api.plan_manager_id)]
    response = post_with(api, [*(("Authorization", value) for value in invalid_authorizations(api.key)[case]), *scoped])
    status, code, detail = error_of(response)
    assert (status, code) == (401, "invalid_api_key")
    assert detail == INVALID or "more than once" in detail
    assert response.headers["www-authenticate"] == "Bearer"
    assert api.get("/participants").json()["pagination"]["total"] == 0


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_case_insensitive(api: Client, scheme: str) -> None:
    response = post_with(api, [("Authorization", f"{scheme} {api.key}"), ("X-Plan-Manager-Id", api.plan_manager_id)])
    assert (response.status_code, response.json()["first_name"]) == (200, "Ann")


def test_white_space_around_a_header_value_is_not_part_of_it(api: Client) -> None:
    for space in ("", " ", "\t", " \t  "):
        headers = {
            "Authorization": f"{space}Bearer   {api.key}{space}",
            "X-Plan-Manager-Id": f"{space}{api.plan_manager_id}{space}",
            "X-Request-Id": f"{space}mine{space}",
        }
        status, request_id = status_of_raw_request(api, headers)
        assert (status, request_id) == (200, "mine")
    assert status_of_raw_request(api, {"Authorization": "Bearer ", "X-Plan-Manager-Id": api.plan_manager_id})[0] == 401


def status_of_raw_request(api: Client, headers: dict[str, str]) -> tuple[int, str | None]:
    """Sent unchanged: httpx rejects white space in headers."""
    connection = HTTPConnection(api.http.base_url.host, api.http.base_url.port or 80, timeout=20)
    with closing(connection):
        connection.request("GET", f"{PREFIX}/participants", headers=headers)
        response = connection.getresponse()
        return response.status, response.headers["X-Request-Id"]


def test_expiry_is_revealed_only_to_the_holder_of_the_key(
    new_plan_manager: Callable[[], UUID], new_key: Callable[..., str], server: RunningServer
) -> None:
    owner = new_plan_manager()
    expired = Client(server.url, new_key(owner, lasts=timedelta(seconds=-1)), owner)
    response = expired.get("/participants")
    assert error_of(response) == (401, "expired_api_key", EXPIRED)
    assert response.headers["www-authenticate"] == "Bearer"
    for place in (5, -1):
        guess = {"Authorization": f"Bearer {with_character_changed(expired.key, place)}"}
        guessed = expired.request("GET", "/participants", headers=guess)
        assert error_of(guessed) == (401, "invalid_api_key", INVALID)
    expired.http.close()


def invalid_plan_manager_ids(plan_manager_id: str) -> dict[str, list[Any]]:
    return {
        "no UUID": ["abc"],
        "empty": [""],
        "without hyphens": [plan_manager_id.replace("-", "")],
        "in braces": [f"{{{plan_manager_id}}}"],
        "as a URN": [f"urn:uuid:{plan_manager_id}"],
        "two in one": [f"{plan_manager_id},{plan_manager_id}"],
        "not ASCII": ["é".encode()],
        "twice": [plan_manager_id, plan_manager_id],
    }


@sweep("case", invalid_plan_manager_ids(""))
def test_the_plan_manager_header_must_be_one_uuid(api: Client, case: str) -> None:
    values = invalid_plan_manager_ids(api.plan_manager_id)[case]
    response = post_with(
        api, [("Authorization", f"Bearer {api.key}"), *(("X-Plan-Manager-Id", value) for value in values)]
    )
    says = CODES["invalid_plan_manager_id"].description
    assert error_of(response) == (400, "invalid_plan_manager_id", says)
    assert api.get("/participants").json()["pagination"]["total"] == 0


def test_the_plan_manager_header_is_accepted_in_upper_case(api: Client) -> None:
    made = api.create("/participants", {"first_name": "Ann"})
    upper = {"X-Plan-Manager-Id": api.plan_manager_id.upper()}
    assert api.request("GET", f"/participants/{made['id']}", headers=upper).json() == made


def test_a_key_for_two_plan_managers_acts_for_the_one_in_the_header(
    server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> None:
    ids = new_plan_manager(), new_plan_manager()
    key = new_key(*ids)
    first, second = (Client(server.url, key, each) for each in ids)
    made = first.create("/participants", {"first_name": "Ann"})
    assert first.get(f"/participants/{made['id']}").json() == made
    assert second.get(f"/participants/{made['id']}").status_code == 404
    assert second.get("/participants").json()["data"] == []
    for client in (first, second):
        client.http.close()


def test_each_scope_allows_only_its_own_requests(new_client: Callable[..., Client]) -> None:
    reader = new_client(scopes=("read",))
    writer = new_client(UUID(reader.plan_manager_id), scopes=("write",))
    says = "This request requires the scope `{}`, which the API key does not have."
    made = writer.create("/participants", {"first_name": "Ann"})
    assert reader.get(f"/participants/{made['id']}").json() == made
    rejected = reader.put(f"/participants/{made['id']}", {"first_name": "Bob"})
    assert error_of(rejected) == (403, "insufficient_scope", says.format("write"))
    assert error_of(writer.get("/participants")) == (403, "insufficient_scope", says.format("read"))
    assert reader.get(f"/participants/{made['id']}").json() == made


INVALID_KEY = {"Authorization": "Bearer wrong"}
NO_KEY = {"Authorization": None}
INVALID_PLAN_MANAGER = {"X-Plan-Manager-Id": "wrong"}
TEXT = {"Content-Type": "text/plain"}
# Requests of a key that may only read, each wrong in two ways, and the one of them that is answered.
ERROR_ORDER: dict[str, tuple[str, str, dict[str, str | None], int, str]] = {
    "the path before the key": ("PATCH", "/nothing", NO_KEY, 404, "path_not_found"),
    "the method before the key": ("PATCH", "/participants", NO_KEY, 405, "method_not_allowed"),
    "the key before the scope header": (
        "POST",
        "/participants?x=1",
        INVALID_KEY | INVALID_PLAN_MANAGER,
        401,
        "invalid_api_key",
    ),
    "the scope header before the scope": (
        "POST",
        "/participants?x=1",
        INVALID_PLAN_MANAGER,
        400,
        "invalid_plan_manager_id",
    ),
    "the scope before the body's type": ("POST", "/participants", TEXT, 403, "insufficient_scope"),
    "the scope before the query": ("POST", "/participants?x=1", {}, 403, "insufficient_scope"),
    "the scope before the path's id": ("DELETE", "/participants/x", {}, 403, "insufficient_scope"),
    "the query before what is absent": ("GET", f"/participants/{uuid7()}?x=1", {}, 400, "invalid_request"),
    "what is absent last": ("GET", f"/participants/{uuid7()}", {}, 404, "not_found"),
}


@pytest.mark.parametrize("case", ERROR_ORDER)
def test_the_first_error_in_the_documented_order_is_returned(new_client: Callable[..., Client], case: str) -> None:
    method, path, headers, status, code = ERROR_ORDER[case]
    reader = new_client(scopes=("read",))
    response = reader.request(method, path, headers=headers, content=b"{" if method == "POST" else None)
    assert (response.status_code, response.json()["error"]) == (status, code)


def test_plan_manager_access_is_checked_before_the_scope_and_the_body(new_client: Callable[..., Client]) -> None:
    reader, other = new_client(scopes=("read",)), new_client()
    elsewhere = {"X-Plan-Manager-Id": other.plan_manager_id}
    response = reader.request("POST", "/participants", headers=elsewhere, content=b"{")
    assert (response.status_code, response.json()["error"]) == (403, "plan_manager_not_allowed")


def test_an_invalid_body_is_reported_before_not_found(api: Client) -> None:
    response = api.put(f"/participants/{uuid7()}", {"first_name": 5})
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
    assert api.put(f"/participants/{uuid7()}", {"first_name": "Ann"}).status_code == 404
