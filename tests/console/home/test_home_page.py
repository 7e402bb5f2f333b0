"""The home page: its numbers, whose they are, who sees what, and that nothing of another plan manager is counted."""

import re
from collections.abc import Callable
from datetime import UTC, date, datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service as api_keys
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices.statistics_cache import MANY, InvoiceStatistics
from support.client import Client
from support.console import Account, Browser
from support.server import RunningServer, wait_until

HOME = "/console"
LINE = {"service_item_number": "01_011_0107_1_1", "quantity": 1, "unit_price": 100, "total_price": 100}
Import = Callable[..., str]


@pytest.fixture
def today(server: RunningServer) -> date:
    return datetime.now(server.settings.time_zone).date()


@pytest.fixture
def import_invoice(client: Client, import_rows: Callable[..., Any]) -> Import:
    """Imports an invoice of 100 dollars, received now and without a warning: its id."""

    def import_one(participant: str, provider: str, **values: Any) -> str:
        row = {
            "id": str(uuid7()), "invoice_number": f"INV-{uuid7()}", "invoice_date": None, "total": 100, "tax": 0,
            "subtotal": 100, "participant_id": participant, "pm_provider_id": provider, "claim_status": "on_hold",
            "created_at": datetime.now(UTC).isoformat(), "line_items": [LINE],
        } | values  # fmt: skip
        report = import_rows(client, "invoices", [row])
        assert not report.errors, report.errors
        return row["id"]

    return import_one


def tiles(browser: Browser, query: str = "?for=all") -> dict[str, tuple[str, str]]:
    """The number and the money of each tile by its label."""
    page = browser.get(HOME + query)
    assert page.status_code == 200
    return tiles_on(page.text)


def tiles_on(page: str) -> dict[str, tuple[str, str]]:
    found = re.findall(
        r'tile-label">([^<]+)</span>\s*<strong>([0-9,]+)</strong>\s*(?:<span class="soft">([^<· ]+))?', page
    )
    return {unescape(label): (number, money) for label, number, money in found}


def warnings_on(page: str) -> dict[str, tuple[str, str]]:
    """The number and the money of each warning by its title."""
    row = r'<th scope="row"><a .+?>([^<]+)</a>.*?</th><td class="amount">([0-9,]+)</td><td class="amount">([^<]+)</td>'
    return {unescape(title): (number, money) for title, number, money in re.findall(row, page)}


@pytest.fixture
def import_manager(client: Client, import_rows: Callable[..., Any]) -> Callable[[str], str]:
    """Imports an account manager with an email: their id."""

    def import_one(email: str) -> str:
        manager = str(uuid7())
        report = import_rows(client, "account-managers", [{"id": manager, "first_name": "Kim", "email": email}])
        assert not report.errors, report.errors
        return manager

    return import_one


def create_participant(client: Client, **values: Any) -> str:
    return client.create("/participants", {"first_name": "Ann", "status": "Active", **values})["id"]


def create_provider(client: Client) -> str:
    return client.create("/providers", {"entity_name": "Osprey", "abn": "51824753556"})["id"]


def test_a_new_plan_manager_sees_first_steps(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], owner: Browser
) -> None:
    page = owner.get(HOME).text
    assert "<h1>First steps</h1>" in page
    for path in ("imports/new", "participants/new", "settings/people/invite", "settings/keys/new"):
        assert f'href="/console/{path}' in page
    viewer = new_browser(new_account("viewer")).get(HOME).text
    assert "First steps" in viewer
    assert "/participants/new" not in viewer
    assert "/settings/people/invite" not in new_browser(new_account("manager")).get(HOME).text


def test_numbers_and_money_of_what_needs_attention(
    owner: Browser, client: Client, import_invoice: Import, today: date
) -> None:
    ends = {"plan_start_date": "2020-01-01"}
    manager_less = create_participant(client, **ends, plan_end_date=str(today))
    create_participant(client, **ends, plan_end_date=str(today + timedelta(days=30)))
    create_participant(client, **ends, plan_end_date=str(today + timedelta(days=31)))
    create_participant(client, **ends, plan_end_date=str(today - timedelta(days=1)))
    create_participant(client, **ends, plan_end_date=str(today), status="Inactive")
    provider = create_provider(client)
    import_invoice(manager_less, provider)
    import_invoice(manager_less, provider, invoice_number=None, total=250.5)
    import_invoice(manager_less, provider, is_deleted=True)
    import_invoice(manager_less, provider, claim_status="new", approval_status="pending")
    import_invoice(manager_less, provider, claim_status="paid", approval_status="pending")
    assert tiles(owner) == {
        "Invoices on hold": ("2", "$350.50"),
        "Waiting for approval": ("1", "$100.00"),
        "Late to claim": ("0", ""),
        "Plans ending in 30 days": ("2", ""),
        "Plans expired, still active": ("1", ""),
        "No account manager": ("4", ""),
    }
    page = owner.get(HOME).text
    assert warnings_on(page) == {
        "Check the date": ("2", "$350.50"),
        "Amounts don’t add up": ("1", "$250.50"),
        "No invoice number": ("1", "$250.50"),
    }
    assert "Osprey" in page
    assert "$550.50" in page  # invoiced in the last 90 days, without the deleted invoice


