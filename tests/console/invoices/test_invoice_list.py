"""The list of invoices: filters, chips, orders, sums, pages, the CSV file and the position of an invoice."""

import csv
import io
import re
from collections.abc import Callable
from functools import partial
from html import unescape
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support import factories
from support.client import Client
from support.console import Browser
from support.server import RunningServer

INVOICES = "/console/invoices"
NOBODY = "01900000-0000-7000-8000-000000000001"
Put = Callable[..., str]

# Queries with the invoices that they select, in the list's order.
SELECTIONS: tuple[tuple[dict[str, str], list[str]], ...] = (
    ({"invoice_number": "PLAIN"}, ["PLAIN"]),
    ({"invoice_number": "at ED"}, ["DATED"]),
    ({"invoice_number": "pla"}, ["PLAIN"]),
    ({"invoice_number": "???"}, []),
    ({"claim_status": "new"}, ["DATED", "LOST"]),
    ({"claim_status": "unpaid"}, ["DATED", "LOST"]),
    ({"claim_status": "in_progress", "participant": "none"}, ["LOST"]),
    ({"claim_status": "on_hold_without_warning"}, []),
    ({"deleted": "no", "claim_status": "new"}, ["DATED", "LOST"]),
    ({"deleted": "yes"}, []),
    ({"account_manager": NOBODY}, []),
    ({"claim_status": "unpaid", "min": "1", "deleted": "no"}, ["DATED"]),
    ({"approval_status": "pending"}, ["DATED"]),
    ({"participant": "{participant}"}, ["DATED", "PLAIN"]),
    ({"participant": "lee"}, ["DATED", "PLAIN"]),
    ({"participant": "none"}, ["LOST"]),
    ({"participant": NOBODY}, []),
    ({"provider": "{provider}", "claim_status": "paid"}, ["PLAIN"]),
    ({"provider": "amber & sons"}, ["DATED", "PLAIN"]),
    ({"provider": "{other}"}, []),
    ({"from": "15/1/2026", "to": "15 Jan 2026"}, ["PLAIN"]),
    ({"from": "2026-01-16"}, ["DATED"]),
    ({"to": "14/01/2026"}, []),
    ({"min": "$1,000"}, ["PLAIN"]),
    ({"max": "10"}, ["DATED"]),
    ({"min": "10.01", "max": "1234.50"}, ["PLAIN"]),
    # 4 February in Sydney
    ({"received_from": "4/2/2026", "received_to": "4/2/2026"}, ["LOST"]),
    ({"received_to": "3/2/2026"}, []),
    ({"warning": "any"}, ["DATED", "LOST"]),
    ({"warning": "missing_provider"}, ["LOST"]),
    ({"warning": "any", "claim_status": "paid"}, []),
    ({"warning": "check_dates", "claim_status": "new", "provider": "{provider}"}, ["DATED"]),
)


@pytest.fixture
def record_ids(client: Client) -> dict[str, str]:
    """A participant and two providers."""
    return {
        "participant": client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})["id"],
        "provider": client.create("/providers", {"entity_name": "Amber & Sons", "abn": "51824753556"})["id"],
        "other": client.create("/providers", {"entity_name": "Amber Care", "abn": "53004085616"})["id"],
    }


@pytest.fixture
def import_invoice(server: RunningServer, client: Client, record_ids: dict[str, str]) -> Put:
    """Imports an invoice without warnings, except for what the values cause: its id."""
    return partial(factories.import_invoice, server, client, record_ids)


@pytest.fixture
def many_invoices(client: Client, import_rows: Callable[..., Any]) -> list[str]:
    """The numbers of 120 invoices of $1 to $120, of which the last 20 have no date: in the list's default order."""
    days = [f"2026-{1 + number // 28:02}-{1 + number % 28:02}" for number in range(100)]
    rows = [
        {
            "id": str(uuid7()), "invoice_number": f"N{number:03}", "total": number + 1, "invoice_date": day,
            "created_at": f"2026-06-01T{number // 60:02}:{number % 60:02}:00Z",
        }
        for number, day in enumerate([*days, *[None] * 20])
    ]  # fmt: skip
    assert not import_rows(client, "invoices", rows).errors
    return [f"N{number:03}" for number in range(119, -1, -1)]


def listed(page: str) -> list[str]:
    """The numbers of the invoices on a page of the list."""
    return re.findall(r'class="lead"><a href="/console/invoices/[0-9a-f-]{36}\?list=[^"]*">([^<]+)</a>', page)


