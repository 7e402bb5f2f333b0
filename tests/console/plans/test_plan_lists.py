"""The list of plans that end, and the page of budgets that need a look."""

import csv
import io
import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import members
from plankeeper.access.accounts.schemas import RoleDetails
from plankeeper.core.context import SYSTEM, WriteContext
from support.client import Client
from support.console import Account, Browser
from support.server import RunningServer

DAY = timedelta(days=1)
COMPONENT = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 1000}


@pytest.fixture
def today(server: RunningServer) -> date:
    return datetime.now(server.settings.time_zone).date()


@pytest.fixture
def add_plan(client: Client, import_rows: Any) -> Callable[..., str]:
    """Add a participant with a plan, of which an amount is waiting: the id of the participant."""

    def add(name: str, start: date, end: date, used: float = 0, **fields: Any) -> str:
        person = client.create("/participants", {"last_name": name, "status": "Active"} | fields)["id"]
        dates = {"start_date": start.isoformat(), "end_date": end.isoformat()}
        client.create(f"/participants/{person}/plans", dates | {"components": [COMPONENT]})
        day = {"service_date_from": start.isoformat(), "service_item_number": "15_056_0128_1_3"}
        if used:
            row = {"participant_id": person, "line_items": [day | {"total_price": used}]}
            assert not import_rows(client, "invoices", [row]).errors
        return person

    return add


def names(text: str) -> list[str]:
    return re.findall(r'<td class="lead"><a href="/console/participants/[0-9a-f-]{36}/plans">([^<]+)</a>', text)


def test_plans_are_listed_by_their_ends_with_what_is_left(
    owner: Browser, add_plan: Callable[..., str], today: date
) -> None:
    person = add_plan("Soon", today - 90 * DAY, today + 9 * DAY, 250.5)
    add_plan("Later", today, today + 50 * DAY)
    add_plan("Far", today, today + 200 * DAY)
    add_plan("Over", today - 90 * DAY, today - DAY)
    add_plan("Gone", today, today + 20 * DAY, status="Inactive")
    assert names(owner.get("/console/plans").text) == ["Over", "Soon", "Gone", "Later", "Far"]
    page = owner.get("/console/plans?plan_end=60d&status=Active").text
    assert names(page) == ["Soon", "Later"]
    assert "$749.50" in page
    assert names(owner.get(f"/console/plans?plan_end_to={(today + 10 * DAY).isoformat()}").text) == ["Soon"]
    rows = list(csv.DictReader(io.StringIO(owner.get("/console/plans.csv?plan_end=60d&status=Active").text)))
    shown = ("Participant ID", "Days left", "Budget", "Left")
    assert [rows[0][each] for each in shown] == [person, "9", "1000.00", "749.50"]


def test_the_list_is_filtered_by_account_manager(
    owner: Browser, client: Client, add_plan: Callable[..., str], today: date, import_rows: Any
) -> None:
    manager = "0199a000-0000-7000-8000-00000000aaaa"
    row = {"id": manager, "first_name": "Ada", "email": "ada@example.com"}
    assert not import_rows(client, "account-managers", [row]).errors
    add_plan("Mine", today, today + 9 * DAY, account_manager_id=manager)
    add_plan("Theirs", today, today + 9 * DAY)
    assert names(owner.get(f"/console/plans?account_manager={manager}").text) == ["Mine"]
    assert names(owner.get("/console/plans?account_manager=none").text) == ["Theirs"]


def test_budgets_that_run_out_early_or_are_hardly_used_are_listed(
    owner: Browser, add_plan: Callable[..., str], today: date
) -> None:
    start, end = today - 99 * DAY, today + 100 * DAY  # 100 of 200 days have passed
    early = add_plan("Early", start, end, 800)
    little = add_plan("Little", start, end, 249)
    add_plan("Even", start, end, 250)
    add_plan("Young", today - 9 * DAY, end)
    add_plan("Left", start, end, 900, status="Inactive")
    page = owner.get("/console/plans/budgets").text
    assert "4 plans in force of active participants, as of " in page
    for name, person, text in (("Early", early, "$800.00 of $1,000.00"), ("Little", little, "$249.00 of $1,000.00")):
        assert f'<a href="/console/participants/{person}/plans">{name}</a>' in page
        assert text in page
    assert f"Runs out about {(today + 25 * DAY).day} " in page
    assert "25 % used, 50 % of the time has passed" in page
    assert not [name for name in ("Even", "Young", "Left") if f">{name}<" in page]


def test_budgets_are_computed_again_after_a_change(owner: Browser, add_plan: Callable[..., str], today: date) -> None:
    add_plan("One", today - 99 * DAY, today + 100 * DAY)
    assert "1 plan in force" in owner.get("/console/plans/budgets").text
    add_plan("Two", today - 99 * DAY, today + 100 * DAY)
    assert "2 plans in force" in owner.get("/console/plans/budgets").text