def test_invoices_on_hold_without_an_open_warning_are_explained(
    owner: Browser, client: Client, import_invoice: Import
) -> None:
    participant, provider = create_participant(client), create_provider(client)
    held = import_invoice(participant, provider)
    page = owner.get(HOME).text
    assert (warnings_on(page), "nothing left to check." in page) == (
        {"Check the date": ("1", "$100.00")}, False,
    )  # fmt: skip
    owner.submit(f"/console/invoices/{held}/warnings/check_dates/ignore", {"reason": "Agreed"})
    import_invoice(participant, provider, invoice_number=None, invoice_date="2026-01-15", total=50)
    import_invoice(participant, provider, claim_status="paid")
    import_invoice(participant, provider, is_deleted=True)
    page = owner.get(HOME).text
    assert warnings_on(page)["All checked, waiting for release"] == ("1", "$100.00")
    assert "nothing left to check." in page
    link = re.search(r'href="([^"]+)">All checked, waiting for release<', page)
    assert link
    found = owner.get(unescape(link[1])).text
    assert ("1 invoice · $100.00" in found, f"/console/invoices/{held}?" in found) == (True, True)


def test_a_changed_invoice_is_counted_at_once(owner: Browser, client: Client, import_invoice: Import) -> None:
    participant, provider = create_participant(client), create_provider(client)
    invoice = import_invoice(participant, provider)
    assert tiles(owner)["Invoices on hold"] == ("1", "$100.00")
    import_invoice(participant, provider, id=invoice, claim_status="paid")
    assert tiles(owner)["Invoices on hold"] == ("0", "")


def test_late_invoices_and_what_waits_for_whom_lead_to_their_lists(
    owner: Browser, client: Client, import_invoice: Import, new_account: Callable[..., Account], today: date
) -> None:
    colleague = new_account("manager")
    participant, provider = create_participant(client), create_provider(client)
    for days, status in ((4, "new"), (8, "on_hold"), (8, "pending"), (30, "flagged")):
        received = f"{today - timedelta(days=days)}T03:00:00Z"
        import_invoice(participant, provider, received_at=received, claim_status=status)
    mine = import_invoice(participant, provider, claim_status="new", invoice_number=None)
    client.put(f"/invoices/{mine}", {"assigned_to": str(colleague.account_id)}).raise_for_status()
    page = owner.get(HOME).text
    late = re.search(r'<a href="([^"]+)">\s*<span class="tile-label">Late to claim</span>\s*<strong>2<', page)
    waiting = re.findall(r'<a href="(/console/review\?[^"]+)">([^<]+)</a></th><td class="amount">(\d+)', page)
    assert late
    assert "2 invoices" in owner.get(unescape(late[1])).text
    assert waiting == [
        ("/console/review?assigned=nobody", "Unassigned", "2"),
        (f"/console/review?assigned={colleague.account_id}", "Robin Hale", "1"),
    ]
    assert owner.get(waiting[1][0]).headers["location"].startswith(f"/console/review/{mine}?assigned=")


def test_ones_own_work_is_that_of_the_account_manager_with_the_same_email(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], client: Client, import_invoice: Import,
    import_manager: Callable[[str], str], today: date,
) -> None:  # fmt: skip
    account = new_account("viewer")
    manager = import_manager(account.email.upper())
    provider = create_provider(client)
    mine = create_participant(
        client, account_manager_id=manager, plan_start_date="2020-01-01", plan_end_date=str(today)
    )
    import_invoice(mine, provider, total=40)
    import_invoice(create_participant(client), provider)
    browser = new_browser(account)
    own = {
        "Invoices on hold": ("1", "$40.00"),
        "Waiting for approval": ("0", ""),
        "Late to claim": ("0", ""),
        "Plans ending in 30 days": ("1", ""),
        "Plans expired, still active": ("0", ""),
    }
    assert tiles(browser, "") == own
    assert tiles(browser, "?for=all")["Invoices on hold"] == ("2", "$140.00")
    assert tiles(browser, "")["Invoices on hold"] == ("2", "$140.00")  # the choice is remembered
    assert tiles(browser, "?for=me") == own
    assert f"account_manager={manager}" in browser.get(HOME).text
    assert 'aria-label="Whose work"' in browser.get(HOME).text


