"""Records in the trash are invisible to the API: no endpoint returns them, and none changes them."""

import json
from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.trash import service
from support.client import Client
from support.server import RunningServer
from support.sweeps import sweep

PERSON = {"first_name": "Ottilie", "last_name": "Quill", "participant_number": "430999111", "email": "o@example.com"}
COMPANY = {"entity_name": "Quill Care", "abn": "26502811788", "email": "billing@quill.example"}
READS = (
    "/participants?limit=100", "/participants?q=Quill", "/participants", "/participants?status=Active",
    "/participants?updated_since=2020-01-01T00:00:00Z", "/participants?sort=last_name", "/participants?after=0",
    "/participants?id={participant}", "/providers?limit=100", "/providers?q=Quill", "/providers?abn=26502811788",
    "/providers?email=billing@quill.example", "/providers", "/providers?after=0", "/providers?id={provider}",
    "/providers?updated_since=2020-01-01T00:00:00Z",
)  # fmt: skip
PLACES = (
    ("GET", "/participants/{participant}", None),
    ("GET", "/participants/{participant}", None),
    ("PUT", "/participants/{participant}", {"first_name": "Other"}),
    ("DELETE", "/participants/{participant}", None),
    ("GET", "/participants/{participant}/team-members", None),
    ("POST", "/participants/{participant}/team-members", {"first_name": "Nils"}),
    ("GET", "/participants/{participant}/team-members/{member}", None),
    ("PUT", "/participants/{participant}/team-members/{member}", {"first_name": "Other"}),
    ("DELETE", "/participants/{participant}/team-members/{member}", None),
    ("GET", "/providers/{provider}", None),
    ("PUT", "/providers/{provider}", {"entity_name": "Other"}),
    ("DELETE", "/providers/{provider}", None),
)


@pytest.fixture
def client(server: RunningServer, new_key: Callable[..., str], plan_manager_id: UUID) -> Iterator[Client]:
    made = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    yield made
    made.http.close()


@pytest.fixture
def ids(server: RunningServer, client: Client, plan_manager_id: UUID) -> dict[str, str]:
    """The ids of a participant, its team member and a provider, which are all in the trash."""
    person = client.create("/participants", PERSON)["id"]
    member = client.create(f"/participants/{person}/team-members", {"email": "nominee@example.com"})["id"]
    provider = client.create("/providers", COMPANY)["id"]

    async def delete() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            await service.delete(ctx, "participant", UUID(person))
            await service.delete(ctx, "provider", UUID(provider))

    server.run(delete())
    return {"participant": person, "member": member, "provider": provider}


@sweep("path", READS)
def test_no_list_contains_it(client: Client, ids: dict[str, str], path: str) -> None:
    body = client.get(path.format(**ids)).raise_for_status().json()
    assert (body["data"], body["pagination"]["total"] or 0) == ([], 0)


@sweep("method, path, body", PLACES)
def test_it_is_not_found(client: Client, ids: dict[str, str], method: str, path: str, body: Any) -> None:
    response = client.request(method, path.format(**ids), json=body)
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


def test_bulk_requests_do_not_find_it(client: Client, ids: dict[str, str]) -> None:
    for resource, id_ in (("participants", ids["participant"]), ("providers", ids["provider"])):
        response = client.post(f"/{resource}/bulk", {"items": [{"id": id_}]})
        assert (response.status_code, response.json()["errors"][0]["field"]) == (400, "items[0].id")


def test_its_events_say_that_it_was_deleted(server: RunningServer, client: Client, ids: dict[str, str]) -> None:
    statement = "select type from events where plan_manager_id = $1 and data is null order by id"
    deleted = server.run(server.db.rows(str, statement, UUID(client.plan_manager_id)))
    assert deleted == ["team_member.deleted", "participant.deleted", "provider.deleted"]
    assert json.dumps(PERSON["email"]) not in client.get("/participants").text
