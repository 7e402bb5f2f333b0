"""Reading all pages by cursor: a row that exists from the first page to the last occurs once, in ascending order."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.operations import LISTS
from contract.test_tenancy import EMPTY_AT_FIRST, WITHOUT_TOTAL
from plankeeper.http.routing import PREFIX
from support.client import Client
from support.factories import Tenant, create_client
from support.importing import import_records
from support.server import RunningServer

few_examples = settings(
    max_examples=12, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip

# Ids near one another and at the ends, so that rows come and go before, at and behind the cursor.
ids = st.integers(min_value=1, max_value=40).map(lambda number: UUID(int=number << 100 | number))
operations = st.lists(st.tuples(st.sampled_from(["create", "delete"]), ids), max_size=6)


class ParticipantSet:
    """A plan manager's participants: those that there are, and all that there ever were."""

    def __init__(self, server: RunningServer, client: Client, first: set[UUID]) -> None:
        self._server, self._client = server, client
        self.present: set[str] = set()
        self.all_ids: set[str] = set()
        self.deleted: set[str] = set()
        self.create(first)

    def create(self, new: set[UUID]) -> None:
        rows = [{"id": str(ident), "first_name": "Row"} for ident in new]
        report = self._server.run(
            import_records(self._server, UUID(self._client.plan_manager_id), "participants", rows),
        )
        assert not report.errors
        self.present |= {str(ident) for ident in new}
        self.all_ids |= self.present

    def change(self, change: tuple[str, UUID]) -> None:
        kind, ident = change
        if kind == "create":
            self.create({ident})
            return
        status = self._client.delete(f"/participants/{ident}").status_code
        assert status == (200 if str(ident) in self.present else 404)
        self.present.discard(str(ident))
        self.deleted.add(str(ident))


@pytest.fixture(scope="module")
def make_client(server: RunningServer) -> Callable[[], Client]:
    return lambda: server.run(create_client(server))


def cursor_pages(client: Client, path: str, limit: int, cursor: str = "id") -> Iterator[list[Any]]:
    """The pages of a list by cursor, each compared with its `pagination`."""
    after = "0"
    while after is not None:
        body = client.get(path, after=after, limit=str(limit)).json()
        rows, meta = body["data"], body["pagination"]
        next_cursor = str(rows[-1][cursor]) if meta["has_more"] else None
        assert meta == {
            "limit": limit, "offset": 0, "has_more": meta["has_more"], "total": None, "next_cursor": next_cursor,
        }  # fmt: skip
        assert len(rows) == limit if meta["has_more"] else len(rows) <= limit
        yield rows
        after = next_cursor


@few_examples
@given(first=st.sets(ids, max_size=12), limit=st.integers(1, 5), steps=st.lists(operations, max_size=5))
def test_a_cursor_walk_returns_every_surviving_row_once_despite_changes(
    server: RunningServer, make_client: Callable[[], Client], first: set[UUID], limit: int, steps: list[Any]
) -> None:
    client = make_client()
    with closing(client.http):
        people = ParticipantSet(server, client, first)
        walked: list[str] = []
        for page in cursor_pages(client, "/participants", limit):
            walked += [row["id"] for row in page]
            for change in steps.pop(0) if steps else []:
                people.change(change)
        survivors = {str(ident) for ident in first} - people.deleted
        assert walked == sorted(set(walked))
        assert survivors <= set(walked) <= people.all_ids


def test_a_cursor_walk_with_concurrent_writers_returns_every_surviving_row_once(
    server: RunningServer, make_client: Callable[[], Client]
) -> None:
    client = make_client()
    with closing(client.http):
        survivors = [client.create("/participants", {"first_name": f"{n}"})["id"] for n in range(40)]
        with concurrent_writes(server, client):
            walks = [[row["id"] for page in cursor_pages(client, "/participants", 3) for row in page] for _ in range(3)]
    for walked in walks:
        assert walked == sorted(set(walked))
        assert set(survivors) <= set(walked)


@contextmanager
def concurrent_writes(server: RunningServer, client: Client) -> Iterator[None]:
    """Participants are created and deleted during the block."""
    done = threading.Event()

    def work() -> None:
        own_client = Client(server.url, client.key, client.plan_manager_id)
        with closing(own_client.http):
            while not done.is_set():
                made = [own_client.create("/participants", {})["id"] for _ in range(3)]
                for ident in made:
                    assert own_client.delete(f"/participants/{ident}").status_code == 200

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            yield
        finally:
            done.set()
        working.result()


@few_examples
@given(first=st.sets(ids, max_size=15), limit=st.integers(1, 6))
def test_offset_and_cursor_have_the_same_order(
    server: RunningServer, make_client: Callable[[], Client], first: set[UUID], limit: int
) -> None:
    client = make_client()
    with closing(client.http):
        ParticipantSet(server, client, first)
        expected = sorted(str(ident) for ident in first)
        assert [row["id"] for page in cursor_pages(client, "/participants", limit) for row in page] == expected
        for offset in range(0, len(expected) + limit, limit):
            response = client.get("/participants", limit=str(limit), offset=str(offset)).json()
            assert [row["id"] for row in response["data"]] == expected[offset : offset + limit]
            assert response["pagination"] == {
                "limit": limit, "offset": offset, "has_more": offset + limit < len(expected),
                "total": len(expected), "next_cursor": None,
            }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in LISTS if name not in WITHOUT_TOTAL | EMPTY_AT_FIRST])
def test_every_list_has_the_same_order_by_offset_and_cursor(tenant: Tenant, name: str) -> None:
    # The cursors of the former are opaque, and there is no catalogue: tests/api has tests of their own.
    if name in ("GET /team-members", "GET /support-items"):
        return
    path = LISTS[name].path.removeprefix(PREFIX).format(**tenant.ids)
    cursor = "error_code" if name == "GET /error-catalogue" else "id"
    whole = tenant.client.get(path, limit="1000").json()
    values = [row[cursor] for row in whole["data"]]
    assert values == sorted(values)
    assert whole["pagination"]["total"] == len(values) > 0
    assert [row for page in cursor_pages(tenant.client, path, 7, cursor) for row in page] == whole["data"]
    assert tenant.client.get(path, limit="1000", after=str(values[-1])).json()["data"] == []
    assert tenant.client.get(path, limit="1", offset=str(len(values))).json()["data"] == []