def test_without_an_account_manager_the_page_says_so(owner: Browser, client: Client) -> None:
    create_participant(client)
    page = owner.get(HOME, params={"for": "me"}).text
    assert "isn’t linked to an account manager" in page
    assert "No account manager" in page
    assert ("Whose work" in page, "Whose work" in owner.get(HOME).text) == (False, False)


def test_an_owner_links_a_member_to_an_account_manager(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], owner: Browser, client: Client,
    import_manager: Callable[[str], str],
) -> None:  # fmt: skip
    member = new_account("viewer")
    form = f"/console/settings/people/{member.account_id}/account-manager"
    namesake, chosen = import_manager(member.email), import_manager(f"{uuid7()}@example.com")
    create_participant(client, account_manager_id=chosen)
    browser = new_browser(member)
    assert f"account_manager={namesake}" in browser.get(HOME).text
    saved = owner.submit(form, {"account_manager": chosen})
    assert (saved.status_code, saved.headers["location"]) == (303, "/console/settings/people")
    assert f'<option value="{chosen}" selected>' in owner.get(form).text
    assert f"account_manager={chosen}" in browser.get(HOME).text
    assert owner.submit(form, {"account_manager": ""}).status_code == 303
    assert f"account_manager={namesake}" in browser.get(HOME).text
    changes = wait_until(
        lambda: len(found := client.get("/events", type="account.account_manager_changed").json()["data"]) > 1 and found
    )
    assert [(each["data"]["account_manager_id"], each["previous"]) for each in changes] == [
        (chosen, {"account_manager_id": None}),
        (None, {"account_manager_id": chosen}),
    ]


@pytest.mark.parametrize("choice", ["x", "01900000-0000-7000-8000-000000000001"])
def test_only_account_managers_of_this_plan_manager_can_be_chosen(
    new_account: Callable[..., Account], owner: Browser, choice: str
) -> None:
    member = new_account("viewer")
    response = owner.submit(
        f"/console/settings/people/{member.account_id}/account-manager", {"account_manager": choice}
    )
    assert response.status_code == 422
    assert "must be" in response.text


def test_owners_see_what_could_fail_next(
    server: RunningServer, new_browser: Callable[..., Browser], new_account: Callable[..., Account], owner: Browser,
    client: Client, plan_manager_id: UUID,
) -> None:  # fmt: skip
    create_participant(client)
    endpoint = client.create("/webhook-endpoints", {"url": "https://example.com/failing"})["id"]

    async def prepare() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            for name, days in (("soon", 13), ("later", 15)):
                await api_keys.create(ctx, name, [plan_manager_id], ["read"], timedelta(days=days))
            await tx.execute("update webhook_endpoints set failing_since = now() where id = $1", endpoint)

    server.run(prepare())
    page = owner.get(HOME).text
    notices = page[page.index("For owners") : page.index("Plans ending per week")]
    assert "https://example.com/failing" in notices
    assert "API key soon" in notices
    assert "API key later" not in notices
    assert "person without two-factor authentication" in notices
    assert "For owners" not in new_browser(new_account("manager")).get(HOME).text


def test_nothing_of_another_plan_manager_is_counted(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], new_plan_manager: Callable[[], UUID],
    owner: Browser, client: Client, import_invoice: Import, today: date,
) -> None:  # fmt: skip
    participant = create_participant(client, plan_start_date="2020-01-01", plan_end_date=str(today))
    import_invoice(participant, create_provider(client))
    assert tiles(owner)["Invoices on hold"] == ("1", "$100.00")
    other = new_browser(new_account("owner", new_plan_manager()))
    assert "<h1>First steps</h1>" in other.get(HOME).text


def test_sums_of_many_invoices_are_shown_once_more_with_their_time(
    owner: Browser, client: Client, import_invoice: Import, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(InvoiceStatistics, "read_count", MANY)
    person, provider = create_participant(client), create_provider(client)
    import_invoice(person, provider)
    assert tiles(owner)["Invoices on hold"] == ("1", "$100.00")
    assert "Invoices as of" not in owner.get(HOME).text
    import_invoice(person, provider)
    page = owner.get(f"{HOME}?for=all").text
    note = re.search(r'<p class="soft">Invoices as of ([^.]+)\. Reload the page in a moment', page)
    assert note
    assert str(datetime.now(UTC).year) in note[1]
    assert tiles_on(page)["Invoices on hold"] == ("1", "$100.00")
    wait_until(lambda: tiles(owner)["Invoices on hold"] == ("2", "$200.00"))
    assert "Invoices as of" not in owner.get(HOME).text
