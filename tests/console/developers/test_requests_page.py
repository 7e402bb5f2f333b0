"""The log of requests: newest first, page by page, filtered; and none of other plan managers."""

import csv
import io
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from html import unescape
from uuid import UUID
from zoneinfo import ZoneInfo

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import store as api_key_store
from plankeeper.access.request_log import store
from plankeeper.access.request_log.schemas import (
    MAX_KEPT_REQUESTS,
    LoggedRequest,
    MinuteCount,
    RequestBatchInsert,
)
from plankeeper.access.tokens import hash_token
from plankeeper.core.json import to_json
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


def page_link(page: str, rel: str) -> str | None:
    found = re.search(rf'href="([^"]+)" rel="{rel}"', page)
    return unescape(found[1]) if found else None


def summary(page: str) -> str:
    return unescape("".join(re.findall(r'class="list-summary">([^<]*)<', page)))


def walk_pages(browser: Browser, path: str) -> list[list[str]]:
    """The request ids on each page of 100, from one to the next older."""
    pages = list[list[str]]()
    next_path: str | None = f"{path}{'&' if '?' in path else '?'}size=100"
    while next_path:
        page = browser.get(next_path)
        assert page.status_code == 200
        pages.append(listed_ids(page.text))
        next_path = page_link(page.text, "next")
    return pages


def read_csv(browser: Browser, path: str) -> list[dict[str, str]]:
    response = browser.get(path)
    assert (response.status_code, response.headers["content-type"]) == (200, "text/csv; charset=utf-8")
    return list(csv.DictReader(io.StringIO(response.content.decode("utf-8-sig"), newline="")))


def request_ids(*numbers: int) -> list[str]:
    return [f"r-{each}" for each in numbers]


def test_a_request_is_listed_shortly_after_its_response(
    server: RunningServer, owner: Browser, new_key: Callable[..., str], plan_manager_id: UUID
) -> None:
    assert "There are no recent API requests." in owner.get(PAGE).text
    secret = new_key(plan_manager_id)
    client = Client(server.url, secret, plan_manager_id)
    response = client.get(f"/participants/{uuid7()}")
    client.http.close()
    page = wait_until(lambda: (found := owner.get(PAGE).text).count("<tr>") > 1 and found)
    path = str(response.request.url.path)
    for reported in (f"GET {path}</code>", ">404<", f">test …{secret[-4:]}<", response.headers["x-request-id"]):
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
    monkeypatch.setattr("plankeeper.console.developers.requests.MAX_KEPT_REQUESTS", 1000)
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
            "", f"key={key.id}", "status=4xx", "status=404", "status=405", "status=5XX", "status=2xx",
            "text=put", "text=PUT+/a/{id}", "text=other", "text=put+other", "request_id=r-1", "request_id=r",
            f"status=4xx&key={key.id}&text=put&request_id=r-120", f"key={uuid7()}",
        )
    }  # fmt: skip
    assert list(found.values()) == [125, 120, 120, 120, 0, 3, 2, 120, 120, 2, 0, 3, 0, 1, 0]
    page = owner.get(f"{PAGE}?status=4xx&text=put").text
    assert re.fullmatch(r"/console/requests\?text=put&status=4xx&after=[0-9a-f.-]+", page_link(page, "next") or "")
    assert "No requests match." in owner.get(f"{PAGE}?text=zzz").text
    for name in ("after", "before"):
        for odd in ("x", "x.y", f"{uuid7()}.99999999", "."):
            assert owner.get(f"{PAGE}?{name}={odd}").status_code == 200
    for wrong in ("status=abc", "status=9xx", "time=2026", "time=99999999T99Z", "from=x", "date=ever"):
        response = owner.get(f"{PAGE}?{wrong}")
        assert (response.status_code, "There is a problem" in response.text) == (422, True)
        assert listed_ids(response.text) == []
    assert owner.get(f"{PAGE}?status=%00").status_code in (400, 422)


def test_requests_of_other_plan_managers_are_not_shown(
    owner: Browser, write_requests: WriteRequests, new_plan_manager: Callable[[], UUID], server: RunningServer
) -> None:
    foreign = new_plan_manager()
    write_requests(5, owner=foreign)
    (theirs,) = server.run(store.list_latest(server.db, foreign, None, 10))
    assert walk_pages(owner, PAGE) == [[]]
    for query in (f"before={theirs.id}.3", f"after={theirs.id}.3", "text=/a", "date=last_7_days"):
        page = owner.get(f"{PAGE}?{query}").text
        assert (listed_ids(page), summary(page)) == ([], "")
    write_requests(2)
    assert summary(owner.get(PAGE).text) == "2 requests"
    assert len(read_csv(owner, f"{PAGE}.csv")) == 2


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
        "Method or path: PUT <a>", "API key: deleted key", "Status: Rejected (4xx)",
    ]  # fmt: skip
    assert unescape(found[2][0]) == f"{PAGE}?text=PUT+%3Ca%3E&key={query['key']}"
    assert 'class="chips"' not in owner.get(PAGE).text