def link(page: str, rel: str) -> str | None:
    found = re.search(rf'href="([^"]+)" rel="{rel}"', page)
    return unescape(found[1]) if found else None


def summary(page: str) -> str:
    [found] = re.findall(r'class="list-summary">([^<]*)<', page)
    return unescape(found)


def chips(page: str) -> dict[str, str]:
    """The filters that are set, with the link that removes each."""
    found = re.findall(r'<li><a href="([^"]+)"><span class="unseen">Remove the filter </span>([^<]+) <span', page)
    return {unescape(text): unescape(url) for url, text in found}


def test_each_filter_selects_its_invoices(owner: Browser, import_invoice: Put, record_ids: dict[str, str]) -> None:
    assert "There are no invoices yet." in owner.get(INVOICES).text
    import_invoice(invoice_number="PLAIN", claim_status="paid")
    import_invoice(invoice_number="DATED", invoice_date="2099-01-01", approval_status="pending", total=10)
    import_invoice(
        invoice_number="LOST", participant_id=None, pm_provider_id=None, total=None, invoice_date=None,
        created_at="2026-02-03T13:30:00Z",
    )  # fmt: skip
    assert listed(owner.get(INVOICES).text) == ["DATED", "PLAIN", "LOST"]
    for query, numbers in SELECTIONS:
        response = owner.get(INVOICES, params={name: text.format(**record_ids) for name, text in query.items()})
        assert (response.status_code, listed(response.text)) == (200, numbers), query
    page = owner.get(INVOICES).text
    for text in (
        f'<a href="/console/providers/{record_ids["provider"]}">Amber &amp; Sons</a>', "Ann Lee", "15 Jan 2026",
        "$1,234.50", '<span class="tag good">Paid</span>', "No provider",
    ):  # fmt: skip
        assert text in page
    nothing = owner.get(INVOICES, params={"invoice_number": "NONE"}).text
    assert ("No invoices match." in nothing, "Clear filters" in nothing) == (True, True)


def test_the_invoice_received_last_is_first_whatever_its_date(owner: Browser, import_invoice: Put) -> None:
    import_invoice(invoice_number="MISTAKEN", invoice_date="2062-01-15", created_at="2026-02-03T13:30:00Z")
    import_invoice(invoice_number="LATEST", created_at="2026-03-03T13:30:00Z")
    import_invoice(invoice_number="FIRST", created_at="2025-02-03T13:30:00Z")
    page = owner.get(INVOICES).text
    assert listed(page) == ["LATEST", "MISTAKEN", "FIRST"]
    assert place(owner.get(open_in_list(owner, "MISTAKEN")).text) == (
        "2 of 3", open_in_list(owner, "LATEST"), open_in_list(owner, "FIRST"),
    )  # fmt: skip
    assert ("4 Feb 2026" in page, "15 Jan 2062" in page) == (True, True)


def test_presets_are_ranges_of_dates_up_to_today(owner: Browser, import_invoice: Put) -> None:
    import_invoice(invoice_number="OLD", invoice_date="2020-01-15")
    import_invoice(invoice_number="NEW", invoice_date=None, created_at="2020-01-15T00:00:00Z")
    import_invoice(invoice_number="RECENT")
    page = owner.get(INVOICES, params={"received": "this_week"}).text
    assert (listed(page), list(chips(page))) == (["RECENT", "OLD"], ["Received: this week"])
    page = owner.get(INVOICES, params={"date": "this_week"}).text
    assert (listed(page), list(chips(page))) == ([], ["Invoice date: this week"])
    page = owner.get(INVOICES, params={"received": "this_week", "received_from": "1/1/2020", "received_to": "1/2/2020"})
    assert (listed(page.text), list(chips(page.text))) == (["NEW"], ["Received: 1 Jan 2020 – 1 Feb 2020"])


def test_an_invalid_filter_has_its_message_at_the_field_and_lists_nothing(owner: Browser, import_invoice: Put) -> None:
    import_invoice()
    for query, message in (
        ({"claim_status": "odd"}, "Claim status must be one of the choices."),
        ({"warning": "odd"}, "Warning must be one of the choices."),
        ({"from": "32/1/2026"}, "Invoice date: “From” isn’t a date."),
        ({"from": "2/1/2026", "to": "1/1/2026"}, "Invoice date: “To” is before “From”."),
        ({"min": "lots"}, "Enter an amount, like 1,000.50."),
        ({"min": "2", "max": "1"}, "Total: “To” is less than “From”."),
        ({"date": "some_day"}, "Date must be one of the choices."),
    ):
        response = owner.get(INVOICES, params=query | {"approval_status": "pending"})
        name = list(query)[-1]
        assert (response.status_code, listed(response.text)) == (422, []), query
        assert f'<p class="field-error" id="{name}-error">{message}</p>' in response.text, query
        assert 'aria-invalid="true"' in response.text or name == "date"
        assert '<option value="pending" selected>' in response.text
    page = owner.get(INVOICES, params={"provider": "Nobody <b>", "min": "1"})
    assert (page.status_code, listed(page.text)) == (422, [])
    assert '<p class="picker-message" id="provider-message">No provider matches “Nobody &lt;b&gt;”.</p>' in page.text
    assert ('value="Nobody &lt;b&gt;"' in page.text, '<a href="#provider">' in page.text) == (True, True)
    assert owner.get(f"{INVOICES}.csv", params={"min": "lots"}).status_code == 400


