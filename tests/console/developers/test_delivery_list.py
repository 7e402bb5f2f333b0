"""The list of an endpoint's deliveries: filters, pages, its file, the hours of the chart, and whose it is."""

import csv
import io
import re
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.core.json import to_json
from plankeeper.webhooks import attempts, delivery_store, endpoint_store
from plankeeper.webhooks.delivery_store import DeliveryFilter
from plankeeper.webhooks.schemas import AttemptHour, WebhookEndpointListQuery
from support.console import Account, Browser, main_text
from support.plans import ExplainingExecutor, plan_nodes
from support.server import RunningServer

PAGE = "/console/settings/webhooks"
NOW = datetime.now(UTC).replace(microsecond=0)
HOUR = NOW.replace(minute=0, second=0) - timedelta(hours=2)
INSERT = """
    insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
        attempts, next_attempt_at, created_at)
    values ($1, $2, $3, $4, $5, $6, $7::text::jsonb, $8, $9)
"""


def create_endpoint(server: RunningServer, browser: Browser, plan_manager_id: UUID) -> UUID:
    """A new endpoint that gets no events."""
    values = {"url": f"https://example.com/{uuid7()}", "event_types": ["note_type.deleted"], "payload": "thin"}
    assert browser.submit(PAGE, values).status_code == 200
    found = server.run(endpoint_store.list_page(server.db, plan_manager_id, WebhookEndpointListQuery()))
    return found[-1].id


