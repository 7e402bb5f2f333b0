"""The log of requests: newest first, page by page, filtered; and nobody else's."""

import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.accounts.tokens import hash_token
from plankeeper.api_keys import store as api_key_store
from plankeeper.http.json import to_json
from plankeeper.request_log import store
from plankeeper.request_log.schemas import MAX_KEPT_REQUESTS, LoggedRequest, RequestBatchInsert
from support.client import Client
from support.console import Account, Browser
from support.server import RunningServer, wait_until

PAGE = "/console/requests"
NOW = datetime.now(UTC)

WriteRequests = Callable[..., None]


@pytest.fixture
def write_requests(server: RunningServer, plan_manager_id: UUID) -> WriteRequests:
    """Writes batches of requests: each is a list of so many, numbered on; the last is the newest."""

    def write_batches(*sizes: int, owner: UUID | None = None, **more: object) -> None:
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

    return write_batches


def request(number: int, **more: object) -> LoggedRequest:
    at = (NOW - timedelta(hours=1)).timestamp() + number / 1000
    made = LoggedRequest(at, "key", "GET", "/a/{id}", f"/a/{number}", 200, 1.5, f"r-{number}")
    for name, value in more.items():
        setattr(made, name, value)
    return made


def listed_ids(page: str) -> list[str]:
    return re.findall(r"<code>(r-\d+)</code>", page)


def walk_pages(browser: Browser, path: str) -> list[list[str]]:
    """The request ids on each page, from one to the next older."""
    pages = list[list[str]]()
    next_path: str | None = path
    while next_path:
        page = browser.get(next_path)
        assert page.status_code == 200
        pages.append(listed_ids(page.text))
        link = re.search(r'href="([^"]+)">Older', page.text)
        next_path = unescape(link[1]) if link else None
    return pages


def request_ids(*numbers: int) -> list[str]:
    return [f"r-{each}" for each in numbers]


def test_a_request_is_listed_shortly_after_its_response(
    server: RunningServer, owner: Browser, new_key: Callable[..., str], plan_manager_id: UUID
) -> None:
    assert "There are no recent API requests." in owner.get(PAGE).text
    secret = new_key(plan_manager_id)
    client = Client(server.url, secret, plan_manager_id)
    response = client.get(f"/participants/{uuid7()}", view="full")
    client.http.close()
    page = wait_until(lambda: (found := owner.get(PAGE).text).count("<tr>") > 1 and found)
    path = str(response.request.url.path)
    for reported in (f"GET {path}</code>", ">404<", f"test <code>…{secret[-4:]}<", response.headers["x-request-id"]):
        assert reported in page, reported
    assert ("view=full" in page, secret in page) == (False, False)


def test_requests_are_listed_newest_first_a_hundred_a_page_without_repeats(
    owner: Browser, write_requests: WriteRequests
) -> None:
    write_requests(70, 1, 100, 1, 79)
    assert walk_pages(owner, PAGE) == [
        request_ids(*range(251, 151, -1)), request_ids(*range(151, 51, -1)), request_ids(*range(51, 0, -1)),
    ]  # fmt: skip


def test_many_small_batches_are_listed_completely(owner: Browser, write_requests: WriteRequests) -> None:
    write_requests(*[1] * 650)
    assert [len(each) for each in walk_pages(owner, PAGE)] == [100] * 6 + [50]
    assert walk_pages(owner, f"{PAGE}?text=/a/3") == [
        request_ids(*(each for each in range(650, 0, -1) if str(each).startswith("3")))[at : at + 100]
        for at in (0, 100)
    ]


def test_only_the_newest_requests_within_the_limit_are_searched(owner: Browser, write_requests: WriteRequests) -> None:
    write_requests(600, MAX_KEPT_REQUESTS)
    assert owner.get(f"{PAGE}?request_id=r-600").text.count("<tr>") == 0
    assert listed_ids(owner.get(f"{PAGE}?request_id=r-601").text) == ["r-601"]