def test_a_name_of_several_records_offers_them(owner: Browser, import_invoice: Put, record_ids: dict[str, str]) -> None:
    import_invoice()
    response = owner.get(INVOICES, params={"provider": "amber", "min": "1"})
    assert (response.status_code, listed(response.text)) == (422, [])
    choices = dict(re.findall(r'<li><a href="([^"]+)">(Amber[^<]*)</a>', response.text))
    assert {unescape(url): unescape(name) for url, name in choices.items()} == {
        f"{INVOICES}?min=1&provider={record_ids['provider']}": "Amber & Sons",
        f"{INVOICES}?min=1&provider={record_ids['other']}": "Amber Care",
    }


def test_chips_name_what_is_set_and_remove_it(owner: Browser, import_invoice: Put, record_ids: dict[str, str]) -> None:
    import_invoice()
    query = {
        "provider": record_ids["provider"], "from": "1/7/2025", "min": "1000", "warning": "any", "sort": "-total",
        "claim_status": "new",
    }  # fmt: skip
    found = chips(owner.get(INVOICES, params=query).text)
    assert list(found) == [
        "Provider: Amber & Sons", "Invoice date: from 1 Jul 2025", "Total ≥ $1,000", "Claim status: New",
        "Warning: Any warning",
    ]  # fmt: skip
    rest = chips(owner.get(found["Invoice date: from 1 Jul 2025"]).text)
    assert (list(rest), "sort=-total" in found["Invoice date: from 1 Jul 2025"]) == (
        [each for each in found if each[:7] != "Invoice"],
        True,
    )


def test_the_line_above_the_list_has_the_count_and_the_sum(owner: Browser, import_invoice: Put) -> None:
    import_invoice(invoice_number="A", total=10.5)
    assert summary(owner.get(INVOICES).text) == "1 invoice · $10.50"
    import_invoice(invoice_number="B", total=1000)
    import_invoice(invoice_number="C", total=None)
    import_invoice(invoice_number="D", total=5, is_deleted=True)
    page = owner.get(INVOICES).text
    assert summary(page) == "4 invoices · $1,010.50"  # without what was deleted
    assert '<span class="tag">deleted</span>' in page
    assert summary(owner.get(INVOICES, params={"min": "100"}).text) == "1 invoice · $1,000.00"


@pytest.mark.parametrize("filters", [{}, {"claim_status": "new"}, {"max": "120"}])
def test_pages_lead_forward_and_back(owner: Browser, many_invoices: list[str], filters: dict[str, str]) -> None:
    first = owner.get(INVOICES, params=filters).text
    assert (listed(first), link(first, "prev")) == (many_invoices[:50], None)
    assert ("1–50 of 120" in first, summary(first)) == (True, "120 invoices · $7,260.00")
    second = owner.get(link(first, "next") or "").text
    assert (listed(second), "51–100 of 120" in second) == (many_invoices[50:100], True)
    third = owner.get(link(second, "next") or "").text
    assert (listed(third), link(third, "next"), "101–120 of 120" in third) == (many_invoices[100:], None, True)
    back = owner.get(link(third, "prev") or "").text
    assert (listed(back), "51–100 of 120" in back) == (many_invoices[50:100], True)
    again = owner.get(link(back, "prev") or "").text
    assert (listed(again), link(again, "prev"), "1–50 of 120" in again) == (many_invoices[:50], None, True)
    assert all(f"{name}={value}" in (link(again, "next") or "") for name, value in filters.items())


