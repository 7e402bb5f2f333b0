"""Who may ask: the API key, the scope header, the order in which requests are refused."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.api_keys import service, store
from plankeeper.api_keys.format import hash_key
from plankeeper.api_keys.format import new_key as unknown_key
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.http.errors import CODES
from support.client import PREFIX, Client, check
from support.server import RunningServer, wait_until

MISSING, INVALID, EXPIRED = (
    CODES[code].description for code in ("missing_api_key", "invalid_api_key", "expired_api_key")
)


def send(api: Client, headers: list[tuple[str, Any]]) -> httpx.Response:
    """A create with just these headers; a name may stand twice."""
    answer = api.http.post(PREFIX + "/participants", headers=headers, json={"first_name": "Ann"})
    check(answer)
    return answer


def refusal(answer: httpx.Response) -> tuple[int, str, str]:
    """Status, code and sentence of an answer that has nothing else to say."""
    body = answer.json()
    assert set(body) == {"success", "error", "detail", "request_id"}
    return answer.status_code, body["error"], body["detail"]


def one_changed(key: str, place: int) -> str:
    """The key with another character at a place; -1 is the last."""
    place %= len(key)
    return key[:place] + ("A" if key[place] != "A" else "B") + key[place + 1 :]


def wrong_authorizations(key: str) -> dict[str, list[Any]]:
    return {
        "first character changed": [f"Bearer {one_changed(key, 0)}"],
        "a middle character changed": [f"Bearer {one_changed(key, 20)}"],
        "last character changed": [f"Bearer {one_changed(key, -1)}"],
        "one character short": [f"Bearer {key[:-1]}"],
        "well formed, and nobody's": [f"Bearer {unknown_key()}"],
        "not ASCII": [f"Bearer {key}é".encode()],
        "another scheme": [f"Basic {key}"],
        "no scheme": [key],
        "the scheme alone": ["Bearer"],
        "empty": [""],
        "twice": [f"Bearer {key}", f"Bearer {key}"],
        "twice, one wrong": [f"Bearer {key}", "Bearer wrong"],
    }


def test_a_request_without_a_key_is_refused(api: Client) -> None:
    answer = send(api, [("X-Plan-Manager-Id", api.plan_manager_id)])
    assert refusal(answer) == (401, "missing_api_key", MISSING)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert api.get("/participants").json()["pagination"]["total"] == 0


@pytest.mark.parametrize("fault", wrong_authorizations(unknown_key()))
def test_a_request_with_a_wrong_key_is_refused(api: Client, fault: str) -> None:
    scoped = [("X-Plan-Manager-Id", api.plan_manager_id)]
    answer = send(api, [*(("Authorization", value) for value in wrong_authorizations(api.key)[fault]), *scoped])
    assert refusal(answer) == (401, "invalid_api_key", INVALID)
    assert answer.headers["www-authenticate"] == "Bearer"
    assert api.get("/participants").json()["pagination"]["total"] == 0


@pytest.mark.parametrize("scheme", ["Bearer", "bearer", "BEARER"])
def test_the_scheme_is_taken_in_either_case(api: Client, scheme: str) -> None:
    answer = send(api, [("Authorization", f"{scheme} {api.key}"), ("X-Plan-Manager-Id", api.plan_manager_id)])
    assert (answer.status_code, answer.json()["first_name"]) == (200, "Ann")


def test_an_expired_key_is_told_so_only_to_who_holds_it(
    new_plan_manager: Callable[[], UUID], new_key: Callable[..., str], server: RunningServer
) -> None:
    owner = new_plan_manager()
    expired = Client(server.url, new_key(owner, lasts=timedelta(seconds=-1)), owner)
    answer = expired.get("/participants")
    assert refusal(answer) == (401, "expired_api_key", EXPIRED)
    assert answer.headers["www-authenticate"] == "Bearer"
    for place in (5, -1):
        guess = {"Authorization": f"Bearer {one_changed(expired.key, place)}"}
        guessed = expired.request("GET", "/participants", headers=guess)
        assert refusal(guessed) == (401, "invalid_api_key", INVALID)
    expired.http.close()


def test_a_key_in_use_stops_working_when_its_time_has_run_out(new_client: Callable[..., Client]) -> None:
    brief = new_client(lasts=timedelta(seconds=1.5))
    assert brief.get("/participants").status_code == 200
    refused = wait_until(lambda: (answer := brief.get("/participants")).status_code != 200 and answer)
    assert refusal(refused) == (401, "expired_api_key", EXPIRED)


def test_a_revoked_key_is_refused_by_every_server_and_others_go_on(
    cluster: Cluster, server: RunningServer, api: Client, new_key: Callable[..., str]
) -> None:
    second = RunningServer(cluster.dsn).start()
    owner = UUID(api.plan_manager_id)
    clients = [api, Client(second.url, api.key, owner)]
    staying = [Client(each.url, new_key(owner), owner) for each in (server, second)]
    assert [each.get("/participants").status_code for each in (*clients, *staying)] == [200] * 4

    async def revoke() -> None:
        async with server.db.transaction() as tx:
            kept = await store.get_by_hash(tx, hash_key(api.key))
            assert kept is not None
            await service.revoke(WriteContext(tx, owner, server.settings, SYSTEM), kept.id)

    server.run(revoke())
    for client in clients:
        refused = wait_until(lambda client=client: (got := client.get("/participants")).status_code != 200 and got)
        assert refusal(refused) == (401, "invalid_api_key", INVALID)
    assert [each.get("/participants").status_code for each in staying] == [200] * 2
    for client in (clients[1], *staying):
        client.http.close()
    second.stop()


def test_the_scope_header_is_needed(api: Client) -> None:
    answer = send(api, [("Authorization", f"Bearer {api.key}")])
    assert refusal(answer) == (400, "missing_plan_manager_id", CODES["missing_plan_manager_id"].description)
    assert api.get("/participants").json()["pagination"]["total"] == 0


def wrong_scopes(plan_manager_id: str) -> dict[str, list[Any]]:
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


@pytest.mark.parametrize("fault", wrong_scopes(""))
def test_the_scope_header_must_be_one_uuid(api: Client, fault: str) -> None:
    values = wrong_scopes(api.plan_manager_id)[fault]
    answer = send(api, [("Authorization", f"Bearer {api.key}"), *(("X-Plan-Manager-Id", value) for value in values)])
    says = CODES["invalid_plan_manager_id"].description
    assert refusal(answer) == (400, "invalid_plan_manager_id", says)
    assert api.get("/participants").json()["pagination"]["total"] == 0


def test_the_scope_header_is_taken_in_upper_case(api: Client) -> None:
    made = api.made("/participants", {"first_name": "Ann"})
    upper = {"X-Plan-Manager-Id": api.plan_manager_id.upper()}
    assert api.request("GET", f"/participants/{made['id']}", headers=upper).json() == made


def test_a_key_does_not_reach_another_plan_manager_nor_one_that_is_not(api: Client, other: Client) -> None:
    for plan_manager_id in (other.plan_manager_id, str(uuid7())):
        answer = send(api, [("Authorization", f"Bearer {api.key}"), ("X-Plan-Manager-Id", plan_manager_id)])
        says = CODES["plan_manager_not_allowed"].description
        assert refusal(answer) == (403, "plan_manager_not_allowed", says)
    assert other.get("/participants").json()["pagination"]["total"] == 0


def test_a_key_of_two_plan_managers_acts_for_the_one_in_the_header(
    server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> None:
    ids = new_plan_manager(), new_plan_manager()
    key = new_key(*ids)
    first, second = (Client(server.url, key, each) for each in ids)
    made = first.made("/participants", {"first_name": "Ann"})
    assert first.get(f"/participants/{made['id']}").json() == made
    assert second.get(f"/participants/{made['id']}").status_code == 404
    assert second.get("/participants").json()["data"] == []
    for client in (first, second):
        client.http.close()


def test_each_scope_allows_its_own_kind_of_request_only(new_client: Callable[..., Client]) -> None:
    reader = new_client(scopes=("read",))
    writer = new_client(UUID(reader.plan_manager_id), scopes=("write",))
    says = "The API key lacks the scope `{}`, which this request needs."
    made = writer.made("/participants", {"first_name": "Ann"})
    assert reader.get(f"/participants/{made['id']}").json() == made
    refused = reader.put(f"/participants/{made['id']}", {"first_name": "Bob"})
    assert refusal(refused) == (403, "insufficient_scope", says.format("write"))
    assert refusal(writer.get("/participants")) == (403, "insufficient_scope", says.format("read"))
    assert reader.get(f"/participants/{made['id']}").json() == made


WRONG_KEY = {"Authorization": "Bearer wrong"}
NO_KEY = {"Authorization": None}
WRONG_SCOPE = {"X-Plan-Manager-Id": "wrong"}
TEXT = {"Content-Type": "text/plain"}
# Requests of a key that may only read, each wrong in two ways, and the one of them that is answered.
ORDER: dict[str, tuple[str, str, dict[str, str | None], int, str]] = {
    "the path before the key": ("PATCH", "/nothing", NO_KEY, 404, "not_found"),
    "the method before the key": ("PATCH", "/participants", NO_KEY, 405, "method_not_allowed"),
    "the key before the scope header": ("POST", "/participants?x=1", WRONG_KEY | WRONG_SCOPE, 401, "invalid_api_key"),
    "the scope header before the scope": ("POST", "/participants?x=1", WRONG_SCOPE, 400, "invalid_plan_manager_id"),
    "the scope before the body's type": ("POST", "/participants", TEXT, 403, "insufficient_scope"),
    "the scope before the query": ("POST", "/participants?x=1", {}, 403, "insufficient_scope"),
    "the scope before the path's id": ("DELETE", "/participants/x", {}, 403, "insufficient_scope"),
    "the query before what is absent": ("GET", f"/participants/{uuid7()}?x=1", {}, 400, "invalid_request"),
    "what is absent last": ("GET", f"/participants/{uuid7()}", {}, 404, "not_found"),
}


@pytest.mark.parametrize("case", ORDER)
def test_the_first_refusal_in_the_order_is_the_one_answered(new_client: Callable[..., Client], case: str) -> None:
    method, path, headers, status, code = ORDER[case]
    reader = new_client(scopes=("read",))
    answer = reader.request(method, path, headers=headers, content=b"{" if method == "POST" else None)
    assert (answer.status_code, answer.json()["error"]) == (status, code)


def test_another_plan_manager_comes_before_the_scope_and_the_body(new_client: Callable[..., Client]) -> None:
    reader, other = new_client(scopes=("read",)), new_client()
    elsewhere = {"X-Plan-Manager-Id": other.plan_manager_id}
    answer = reader.request("POST", "/participants", headers=elsewhere, content=b"{")
    assert (answer.status_code, answer.json()["error"]) == (403, "plan_manager_not_allowed")


def test_a_wrong_body_comes_before_what_is_absent(api: Client) -> None:
    answer = api.put(f"/participants/{uuid7()}", {"first_name": 5})
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_request")
    assert api.put(f"/participants/{uuid7()}", {"first_name": "Ann"}).status_code == 404