def test_home_leads_to_the_plans_and_budgets_of_the_own_participants(
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    add_plan: Callable[..., str],
    today: date,
    client: Client,
    import_rows: Any,
) -> None:
    account = new_account("viewer")
    viewer = new_browser(account)
    manager = str(uuid7())
    row = {"id": manager, "first_name": "Ada", "email": account.email}
    assert not import_rows(client, "account-managers", [row]).errors
    start, end = today - 99 * DAY, today + 50 * DAY
    add_plan("Own", start, end, account_manager_id=manager)
    add_plan("Other", start, end)
    home = viewer.get("/console?for=me").text
    [path] = re.findall(r'"(/console/plans\?[^"]+account_manager[^"]+)"', home)
    assert names(viewer.get(unescape(path)).text) == ["Own"]
    assert 'href="/console/plans/budgets"' in home
    assert "1 plan in force of active participants of Ada" in viewer.get("/console/plans/budgets?for=me").text
    assert "2 plans in force" in viewer.get("/console/plans/budgets?for=all").text


def test_components_that_run_out_are_listed_with_filters_and_a_file(
    owner: Browser, client: Client, add_plan: Callable[..., str], today: date, import_rows: Any
) -> None:
    manager = str(uuid7())
    assert not import_rows(client, "account-managers", [{"id": manager, "first_name": "Ada"}]).errors
    start, end = today - 99 * DAY, today + 100 * DAY  # 100 of 200 days have passed
    late = add_plan("Late", start, end, 600, account_manager_id=manager)  # runs out in 66 days
    early = add_plan("Early", start, end, 800)  # in 25 days
    over = add_plan("Over", start, end, 1200)
    add_plan("Even", start, end, 500)
    add_plan("Gone", start, end, 900, status="Inactive")
    path = "/console/plans/components"
    page = owner.get(path).text
    assert names(page) == ["Over", "Early", "Late"]
    assert "used at the average rate since the plan’s first day" in page
    assert names(owner.get(f"{path}?sort=-runs_out").text) == ["Late", "Early", "Over"]
    assert names(owner.get(f"{path}?runs_out=30").text) == ["Over", "Early"]
    assert names(owner.get(f"{path}?used=75").text) == ["Over", "Early"]
    assert names(owner.get(f"{path}?used=100").text) == ["Over"]
    assert names(owner.get(f"{path}?account_manager={manager}").text) == ["Late"]
    rows = list(csv.DictReader(io.StringIO(owner.get(f"{path}.csv").text.removeprefix("\ufeff"))))
    assert [row["Participant ID"] for row in rows] == [over, early, late]
    shown = ("Component", "Runs out", "Plan ends", "Days early", "Used", "Time passed", "Budget", "Left", "Amount used")
    runs_out = today + 66 * DAY
    assert [rows[2][each] for each in shown] == [
        "Therapy", runs_out.isoformat(), end.isoformat(), "34", "60%", "50%", "1000.00", "400.00", "600.00"
    ]  # fmt: skip
    assert [rows[0][each] for each in ("Runs out", "Used", "Left")] == [today.isoformat(), "120%", "'-200.00"]


def test_the_pages_of_components_follow_each_other(owner: Browser, add_plan: Callable[..., str], today: date) -> None:
    for number in range(52):
        add_plan(f"P{number:02}", today - 99 * DAY, today + 100 * DAY, 600 + number)
    expected = [f"P{number:02}" for number in range(52)]
    for sort in ("runs_out", "-runs_out"):
        first = owner.get(f"/console/plans/components?sort={sort}").text
        link = re.search(r'href="([^"]+)" rel="next"', first)
        assert link
        second = owner.get(unescape(link[1])).text
        listed = names(first) + names(second)
        assert sorted(listed) == expected
        assert len(names(first)) == 50
        back = re.search(r'href="([^"]+)" rel="prev"', second)
        assert back
        assert names(owner.get(unescape(back[1])).text) == names(first)


def test_a_limited_viewer_sees_the_own_components(
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    server: RunningServer,
    add_plan: Callable[..., str],
    today: date,
    client: Client,
    import_rows: Any,
) -> None:
    managers = [str(uuid7()), str(uuid7())]
    rows = [{"id": each, "first_name": "Ada"} for each in managers]
    assert not import_rows(client, "account-managers", rows).errors
    for name, each in zip(("Own", "Other"), managers, strict=True):
        add_plan(name, today - 99 * DAY, today + 100 * DAY, 900, account_manager_id=each)
    account = new_account("viewer")

    async def limit() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, UUID(client.plan_manager_id), server.settings, SYSTEM)
            await members.change_role(ctx, account.account_id, "viewer", RoleDetails([], UUID(managers[0])))

    server.run(limit())
    viewer = new_browser(account)
    path = "/console/plans/components"
    assert names(viewer.get(path).text) == ["Own"]
    assert names(viewer.get(f"{path}?account_manager={managers[0]}").text) == ["Own"]
    assert names(viewer.get(f"{path}?account_manager={managers[1]}").text) == []
    assert viewer.get("/console/reports/service-standard").status_code == 403
    assert "Service standard" not in viewer.get("/console").text
