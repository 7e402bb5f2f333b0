"""The walk guarantee: every row that is there from a walk's start to its end is answered once, in ascending order."""

import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from typing import Any
from uuid import UUID

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from contract.world import LISTS, World, new_client
from plankeeper.http.routing import PREFIX
from support.client import Client
from support.importing import import_all
from support.server import RunningServer

few = settings(
    max_examples=12, deadline=None, derandomize=True, database=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)  # fmt: skip

# Ids near one another and at the ends, so that rows come and go before, at and behind the cursor.
ids = st.integers(min_value=1, max_value=40).map(lambda number: UUID(int=number << 100 | number))
changes = st.lists(st.tuples(st.sampled_from(["create", "delete"]), ids), max_size=6)


class People:
    """A plan manager's participants: those that there are, and all that there ever were."""

    def __init__(self, server: RunningServer, client: Client, first: set[UUID]) -> None:
        self._server, self._client = server, client
        self.there: set[str] = set()
        self.ever: set[str] = set()
        self.deleted: set[str] = set()
        self.create(first)

    def create(self, new: set[UUID]) -> None:
        rows = [{"id": str(ident), "first_name": "Row"} for ident in new]
        report = self._server.run(
            import_all(self._server, UUID(self._client.plan_manager_id), "participants", rows),
        )
        assert not report.errors
        self.there |= {str(ident) for ident in new}
        self.ever |= self.there

    def change(self, change: tuple[str, UUID]) -> None:
        kind, ident = change
        if kind == "create":
            self.create({ident})
            return
        status = self._client.delete(f"/participants/{ident}").status_code
        assert status == (200 if str(ident) in self.there else 404)
        self.there.discard(str(ident))
        self.deleted.add(str(ident))


@pytest.fixture(scope="module")
def make_client(server: RunningServer) -> Callable[[], Client]:
    return lambda: server.run(new_client(server))


def walk(client: Client, path: str, limit: int, cursor: str = "id") -> Iterator[list[Any]]:
    """The pages of a cursor walk, each checked against what its meta says."""
    after = "0"
    while after is not None:
        answer = client.get(path, after=after, limit=str(limit)).json()
        rows, meta = answer["data"], answer["pagination"]
        following = str(rows[-1][cursor]) if meta["has_more"] else None
        assert meta == {
            "limit": limit, "offset": 0, "has_more": meta["has_more"], "total": None, "next_cursor": following,
        }  # fmt: skip
        assert len(rows) == limit if meta["has_more"] else len(rows) <= limit
        yield rows
        after = following


@few
@given(first=st.sets(ids, max_size=12), limit=st.integers(1, 5), steps=st.lists(changes, max_size=5))
def test_a_walk_meets_every_surviving_row_once_whatever_comes_and_goes(
    server: RunningServer, make_client: Callable[[], Client], first: set[UUID], limit: int, steps: list[Any]
) -> None:
    client = make_client()
    with closing(client.http):
        people = People(server, client, first)
        walked: list[str] = []
        for page in walk(client, "/participants", limit):
            walked += [row["id"] for row in page]
            for change in steps.pop(0) if steps else []:
                people.change(change)
        survivors = {str(ident) for ident in first} - people.deleted
        assert walked == sorted(set(walked))
        assert survivors <= set(walked) <= people.ever


def test_a_walk_beside_writers_meets_every_surviving_row_once(
    server: RunningServer, make_client: Callable[[], Client]
) -> None:
    client = make_client()
    with closing(client.http):
        survivors = [client.made("/participants", {"first_name": f"{n}"})["id"] for n in range(40)]
        with coming_and_going(server, client):
            walks = [[row["id"] for page in walk(client, "/participants", 3) for row in page] for _ in range(3)]
    for walked in walks:
        assert walked == sorted(set(walked))
        assert set(survivors) <= set(walked)


@contextmanager
def coming_and_going(server: RunningServer, client: Client) -> Iterator[None]:
    """Meanwhile participants are made and deleted."""
    done = threading.Event()

    def work() -> None:
        beside = Client(server.url, client.key, client.plan_manager_id)
        with closing(beside.http):
            while not done.is_set():
                made = [beside.made("/participants", {})["id"] for _ in range(3)]
                for ident in made:
                    assert beside.delete(f"/participants/{ident}").status_code == 200

    with ThreadPoolExecutor(1) as pool:
        working = pool.submit(work)
        try:
            yield
        finally:
            done.set()
        working.result()


@few
@given(first=st.sets(ids, max_size=15), limit=st.integers(1, 6))
def test_offset_and_cursor_see_one_order(
    server: RunningServer, make_client: Callable[[], Client], first: set[UUID], limit: int
) -> None:
    client = make_client()
    with closing(client.http):
        People(server, client, first)
        expected = sorted(str(ident) for ident in first)
        assert [row["id"] for page in walk(client, "/participants", limit) for row in page] == expected
        for offset in range(0, len(expected) + limit, limit):
            answer = client.get("/participants", limit=str(limit), offset=str(offset)).json()
            assert [row["id"] for row in answer["data"]] == expected[offset : offset + limit]
            assert answer["pagination"] == {
                "limit": limit, "offset": offset, "has_more": offset + limit < len(expected),
                "total": len(expected), "next_cursor": None,
            }  # fmt: skip


@pytest.mark.parametrize("name", [name for name in LISTS if name != "GET /events"])
def test_every_list_has_one_order_by_offset_and_by_cursor(world: World, name: str) -> None:
    path = LISTS[name].path.removeprefix(PREFIX).format(**world.ids)
    cursor = "error_code" if name == "GET /error-catalogue" else "id"
    whole = world.client.get(path, limit="1000").json()
    values = [row[cursor] for row in whole["data"]]
    assert values == sorted(values)
    assert whole["pagination"]["total"] == len(values) > 0
    assert [row for page in walk(world.client, path, 7, cursor) for row in page] == whole["data"]
    assert world.client.get(path, limit="1000", after=str(values[-1])).json()["data"] == []
    assert world.client.get(path, limit="1", offset=str(len(values))).json()["data"] == []