def test_paging_reaches_the_requests_beyond_the_limit_of_one_search(
    owner: Browser, write_requests: WriteRequests, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.console.pages.request_log.MAX_KEPT_REQUESTS", 1000)
    write_requests(600, 1000)
    assert owner.get(f"{PAGE}?request_id=r-600").text.count("<tr>") == 0
    sizes = [len(each) for each in walk_pages(owner, PAGE)]
    assert (len(sizes), set(sizes)) == (16, {100})


def test_filters_apply_and_stay_in_the_links(
    server: RunningServer,
    owner: Browser,
    write_requests: WriteRequests,
    new_key: Callable[..., str],
    plan_manager_id: UUID,
) -> None:
    key = server.run(api_key_store.get_by_hash(server.db, hash_token(new_key(plan_manager_id))))
    assert key
    write_requests(120, key_id=str(key.id), status=404, method="PUT")
    write_requests(3, status=503)
    write_requests(2, status=201, path="/Other/way")
    found = {
        query: sum(map(len, walk_pages(owner, f"{PAGE}?{query}")))
        for query in (
            "", f"key={key.id}", "status=4xx", "status=404", "status=405", "status=5XX", "status=2xx", "status=abc",
            "text=put", "text=PUT+/a/{id}", "text=other", "text=put+other", "request_id=r-1", "request_id=r",
            f"status=4xx&key={key.id}&text=put&request_id=r-120", f"key={uuid7()}",
        )
    }  # fmt: skip
    assert list(found.values()) == [125, 120, 120, 120, 0, 3, 2, 0, 120, 120, 2, 0, 3, 0, 1, 0]
    page = owner.get(f"{PAGE}?status=4xx&text=put").text
    assert re.search(r'href="/console/requests\?status=4xx&amp;text=put&amp;before=[0-9a-f.-]+">Older', page)
    assert "No matches in the last" in owner.get(f"{PAGE}?text=zzz").text
    for odd in ("before=x", "before=x.y", f"before={uuid7()}.99999999", "before=.", "status=%00"):
        assert owner.get(f"{PAGE}?{odd}").status_code in (200, 400)


def test_requests_of_other_plan_managers_are_not_shown(
    owner: Browser, write_requests: WriteRequests, new_plan_manager: Callable[[], UUID], server: RunningServer
) -> None:
    foreign = new_plan_manager()
    write_requests(5, owner=foreign)
    (theirs,) = server.run(store.list_latest(server.db, foreign, None, 10))
    assert walk_pages(owner, PAGE) == [[]]
    assert listed_ids(owner.get(f"{PAGE}?before={theirs.id}.3").text) == []


def test_a_viewer_sees_requests(new_browser: Callable[..., Browser], new_account: Callable[..., Account]) -> None:
    page = new_browser(new_account("viewer")).get(PAGE)
    assert (page.status_code, "/console/settings/keys" in page.text) == (200, False)


def test_values_from_clients_are_shown_as_text(owner: Browser, write_requests: WriteRequests) -> None:
    write_requests(1, path="/<script>alert(1)</script>", method="<b>")
    page = owner.get(f"{PAGE}?text=%3Cscript%3E").text
    assert ("<script>alert" in page, "<b>" in page, "&lt;script&gt;alert(1)" in page) == (False, False, True)


def test_chips_name_the_filters_and_remove_them(owner: Browser) -> None:
    query = {"key": str(uuid7()), "status": "4xx", "text": "PUT <a>"}
    page = owner.get(PAGE, params=query).text
    found = re.findall(r'<li><a href="([^"]+)"><span class="unseen">Remove the filter </span>([^<]+) <span', page)
    assert [unescape(text) for _, text in found] == [
        "API key: deleted key", "Status: 4xx", "Method or path: PUT <a>",
    ]  # fmt: skip
    assert unescape(found[1][0]) == f"{PAGE}?key={query['key']}&text=PUT+%3Ca%3E"
    assert 'class="chips"' not in owner.get(PAGE).text
