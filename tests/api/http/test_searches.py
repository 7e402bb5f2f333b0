"""Searches that match many records: their totals are limited, and few of a plan manager are in progress at a time."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.core import lists
from plankeeper.core.errors import DomainError
from plankeeper.http import search_slots
from plankeeper.resources.search import filters
from support.client import Client

LISTS: list[tuple[str, Callable[[int], dict[str, str]]]] = [
    ("/participants", lambda n: {"first_name": "Broad", "participant_number": f"43000000{n}"}),
    ("/providers", lambda n: {"entity_name": f"Broad {n}", "abn": "51 824 753 556", "email": f"p{n}@example.com"}),
]


@pytest.mark.parametrize("path, body", LISTS)
def test_the_total_of_a_search_is_limited(
    api: Client, monkeypatch: pytest.MonkeyPatch, path: str, body: Callable[[int], dict[str, str]]
) -> None:
    monkeypatch.setattr(lists, "MAX_TOTAL", 3)
    for number in range(3):
        assert api.post(path, body(number)).status_code == 200
    exact = {"limit": 1, "offset": 0, "has_more": True, "total": 3, "next_cursor": None}
    for search in ("q=broad", "q=broad&sort=-updated_at"):
        assert api.get(f"{path}?{search}&limit=1").json()["pagination"] == exact
    assert api.post(path, body(3)).status_code == 200
    for search in ("q=broad", "q=broad&sort=-updated_at", "q=broad+b"):
        assert api.get(f"{path}?{search}&limit=1").json()["pagination"] == exact | {"total_is_limited": True}
    assert api.get(f"{path}?limit=1").json()["pagination"] == exact | {"total": 4}
    with_cursor = api.get(f"{path}?q=broad&limit=1&after=0").json()["pagination"]
    assert with_cursor["total"] is None
    assert "total_is_limited" not in with_cursor


def test_a_worker_remembers_for_a_moment_that_a_search_has_too_many_matches(
    api: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(lists, "MAX_TOTAL", 1)
    ids = [api.post("/participants", {"first_name": "Broad"}).json()["id"] for _ in range(2)]
    assert api.get("/participants?q=broad").json()["pagination"]["total_is_limited"]
    assert api.delete(f"/participants/{ids[0]}").status_code == 200
    assert api.get("/participants?q=broad").json()["pagination"]["total_is_limited"]
    monkeypatch.setattr(filters, "_exceeding", dict.fromkeys(filters._exceeding, 0.0))  # noqa: SLF001 - time passes
    assert "total_is_limited" not in api.get("/participants?q=broad").json()["pagination"]


@asynccontextmanager
async def searching(plan_manager_id: UUID, count: int) -> AsyncGenerator[None]:
    """So many searches in progress."""
    async with asyncio.TaskGroup() as group:
        is_over, started = asyncio.Event(), asyncio.Semaphore(0)

        async def search() -> None:
            async with search_slots.search_slot(plan_manager_id):
                started.release()
                await is_over.wait()

        for _ in range(count):
            group.create_task(search())
            await started.acquire()
        yield
        is_over.set()


async def test_a_third_search_waits_until_one_ends() -> None:
    plan_manager_id = uuid7()
    ended: list[int] = []

    async def search(number: int) -> None:
        async with search_slots.search_slot(plan_manager_id):
            ended.append(number)

    async with searching(plan_manager_id, search_slots.MAX_SEARCHES):
        third = asyncio.create_task(search(3))
        async with search_slots.search_slot(uuid7()):  # another plan manager's
            assert not ended
    await third
    assert ended == [3]


async def test_a_search_is_rejected_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_slots, "MAX_WAIT", 0.01)
    plan_manager_id = uuid7()
    async with searching(plan_manager_id, search_slots.MAX_SEARCHES):
        with pytest.raises(DomainError) as rejected:
            async with search_slots.search_slot(plan_manager_id):
                pass
    assert (rejected.value.status, rejected.value.retry_after) == (503, 5)
    async with search_slots.search_slot(plan_manager_id):
        pass


async def test_few_searches_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_slots, "MAX_WAITING", 0)
    monkeypatch.setattr(search_slots, "MAX_WAIT", 600)
    plan_manager_id = uuid7()
    async with searching(plan_manager_id, search_slots.MAX_SEARCHES):
        with pytest.raises(DomainError):
            async with search_slots.search_slot(plan_manager_id):
                pass


def test_only_searches_are_rejected(api: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(search_slots, "MAX_SEARCHES", 0)
    monkeypatch.setattr(search_slots, "MAX_WAIT", 0.01)
    rejected: list[httpx.Response] = [api.get(f"/{each}?q=anyone") for each in ("participants", "providers")]
    for each in rejected:
        assert (each.status_code, each.json()["error"], each.headers["retry-after"]) == (
            503,
            "service_unavailable",
            "5",
        )
        assert each.json()["detail"] == "Too many searches of this plan manager are in progress."
    assert api.get("/participants").status_code == 200