def test_every_sort_has_a_header_that_reverses_it(owner: Browser, many_invoices: list[str]) -> None:
    by_total = [f"N{number:03}" for number in range(120)]
    orders = {
        "-invoice_date": [f"N{number:03}" for number in (*range(99, -1, -1), *range(119, 99, -1))],
        "invoice_date": by_total,
        "total": by_total,
        "-total": by_total[::-1],
        "received_at": by_total,
        "-received_at": many_invoices,
    }
    for sort, numbers in orders.items():
        page = owner.get(INVOICES, params={"sort": sort, "size": "100"}).text
        rest = owner.get(link(page, "next") or "").text
        assert listed(page) + listed(rest) == numbers, sort
        assert listed(owner.get(link(rest, "prev") or "").text) == numbers[:100]
        direction = "descending" if sort.startswith("-") else "ascending"
        assert page.count(f'aria-sort="{direction}"') == 1
    headers = re.findall(r'<th scope="col"[^>]*><a href="([^"]+)">([\w ]+)', owner.get(INVOICES).text)
    assert [(unescape(url), label.strip()) for url, label in headers] == [
        (f"{INVOICES}?sort=invoice_number", "Number"), (f"{INVOICES}?sort=received_at", "Received"),
        (f"{INVOICES}?sort=-invoice_date", "Invoice date"), (f"{INVOICES}?sort=provider", "Provider"),
        (f"{INVOICES}?sort=participant", "Participant"), (f"{INVOICES}?sort=-total", "Total"),
        (f"{INVOICES}?sort=claim_status", "Claim"), (f"{INVOICES}?sort=approval_status", "Approval"),
    ]  # fmt: skip


def test_rows_are_sorted_by_status_and_grouped_by_record(
    owner: Browser, import_invoice: Put, record_ids: dict[str, str]
) -> None:
    for number, provider, status in (("A", "provider", "paid"), ("B", "other", "new"), ("C", "provider", "on_hold")):
        import_invoice(invoice_number=number, pm_provider_id=record_ids[provider], claim_status=status)
    import_invoice(invoice_number="D", pm_provider_id=None, claim_status="new", participant_id=None)
    orders = {
        "provider": ["A", "C", "B", "D"], "-provider": ["B", "C", "A", "D"], "participant": ["A", "B", "C", "D"],
        "claim_status": ["B", "D", "C", "A"], "-invoice_number": ["D", "C", "B", "A"],
    }  # fmt: skip
    for filters in ({}, {"deleted": "no"}):
        for sort, numbers in orders.items():
            page = owner.get(INVOICES, params={"sort": sort, **filters}).text
            assert listed(page) == numbers, (sort, filters)
            direction = {"provider": "other", "participant": "other"}.get(sort.removeprefix("-"))
            assert not direction or page.count(f'aria-sort="{direction}"') == 1


def test_a_cursor_of_another_list_leads_to_the_first_page(owner: Browser, many_invoices: list[str]) -> None:
    onward = link(owner.get(INVOICES).text, "next") or ""
    for url in (f"{onward}&claim_status=new", f"{onward}x", f"{INVOICES}?after=odd", f"{INVOICES}?before=s.odd"):
        assert listed(owner.get(url).text) == many_invoices[:50], url


def test_the_file_has_the_rows_order_and_columns_of_the_list(
    owner: Browser, import_invoice: Put, many_invoices: list[str]
) -> None:
    import_invoice(
        invoice_number="=1+1", total=2000, claim_status="on_hold", approval_status="not_required",
        created_at="2026-02-03T13:30:00Z",
    )  # fmt: skip
    import_invoice(invoice_number=None, total=1999)
    url = f"{INVOICES}?min=11&sort=-total"
    page = owner.get(url).text
    assert ">No number</a>" in page
    export = re.search(r'href="([^"]+\.csv[^"]*)"', page)
    assert export
    response = owner.get(unescape(export[1]))
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    header, *rows = csv.reader(io.StringIO(response.content.decode("utf-8-sig")))
    labels = re.findall(r'<th scope="col"[^>]*>(?:<a [^>]*>)?([\w ]+)', page)
    assert header[: len(labels)] == [each.strip() for each in labels]
    assert [row[0] for row in rows] == ["'=1+1", "", *[f"N{number:03}" for number in range(119, 9, -1)]]
    assert rows[0][:8] == [
        "'=1+1", "2026-02-04 00:30", "2026-01-15", "Amber & Sons", "Ann Lee", "2000", "On hold", "Not required",
    ]  # fmt: skip
    export_event = owner.activity("?type=export.created")
    assert all(text in export_event for text in ("invoices", "min=11", "112"))


def open_in_list(owner: Browser, number: str, **query: str) -> str:
    """The address of an invoice as the list has it."""
    page = owner.get(INVOICES, params=query).text
    found = re.search(rf'class="lead"><a href="([^"]+)">{number}</a>', page)
    assert found, page
    return unescape(found[1])