def test_pages_lead_back_to_the_pages_before_them(owner: Browser, write_requests: WriteRequests) -> None:
    write_requests(30, 1, 49, 60, 5)
    first = owner.get(f"{PAGE}?text=/a&size=50").text
    second = owner.get(page_link(first, "next") or "").text
    last = owner.get(page_link(second, "next") or "").text
    assert [listed_ids(each) for each in (first, second, last)] == [
        request_ids(*range(145, 95, -1)), request_ids(*range(95, 45, -1)), request_ids(*range(45, 0, -1)),
    ]  # fmt: skip
    assert (page_link(first, "prev"), page_link(last, "next")) == (None, None)
    back = owner.get(page_link(last, "prev") or "").text
    assert (listed_ids(back), page_link(back, "next") is not None) == (listed_ids(second), True)
    start = owner.get(page_link(back, "prev") or "").text
    assert (listed_ids(start), page_link(start, "prev")) == (listed_ids(first), None)
    assert {summary(each) for each in (first, second, last, back, start)} == {"145 requests"}


def test_more_requests_than_are_counted_are_said_to_be_more(owner: Browser, write_requests: WriteRequests) -> None:
    write_requests(MAX_KEPT_REQUESTS, 1)  # the other way round, the older batch might be deleted
    assert summary(owner.get(PAGE).text) == "More than 10,000 requests"


def test_the_file_has_the_rows_of_the_list(owner: Browser, write_requests: WriteRequests) -> None:
    write_requests(300, 260, status=404, error_code="not_found", method="=PUT")
    write_requests(5)
    page = owner.get(f"{PAGE}?status=4xx&text=put&size=100").text
    [link] = re.findall(r'href="([^"]+)"><span class="long">Download </span>CSV', page)
    assert unescape(link) == f"{PAGE}.csv?text=put&status=4xx&size=100"
    rows = read_csv(owner, unescape(link))
    listed = walk_pages(owner, f"{PAGE}?status=4xx&text=put")
    assert [each["Request ID"] for each in rows] == [each for ids in listed for each in ids]
    assert {name: rows[0][name] for name in ("Request", "Status", "Duration", "API key")} == {
        "Request": "'=PUT /a/560", "Status": "404 not_found", "Duration": "1.5 ms", "API key": "deleted key",
    }  # fmt: skip
    at = NOW - timedelta(hours=1) + timedelta(milliseconds=560)
    local = datetime.fromisoformat(rows[0]["Time"]).replace(tzinfo=ZoneInfo("Australia/Sydney"))
    assert (len(rows[0]["Time"]), local) == (19, at.replace(microsecond=0))
    assert owner.get(f"{PAGE}.csv?status=odd").status_code == 400


def test_days_minutes_and_hours_are_filters(owner: Browser, write_requests: WriteRequests) -> None:
    minute = datetime(2026, 11, 20, 13, 30, tzinfo=UTC)  # 21 November, 12:30 am in Sydney
    for seconds in (-1, 0, 59, 60, 1800):
        at = minute + timedelta(seconds=seconds)
        write_requests(1, timestamp=at.timestamp(), request_id=f"r-{seconds + 1}")
    for query, found in {
        "time=20261120T1330Z": ["r-60", "r-1"],
        "time=20261120T13Z": ["r-61", "r-60", "r-1", "r-0"],
        "from=20/11/2026&to=20/11/2026": [],
        "from=21/11/2026&to=21/11/2026": ["r-1801", "r-61", "r-60", "r-1", "r-0"],
        "to=2026-11-20": [],
        "time=20261120T1330Z&text=nothing": [],
    }.items():
        page = owner.get(f"{PAGE}?{query}").text
        assert listed_ids(page) == found, query
        assert [each["Request ID"] for each in read_csv(owner, f"{PAGE}.csv?{query}")] == found
    page = owner.get(f"{PAGE}?time=20261120T1330Z").text
    assert "</span>Time: minute from 21 Nov 2026, 12:30 am <span" in page
    assert '<input type="hidden" id="time" name="time" value="20261120T1330Z">' in page


def test_bars_of_the_charts_lead_to_the_requests_of_their_time(
    server: RunningServer, owner: Browser, write_requests: WriteRequests, plan_manager_id: UUID
) -> None:
    minute = (datetime.now(UTC) - timedelta(minutes=10)).replace(second=0, microsecond=0)
    write_requests(3, timestamp=minute.timestamp() + 20)
    write_requests(2, timestamp=minute.timestamp() - 3600)

    async def insert() -> None:
        async with server.db.transaction() as tx:
            await store.add_minutes(tx, [MinuteCount(plan_manager_id, minute, 3, 1, 0)])

    server.run(insert())
    links = set(re.findall(r'<a href="(\?time=[^"]+)"', owner.get(PAGE).text))
    assert links == {f"?time={minute:%Y%m%dT%H%MZ}", f"?time={minute:%Y%m%dT%HZ}"}
    for link in links:
        page = owner.get(PAGE + link).text
        assert (sorted(listed_ids(page)), 'class="bars"' in page) == (["r-1", "r-2", "r-3"], True)
    assert 'class="bars"' not in owner.get(f"{PAGE}?status=4xx").text


def test_views_of_requests_are_saved(owner: Browser) -> None:
    view = {"list": "requests", "query": "status=5xx&date=today", "name": "Failures", "is_shared": "true"}
    response = owner.submit("/console/views", view)
    assert (response.status_code, response.headers["location"]) == (303, f"{PAGE}?status=5xx&date=today")
    assert ">Failures</a>" in owner.get(PAGE).text
    settings = {"list": "requests", "columns": ["status"], "density": "comfortable"}
    assert owner.submit("/console/list-settings", settings).headers["location"] == PAGE
