"""The log of requests: newest first, page by page, filtered; and nobody else's."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from console.people import Browser, Person
from plankeeper.api_keys import store as api_key_store
from plankeeper.api_keys.format import hash_key
from plankeeper.http.schemas import to_json
from plankeeper.request_log import store
from plankeeper.request_log.schemas import MAX_KEPT_REQUESTS, RequestBatchInsert, LoggedRequest
from support.client import Client
from support.server import RunningServer, wait_until

REQUESTS = "/console/requests"
NOW = datetime.now(UTC)

Write = Callable[..., None]


@pytest.fixture
def write(server: RunningServer, plan_manager_id: UUID) -> Write:
    """Writes batches of requests: each is a list of so many, numbered on; the last is the newest."""

    def work(*sizes: int, owner: UUID | None = None, **more: object) -> None:
        number, batches = 0, list[RequestBatchInsert]()
        for size in sizes:
            requests = list[LoggedRequest]()
            for _ in range(size):
                number += 1
                requests.append(request(number, **more))
            batches.append(RequestBatchInsert(owner or plan_manager_id, uuid7(), NOW, size, to_json(requests)))

        async def insert() -> None:
            async with server.db.transaction() as tx:
                await store.insert(tx, batches)

        server.run(insert())

    return work


def request(number: int, **more: object) -> LoggedRequest:
    at = (NOW - timedelta(hours=1)).timestamp() + number / 1000
    made = LoggedRequest(at, "key", "GET", "/a/{id}", f"/a/{number}", 200, 1.5, f"r-{number}")
    for name, value in more.items():
        setattr(made, name, value)
    return made


def ids_on(page: str) -> list[str]:
    return re.findall(r"<code>(r-\d+)</code>", page)


def walked(browser: Browser, path: str) -> list[list[str]]:
    """The request ids on each page, from one to the next older."""
    pages = list[list[str]]()
    following: str | None = path
    while following:
        page = browser.get(following)
        assert page.status_code == 200
        pages.append(ids_on(page.text))
        link = re.search(r'href="([^"]+)">Older', page.text)
        following = unescape(link[1]) if link else None
    return pages


def numbered(*numbers: int) -> list[str]:
    return [f"r-{each}" for each in numbers]


def test_a_request_shows_within_moments_of_its_answer(
    server: RunningServer, owner: Browser, new_key: Callable[..., str], plan_manager_id: UUID
) -> None:
    assert "No API key has asked for anything lately" in owner.get(REQUESTS).text
    secret = new_key(plan_manager_id)
    client = Client(server.url, secret, plan_manager_id)
    answer = client.get(f"/participants/{uuid7()}", view="full")
    client.http.close()
    page = wait_until(lambda: (found := owner.get(REQUESTS).text).count("<tr>") > 1 and found, 20)
    path = str(answer.request.url.path)
    for told in (f"GET {path}</code>", ">404<", f"test <code>…{secret[-4:]}<", answer.headers["x-request-id"]):
        assert told in page, told
    assert ("view=full" in page, secret in page) == (False, False)


def test_the_newest_come_first_a_hundred_a_page_and_each_once(owner: Browser, write: Write) -> None:
    write(70, 1, 100, 1, 79)
    assert walked(owner, REQUESTS) == [
        numbered(*range(251, 151, -1)), numbered(*range(151, 51, -1)), numbered(*range(51, 0, -1)),
    ]  # fmt: skip


def test_many_rows_of_few_requests_are_walked_too(owner: Browser, write: Write) -> None:
    write(*[1] * 650)
    assert [len(each) for each in walked(owner, REQUESTS)] == [100] * 6 + [50]
    assert walked(owner, f"{REQUESTS}?text=/a/3") == [
        numbered(*(each for each in range(650, 0, -1) if str(each).startswith("3")))[at : at + 100] for at in (0, 100)
    ]


def test_of_more_than_are_promised_the_newest_are_shown(owner: Browser, write: Write) -> None:
    write(600, MAX_KEPT_REQUESTS)
    assert owner.get(f"{REQUESTS}?request_id=r-600").text.count("<tr>") == 0
    assert ids_on(owner.get(f"{REQUESTS}?request_id=r-601").text) == ["r-601"]
    sizes = [len(each) for each in walked(owner, REQUESTS)]
    assert (len(sizes), set(sizes)) == (MAX_KEPT_REQUESTS // 100 + 6, {100})


def test_filters_let_through_what_they_say_and_stay_in_the_links(
    server: RunningServer, owner: Browser, write: Write, new_key: Callable[..., str], plan_manager_id: UUID
) -> None:
    key = server.run(api_key_store.get_by_hash(server.db, hash_key(new_key(plan_manager_id))))
    assert key
    write(120, key_id=str(key.id), status=404, method="PUT")
    write(3, status=503)
    write(2, status=201, path="/Other/way")
    found = {
        query: sum(map(len, walked(owner, f"{REQUESTS}?{query}")))
        for query in (
            "", f"key={key.id}", "status=4xx", "status=404", "status=405", "status=5XX", "status=2xx", "status=abc",
            "text=put", "text=PUT+/a/{id}", "text=other", "text=put+other", "request_id=r-1", "request_id=r",
            f"status=4xx&key={key.id}&text=put&request_id=r-120", f"key={uuid7()}",
        )
    }  # fmt: skip
    assert list(found.values()) == [125, 120, 120, 120, 0, 3, 2, 0, 120, 120, 2, 0, 3, 0, 1, 0]
    page = owner.get(f"{REQUESTS}?status=4xx&text=put").text
    assert re.search(r'href="/console/requests\?status=4xx&amp;text=put&amp;before=[0-9a-f.-]+">Older', page)
    assert "No request is like that" in owner.get(f"{REQUESTS}?text=zzz").text
    for odd in ("before=x", "before=x.y", f"before={uuid7()}.99999999", "before=.", "status=%00"):
        assert owner.get(f"{REQUESTS}?{odd}").status_code in (200, 400)


def test_nobody_elses_requests_are_shown(
    owner: Browser, write: Write, new_plan_manager: Callable[[], UUID], server: RunningServer
) -> None:
    foreign = new_plan_manager()
    write(5, owner=foreign)
    (theirs,) = server.run(store.list_latest(server.db, foreign, None, 10))
    assert walked(owner, REQUESTS) == [[]]
    assert ids_on(owner.get(f"{REQUESTS}?before={theirs.id}.3").text) == []


def test_a_viewer_sees_requests(new_browser: Callable[..., Browser], new_person: Callable[..., Person]) -> None:
    page = new_browser(new_person("viewer")).get(REQUESTS)
    assert (page.status_code, "/console/settings/keys" in page.text) == (200, False)


def test_what_clients_send_is_text(owner: Browser, write: Write) -> None:
    write(1, path="/<script>alert(1)</script>", method="<b>")
    page = owner.get(f"{REQUESTS}?text=%3Cscript%3E").text
    assert ("<script>alert" in page, "<b>" in page, "&lt;script&gt;alert(1)" in page) == (False, False, True)