def place(page: str) -> tuple[str | None, str | None, str | None]:
    """The position in the list, and the addresses of the previous and the next invoice."""
    position = re.search(r"<span>([\d,]+ of [\d,]+|No longer in the list)</span>", page)
    return position and position[1], link(page, "prev"), link(page, "next")


def test_an_invoice_of_a_list_leads_to_its_neighbours_and_back(owner: Browser, many_invoices: list[str]) -> None:
    query = {"min": "100", "sort": "total"}
    first, second, last = (open_in_list(owner, number, **query) for number in ("N099", "N100", "N119"))
    assert place(owner.get(first).text) == ("1 of 21", None, second)
    assert place(owner.get(second).text)[:2] == ("2 of 21", first)
    assert place(owner.get(last).text)[::2] == ("21 of 21", None)
    back = re.search(r'<li><a href="([^"]+)">Invoices</a></li>', owner.get(second).text)
    assert back
    assert unescape(back[1]) == f"{INVOICES}?min=100&sort=total"
    onward = link(owner.get(INVOICES).text, "next") or ""
    third_page = owner.get(link(owner.get(onward).text, "next") or "")
    deep = unescape(re.findall(r'class="lead"><a href="([^"]+)"', third_page.text)[3])
    page = owner.get(deep).text
    assert place(page)[0] == "104 of 120"
    back = re.search(r'<li><a href="([^"]+)">Invoices</a></li>', page)
    assert back
    assert listed(owner.get(unescape(back[1])).text) == many_invoices[100:]


def test_without_a_list_or_with_an_odd_one_a_page_has_no_place(owner: Browser, import_invoice: Put) -> None:
    ident = import_invoice()
    for suffix in (
        "",
        "?list=min%3Dlots",
        f"?list={'x' * 5000}",
        "?list=%2500%25ff",
        "?list=after%3Ds.odd%26before%3D%3C",
    ):
        page = owner.get(f"{INVOICES}/{ident}{suffix}")
        assert (page.status_code, place(page.text)[1:]) == (200, (None, None)), suffix


def test_ignoring_a_warning_leads_on_to_the_next_invoice(owner: Browser, import_invoice: Put) -> None:
    faults = {"invoice_date": "2099-01-01"}
    import_invoice(invoice_number="FIRST", total=3, subtotal=3, **faults)
    import_invoice(invoice_number="SECOND", total=2, subtotal=2, **faults)
    import_invoice(invoice_number="PLAIN", total=1)
    query = {"warning": "check_dates", "sort": "-total"}
    first, second = (open_in_list(owner, number, **query) for number in ("FIRST", "SECOND"))
    action = re.search(r'action="([^"]+/warnings/check_dates/ignore[^"]*)"', owner.get(first).text)
    assert action
    response = owner.submit(unescape(action[1]), {"reason": "A leap year"})
    assert (response.status_code, response.headers["location"]) == (303, second)
    page = owner.get(second).text
    assert "of invoice FIRST ignored. This is the next invoice." in page
    assert place(page) == ("1 of 1", None, None)
    gone = owner.submit(unescape(action[1]), {"reason": "Again"})
    assert gone.headers["location"] == first
    assert place(owner.get(first).text) == ("No longer in the list", None, second)
    action = re.search(r'action="([^"]+/warnings/check_dates/ignore[^"]*)"', owner.get(second).text)
    assert action
    invalid = owner.submit(unescape(action[1]), {"reason": ""})
    assert (invalid.status_code, f'action="{action[1]}"' in invalid.text) == (422, True)
    # The last one of the list stays, and so does one with another warning.
    assert owner.submit(unescape(action[1]), {"reason": "A leap year"}).headers["location"] == second


def test_invoices_are_selected_by_the_account_manager_of_the_participant(
    owner: Browser, client: Client, import_invoice: Put, import_rows: Callable[..., Any]
) -> None:
    manager = str(uuid7())
    assert not import_rows(client, "account-managers", [{"id": manager, "first_name": "Kim"}]).errors
    theirs = client.create("/participants", {"first_name": "Bo", "account_manager_id": manager})["id"]
    import_invoice(invoice_number="OTHER")
    import_invoice(invoice_number="THEIRS", participant_id=theirs)
    for more in ({}, {"claim_status": "unpaid", "deleted": "no"}, {"received": "this_week", "warning": ""}):
        assert listed(owner.get(INVOICES, params={"account_manager": manager, **more}).text) == ["THEIRS"], more
