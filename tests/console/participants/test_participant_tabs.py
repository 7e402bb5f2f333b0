"""The tabs of a participant: the header that they share, overview, invoices, team."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.database.client import Database, Executor
from support.client import Client
from support.console import Browser, main_text
from support.server import RunningServer, wait_until

PAGE = "/console/participants"
INVOICE = {"tax": 0, "subtotal": 100, "total": 100, "line_items": [{"total_price": 100}]}


def test_the_header_tells_who_the_participant_is_and_how_the_plan_stands(
    server: RunningServer, owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    today = datetime.now(server.settings.time_zone).date()
    start, end = today - timedelta(days=99), today + timedelta(days=100)
    person = client.create("/participants", {
        "first_name": "William", "last_name": "Thompson", "preferred_name": "Bee", "participant_number": "430205409",
        "date_of_birth": today.replace(year=today.year - 40, day=1).isoformat(), "is_pace_plan": True,
        "plan_start_date": start.isoformat(), "plan_end_date": end.isoformat(), "phone_number": "0491571266",
    })["id"]  # fmt: skip
    provider = client.create("/providers", {"entity_name": "Amber & Sons"})["id"]
    rows = [
        {"id": str(uuid7()), "invoice_number": number, "invoice_date": day.isoformat(), "participant_id": person,
         "pm_provider_id": provider, **INVOICE, **more}
        for number, day, more in (
            ("IN", today, {}), ("WRONG", end + timedelta(days=1), {}), ("GONE", today, {"is_deleted": True}),
            ("TWICE", today, {"claim_status": "cancelled"}),
        )
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    page = owner.get(f"{PAGE}/{person}").text
    shown = main_text(page)
    assert "William Thompson “Bee” NDIS 430 205 409 Copy 40 years old No account manager" in shown
    assert "Active" not in shown.partition("Overview")[0]
    assert "Plan PACE 100 days left" in shown
    assert 'class="passed" width="50"' in page
    assert "Contact Bee (the participant) 0491 571 266" in shown
    assert 'href="tel:0491571266"' in page
    assert "Warnings 2 invoices with open warnings Invoices this plan $100.00 1 invoice" in shown
    assert "Overview Invoices 3 Plans Statements Team 0 Timeline" in shown
    kim = {"first_name": "Kim", "last_name": "Ray", "email": "kim@example.com", "contact_priority": 1, "role": "Aunt"}
    client.create(f"/participants/{person}/team-members", kim)
    for path in ("", "/team"):
        page = owner.get(f"{PAGE}/{person}{path}").text
        assert "Primary contact Kim Ray Aunt kim@example.com" in main_text(page)
        assert 'href="mailto:kim%40example.com"' in page


def test_the_overview_shows_what_is_set_and_offers_the_rest(owner: Browser, client: Client) -> None:
    person = client.create("/participants", {"first_name": "Ann", "city": "Hobart", "postcode": "7000"})["id"]
    shown = main_text(owner.get(f"{PAGE}/{person}").text)
    assert "Address Hobart 7000 Add service region" in shown
    assert "Contact Change Receives statements No Statements by post No Add phone, email" in shown
    assert "Account manager Change Assign account manager" in shown
    assert "not set" not in shown
    assert "Status and leaving Change Status Active Notes No notes yet." in shown
    client.put(f"/participants/{person}", {"status": "Inactive", "date_ceased": "2026-01-05"})
    shown = main_text(owner.get(f"{PAGE}/{person}").text)
    assert "Ann Inactive" in shown
    assert "Status and leaving Change Status Inactive Exit date 5 Jan 2026 Add exit reason" in shown


def test_the_overview_shows_the_latest_invoices_and_changes(
    owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    person = client.create("/participants", {"first_name": "Ann"})["id"]
    assert "No invoices yet." in owner.get(f"{PAGE}/{person}").text
    assert wait_until(lambda: re.findall(r">(Participant added|Added)</a>", owner.get(f"{PAGE}/{person}").text))
    rows = [
        {"id": str(uuid7()), "invoice_number": f"N{number}", "participant_id": person, "claim_status": "paid",
         "created_at": f"2026-01-{number + 1:02}T00:00:00Z", **INVOICE}
        for number in range(7)
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    page = owner.get(f"{PAGE}/{person}").text
    assert re.findall(r'<a class="break" href="/console/invoices/[^"]+">(N\d)</a>', page) == [
        f"N{number}" for number in (6, 5, 4, 3, 2)
    ]
    assert "All 7" in page


def test_the_overview_lists_invoices_with_open_warnings_first(
    owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    person = client.create("/participants", {"first_name": "Ann"})["id"]
    provider = client.create("/providers", {"entity_name": "Amber & Sons", "abn": "51824753556"})["id"]
    rows = [
        {"id": str(uuid7()), "invoice_number": f"N{number}", "participant_id": person, "pm_provider_id": provider,
         "created_at": f"2026-01-{number + 1:02}T00:00:00Z", "is_deleted": number == 6,
         "invoice_date": "2099-01-01" if number in (0, 1, 2, 6) else "2026-01-01",
         "claim_status": "cancelled" if number == 1 else "paid", **INVOICE,
         "line_items": [{"total_price": 100, "service_item_number": "01_011_0107_1_1"}]}
        for number in range(7)
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    page = owner.get(f"{PAGE}/{person}").text
    assert "2 invoices with open warnings" in main_text(page)
    assert re.findall(r'<a class="break" href="/console/invoices/[^"]+">(N\d)</a>', page) == [
        "N2",
        "N0",
        "N5",
        "N4",
        "N3",
    ]
    assert "Those with open warnings first, then newest first" in main_text(page)
    page = owner.get(f"{PAGE}/{person}/invoices", params={"warnings": "1"}).text
    assert set(re.findall(r'href="/console/invoices/[^"]+">(N\d)</a>', page)) == {"N0", "N2"}


def test_the_invoices_are_summed_by_status_month_and_provider(
    server: RunningServer, owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    plan = {"plan_start_date": "2025-07-01", "plan_end_date": "2026-06-30"}
    person = client.create("/participants", {"first_name": "Ann", **plan})["id"]
    assert "There are no invoices of Ann yet." in main_text(owner.get(f"{PAGE}/{person}/invoices").text)
    names = {"Amber & Sons": "51824753556", "Blue": "53004085616"}
    amber, blue = (client.create("/providers", {"entity_name": name, "abn": abn})["id"] for name, abn in names.items())
    values = (
        ("A1", "2025-07-03", amber, "paid", 100), ("A2", "2025-07-20", amber, "on_hold", 250),
        ("B1", "2026-06-30", blue, "rejected", 40), ("B2", "2026-01-05", blue, "payment_ready", 500),
        ("OLD", "2025-06-30", blue, "paid", 1000),
    )  # fmt: skip
    rows = [
        {"id": str(uuid7()), "invoice_number": number, "invoice_date": day, "participant_id": person,
         "pm_provider_id": provider, "claim_status": status, "total": total, "line_items": [{"total_price": total}]}
        for number, day, provider, status, total in values
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    page = owner.get(f"{PAGE}/{person}/invoices").text
    shown = main_text(page)
    assert (
        "Invoiced $890.00 4 invoices Paid $100.00 1 invoice In progress $500.00 1 invoice"
        " On hold $250.00 1 invoice Rejected or cancelled $40.00 1 invoice"
    ) in shown
    assert "Providers Blue $540.00 Amber & Sons $350.00" in shown
    assert listed_numbers(page) == ["B1", "B2", "A2", "A1", "OLD"]
    july = unescape(page).partition(">Jul 2025<")[0].count("from=2025-07-01&to=2025-07-31")
    assert july > 0
    assert f'href="/console/invoices?participant={person}&amp;provider={blue}"' in page
    assert "Invoices with open warnings" not in page
    page = owner.get(f"{PAGE}/{person}/invoices?warnings=1").text
    assert sorted(listed_numbers(page)) == ["A1", "A2", "B1", "B2", "OLD"]
    assert "Support item number isn’t valid" in page


def test_the_invoices_are_paginated_newest_first(
    owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    person = client.create("/participants", {"first_name": "Ann"})["id"]
    rows = [
        {"id": str(uuid7()), "invoice_number": f"N{number:02}", "participant_id": person,
         "invoice_date": f"2026-{1 + number // 28:02}-{1 + number % 28:02}", **INVOICE}
        for number in range(60)
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    page = owner.get(f"{PAGE}/{person}/invoices").text
    onward = re.search(r'href="([^"]+)" rel="next"', page)
    assert onward
    assert listed_numbers(page) == [f"N{number:02}" for number in range(59, 9, -1)]
    assert listed_numbers(owner.get(unescape(onward[1])).text) == [f"N{number:02}" for number in range(9, -1, -1)]


def listed_numbers(page: str) -> list[str]:
    return re.findall(r'class="lead"><a href="/console/invoices/[^"]+">([^<]+)</a>', page)


def test_a_provider_has_sums_and_others_that_may_be_the_same(
    server: RunningServer, owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    amber = client.create("/providers", {"entity_name": "Amber Care Group", "abn": "51 824 753 556"})["id"]
    twin = client.create("/providers", {"entity_name": "Other", "abn": "51824753556"})["id"]
    similar = client.create("/providers", {"entity_name": "Amber Care Pty Ltd"})["id"]
    client.create("/providers", {"entity_name": "Blue"})
    person = client.create("/participants", {"first_name": "Ann"})["id"]
    today = datetime.now(server.settings.time_zone).date().isoformat()
    rows = [
        {"id": str(uuid7()), "invoice_number": "A1", "invoice_date": today, "participant_id": person,
         "pm_provider_id": amber, "claim_status": "on_hold", **INVOICE},
        {"id": str(uuid7()), "invoice_number": "A2", "invoice_date": "2019-01-01", "participant_id": person,
         "pm_provider_id": amber, **INVOICE},
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    page = owner.get(f"/console/providers/{amber}").text
    shown = main_text(page)
    assert "Invoiced $100.00 1 invoice Paid $0.00 0 invoices" in shown
    assert "On hold $100.00 1 invoice" in shown
    assert sorted(listed_numbers(page)) == ["A1", "A2"]
    assert "Same ABN Other ABN 51 824 753 556 Similar names Amber Care Pty Ltd No ABN" in shown
    assert [f'href="/console/providers/{each}"' in page for each in (twin, similar)] == [True, True]
    assert "Blue" not in shown


def test_each_page_needs_few_statements(
    owner: Browser,
    client: Client,
    import_rows: Callable[..., Any],
    plan_manager_id: UUID,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """As many for sixty invoices as for one: none is repeated."""
    person = client.create("/participants", {"first_name": "Ann"})["id"]
    provider = client.create("/providers", {"entity_name": "Amber"})["id"]
    rows = [
        {"id": str(uuid7()), "invoice_number": "N", "invoice_date": "2026-01-01", "participant_id": person,
         "pm_provider_id": provider, **INVOICE}
        for _ in range(60)
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    run: list[str] = []
    for name in ("rows", "one_or_none"):
        method = getattr(Executor, name)

        async def counted(
            self: Executor, kind: Any, statement: str, *values: object, method: Any = method, **options: bool
        ) -> Any:
            # The sequencer may be at work on the import in transactions, and the fan-out may look for endpoints.
            is_of_page = type(self) is Database and "webhook_endpoints" not in statement
            if is_of_page and values[:1] == (plan_manager_id,):
                run.append(f"{' '.join(statement.split())} {values}")
            return await method(self, kind, statement, *values, **options)

        monkeypatch.setattr(Executor, name, counted)
    for path, limit in (
        (f"{PAGE}/{person}", 9), (f"{PAGE}/{person}/invoices", 8), (f"{PAGE}/{person}/team", 4),
        (f"/console/providers/{provider}", 12), (f"/console/invoices/{rows[-1]['id']}", 12),
    ):  # fmt: skip
        run.clear()
        assert owner.get(path).status_code == 200
        assert len(run) == len(set(run)), path
        assert 3 <= len(run) <= limit, (path, run)