@pytest.fixture
def endpoint_id(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> Iterator[UUID]:
    yield create_endpoint(server, owner, plan_manager_id)
    server.run(server.db.execute("delete from webhook_endpoints where plan_manager_id = $1", plan_manager_id))


def attempt(at: datetime, status: int | None, error: str | None = None) -> dict[str, Any]:
    return {"at": at.isoformat(), "status_code": status, "error": error, "duration_ms": 12}


@pytest.fixture
def add(server: RunningServer, plan_manager_id: UUID, endpoint_id: UUID) -> Callable[..., UUID]:
    """Add a delivery of the endpoint: its id."""

    def add(
        event_type: str, status: str, created_at: datetime, *attempts: dict[str, Any], next_at: datetime | None = None
    ) -> UUID:
        id_ = UUID(int=uuid7_lower_bound(created_at).int + (1 << 80) | uuid7().int & ((1 << 80) - 1))
        values = (event_type, status, to_json(attempts), next_at, created_at)
        server.run(server.db.execute(INSERT, plan_manager_id, id_, endpoint_id, uuid7(), *values))
        return id_

    return add


@pytest.fixture
def three(add: Callable[..., UUID]) -> list[UUID]:
    """A delivery that has succeeded, one that has failed, and one that is tried again; from the newest."""
    refused = attempt(HOUR + timedelta(minutes=1), None, "connection refused")
    return [
        add("note_type.created", "succeeded", NOW, attempt(NOW, 204)),
        add("provider.updated", "failed", HOUR - timedelta(days=3), attempt(HOUR - timedelta(days=2), 500), refused),
        add(
            "note_type.created", "pending", HOUR - timedelta(days=4), refused,
            attempt(HOUR + timedelta(minutes=9), 503), next_at=NOW + timedelta(hours=1),
        ),
    ]  # fmt: skip


def rows_of(page: str) -> list[str]:
    """The ids of the deliveries on a page."""
    return [each.partition("?")[0][-36:] for each in re.findall(r'class="lead"><a href="([^"]+)"', page)]


def cells_of(page: str) -> list[list[str]]:
    body = page.partition("<tbody>")[2].partition("</tbody>")[0]
    rows = re.split(r"<tr[^>]*>", body)[1:]
    return [
        [re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]+>", "", each))).strip() for each in re.split("<td[^>]*>", row)[1:]]
        for row in rows
    ]


def summary(page: str) -> str:
    return unescape("".join(re.findall(r'class="list-summary">([^<]*)<', page)))


def page_link(page: str, rel: str) -> str | None:
    found = re.search(rf'href="([^"]+)" rel="{rel}"', page)
    return unescape(found[1]) if found else None


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_the_list_shows_the_deliveries_newest_first(owner: Browser, endpoint_id: UUID, three: list[UUID]) -> None:
    page = owner.get(f"{PAGE}/{endpoint_id}/deliveries").text
    assert (summary(page), rows_of(page)) == ("3 deliveries", [str(each) for each in three])
    assert [row[:4] for row in cells_of(page)] == [
        ["note_type.created", "succeeded", "1", "204"],
        ["provider.updated", "failed", "2", "connection refused"],
        ["note_type.created", "failing", "2", "503"],
    ]
    assert [bool(row[4]) for row in cells_of(page)] == [False, False, True]
    assert [bool(row[5]) for row in cells_of(page)] == [True] * 3
    assert '<span class="tag bad">failed</span>' in page
    assert f'href="{PAGE}/{endpoint_id}"' in page
    assert "Saved views" not in page
    endpoint_page = owner.get(f"{PAGE}/{endpoint_id}").text
    assert f'<a href="{PAGE}/{endpoint_id}/deliveries">All deliveries</a>' in endpoint_page


def test_filters_select_deliveries(owner: Browser, endpoint_id: UUID, three: list[UUID]) -> None:
    newest, failed, pending = (str(each) for each in three)
    zone_day = (HOUR - timedelta(days=3)).astimezone(tz=None)
    for query, expected in (
        ("status=failed", [failed]),
        ("status=pending", [pending]),
        ("status=cancelled", []),
        ("event_type=note_type.created", [newest, pending]),
        ("event_type=note_type.created&status=succeeded", [newest]),
        ("date=last_7_days", [newest, failed, pending]),
        (f"from={zone_day - timedelta(days=30):%Y-%m-%d}&to={zone_day - timedelta(days=10):%Y-%m-%d}", []),
        ("from=0001-01-01&to=0001-01-02", []),
        ("from=0001-01-01", [newest, failed, pending]),
        ("time=20200101T00Z", []),
    ):
        page = owner.get(f"{PAGE}/{endpoint_id}/deliveries?{query}")
        assert (page.status_code, rows_of(page.text)) == (200, expected), query
    today = owner.get(f"{PAGE}/{endpoint_id}/deliveries?date=today").text
    assert failed not in rows_of(today)
    assert "Created: today" in main_text(today)
    for wrong in ("status=x", "event_type=x.y", "date=x", "time=x", "from=x"):
        assert owner.get(f"{PAGE}/{endpoint_id}/deliveries?{wrong}").status_code == 422, wrong
        assert owner.get(f"{PAGE}/{endpoint_id}/deliveries.csv?{wrong}").status_code == 400, wrong


def test_a_bar_of_the_chart_leads_to_the_deliveries_of_its_attempts(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint_id: UUID, three: list[UUID]
) -> None:
    async def count_attempts() -> None:
        async with server.db.transaction() as tx:
            await attempts.add(tx, [AttemptHour(plan_manager_id, endpoint_id, HOUR, 0, 3)])

    server.run(count_attempts())
    path = f"{PAGE}/{endpoint_id}/deliveries?time={HOUR:%Y%m%dT%HZ}"
    assert set(re.findall(rf'href="({PAGE}/[^"]+time=[^"]+)"', owner.get(f"{PAGE}/{endpoint_id}").text)) == {path}
    page = owner.get(path).text
    assert (summary(page), rows_of(page)) == (
        "2 deliveries with 3 attempts at that time", [str(each) for each in three[1:]],
    )  # fmt: skip
    assert summary(owner.get(f"{path}&status=failed").text) == "1 delivery with 1 attempt at that time"
    before = f"{PAGE}/{endpoint_id}/deliveries?time={HOUR - timedelta(hours=1):%Y%m%dT%HZ}"
    assert rows_of(owner.get(before).text) == []


def test_pages_lead_in_both_directions_and_the_file_has_all_rows(
    owner: Browser, endpoint_id: UUID, add: Callable[..., UUID]
) -> None:
    added = [
        add("note_type.created", "succeeded" if number % 2 else "failed", NOW - timedelta(minutes=number))
        for number in range(230)
    ]  # fmt: skip
    expected = [str(each) for each in added if added.index(each) % 2 == 0]
    path = f"{PAGE}/{endpoint_id}/deliveries?status=failed"
    pages = [owner.get(path).text]
    while (following := page_link(pages[-1], "next")) is not None:
        pages.append(owner.get(following).text)
    assert [rows_of(each) for each in pages] == [expected[:50], expected[50:100], expected[100:]]
    assert {summary(each) for each in pages} == {"115 deliveries"}
    previous = owner.get(page_link(pages[2], "prev") or "").text
    assert rows_of(previous) == expected[50:100]
    first = owner.get(page_link(previous, "prev") or "").text
    assert (rows_of(first), page_link(first, "prev")) == (expected[:50], None)
    response = owner.get(f"{PAGE}/{endpoint_id}/deliveries.csv?status=failed")
    rows = read_csv(response.text)
    assert [each["Delivery ID"] for each in rows] == expected
    assert [list(each.values())[:4] for each in rows] == [row[:4] for page in pages for row in cells_of(page)]
    assert list(rows[0]) == [
        "Event", "Status", "Attempts", "Latest response", "Next attempt", "Created", "Event ID", "Delivery ID",
    ]  # fmt: skip
    assert re.fullmatch(
        r'attachment; filename="deliveries-\d{4}-\d\d-\d\d\.csv"', response.headers["content-disposition"]
    )


def test_more_than_are_counted(server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint_id: UUID) -> None:
    statement = """
        insert into webhook_deliveries (plan_manager_id, id, webhook_endpoint_id, event_id, event_type, status,
            attempts, created_at)
        select $1, time_ordered_uuid(), $2, time_ordered_uuid(), 'note_type.created',
            case when n % 1000 = 0 then 'failed' else 'succeeded' end,
            jsonb_build_array(jsonb_build_object('at', $3::text, 'status_code', 204, 'error', null, 'duration_ms', 12)),
            clock_timestamp()
        from generate_series(1, 20000) n
    """
    for each in (endpoint_id, create_endpoint(server, owner, plan_manager_id)):
        server.run(server.db.execute(statement, plan_manager_id, each, NOW.isoformat()))
    server.execute_as_owner("analyze webhook_deliveries")
    path = f"{PAGE}/{endpoint_id}/deliveries"
    assert summary(owner.get(path).text) == "More than 10,000 deliveries"
    assert summary(owner.get(f"{path}?status=failed").text) == "20 deliveries"
    assert summary(owner.get(f"{path}?time={NOW:%Y%m%dT%HZ}").text) == "More than 10,000 deliveries"

    async def plans() -> list[dict[str, Any]]:
        async with server.db.transaction() as tx:
            executor = ExplainingExecutor(tx._connection)  # noqa: SLF001 - the same connection
            hour = {"attempted_since": NOW - timedelta(days=1), "attempted_before": NOW + timedelta(hours=1)}
            for filters in (DeliveryFilter(), DeliveryFilter(statuses=["failed"]), DeliveryFilter(**hour)):
                place = (executor, plan_manager_id, endpoint_id, filters)
                for read in (delivery_store.list_newest, delivery_store.list_oldest):
                    assert await read(*place, 51)
                assert (await delivery_store.count_matching(*place, 10_001)).deliveries
            return executor.plans

    for plan in server.run(plans()):
        nodes = list(plan_nodes(plan))
        assert "webhook_deliveries_by_endpoint" in {each.get("Index Name") for each in nodes}, plan
        assert not [each for each in nodes if each["Node Type"] == "Sort" and each["Actual Rows"] > 51], plan


def test_a_delivery_leads_back_to_its_page_of_the_list(owner: Browser, endpoint_id: UUID, three: list[UUID]) -> None:
    path = f"{PAGE}/{endpoint_id}/deliveries"
    after = f"{path}?event_type=note_type.created&after={three[0]}"
    page = owner.get(after).text
    link = unescape(re.findall(r'class="lead"><a href="([^"]+)"', page)[0])
    delivery = owner.get(link).text
    assert after in [unescape(each) for each in re.findall(r'href="([^"]+)">Deliveries</a>', delivery)]
    retry = unescape(re.findall(r'action="([^"]+/retry[^"]*)"', delivery)[0])
    sent = owner.submit(retry)
    assert sent.status_code == 303
    again = owner.get(sent.headers["location"]).text
    assert after in [unescape(each) for each in re.findall(r'href="([^"]+)">Deliveries</a>', again)]
    # Not opened from the list.
    assert f'href="{path}">Deliveries</a>' in owner.get(f"{path}/{three[0]}").text


def test_columns_are_chosen_for_the_deliveries_of_all_endpoints(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint_id: UUID, three: list[UUID]
) -> None:
    path = f"{PAGE}/{endpoint_id}/deliveries"
    form = {"list": f"deliveries.{endpoint_id}", "query": "status=failed", "columns": ["result"]}
    assert f'name="list" value="{form["list"]}"' in owner.get(path).text
    saved = owner.submit("/console/list-settings", form | {"density": "comfortable"})
    assert (saved.status_code, saved.headers["location"]) == (303, f"{path}?status=failed")
    page = owner.get(path).text
    assert cells_of(page)[0] == ["note_type.created", "204"]
    assert "comfortable" in page
    assert list(read_csv(owner.get(f"{path}.csv").text)[0]) == ["Event", "Latest response", "Event ID", "Delivery ID"]
    other = create_endpoint(server, owner, plan_manager_id)
    empty = owner.get(f"{PAGE}/{other}/deliveries").text
    assert "No events have been sent to this endpoint yet." in empty
    assert owner.submit("/console/list-settings", form | {"density": "wide"}).status_code == 422


def test_deliveries_of_others_never_appear(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint_id: UUID, three: list[UUID],
    new_plan_manager: Callable[[], UUID], new_browser: Callable[..., Browser], new_account: Callable[..., Account],
) -> None:  # fmt: skip
    path = f"{PAGE}/{endpoint_id}/deliveries"
    foreign = new_plan_manager()
    other = new_browser(new_account("owner", foreign))
    for each in (path, f"{path}.csv", f"{path}?after={three[0]}", f"{path}/{three[0]}"):
        assert other.get(each).status_code == 404, each
    theirs = create_endpoint(server, other, foreign)
    second = create_endpoint(server, owner, plan_manager_id)
    for browser, empty in ((other, theirs), (owner, second)):
        for query in ("", f"?after={three[0]}", f"?before={three[2]}", "?status=failed"):
            page = browser.get(f"{PAGE}/{empty}/deliveries{query}").text
            assert (rows_of(page), [str(each) in page for each in three[1:2]]) == ([], [False])
            assert read_csv(browser.get(f"{PAGE}/{empty}/deliveries.csv{query}").text) == []
    counted = delivery_store.count_matching(server.db, foreign, endpoint_id, DeliveryFilter(), 10)
    assert server.run(counted).deliveries == 0
    for account, status in (("viewer", 200), ("owner", 200)):
        assert new_browser(new_account(account)).get(path).status_code == status
