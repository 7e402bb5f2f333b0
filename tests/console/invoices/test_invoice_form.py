"""Invoices that people type, with and without JavaScript: new ones, and changes of existing ones."""

import re
from collections.abc import Callable
from datetime import date, datetime, timedelta
from html import unescape
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from support.client import Client
from support.console import Account, Browser, main_text
from support.factories import INVOICE_LINE, import_invoice
from support.form_helpers import form_fields, require_linked_errors
from support.server import RunningServer

INVOICES = "/console/invoices"
NEW = f"{INVOICES}/new"
ITEM = "01_011_0107_1_1"


@pytest.fixture
def record_ids(client: Client) -> dict[str, str]:
    """A participant and a provider, whose names and numbers a form takes."""
    person = {"first_name": "Ann", "last_name": "Lee", "participant_number": "430205409"}
    provider = {"entity_name": "Amber & Sons", "abn": "51824753556"}
    return {
        "participant": client.create("/participants", person)["id"],
        "provider": client.create("/providers", provider)["id"],
    }


def line(number: int, **values: str) -> dict[str, str]:
    """A line of the form with its first price in dollars and all fields that a browser sends."""
    fields = {
        "id": "", "removed": "", "service_item_number": ITEM, "description": "Mowing", "service_date_from": "3/11/2026",
        "service_date_to": "3/11/2026", "quantity": "2", "unit_price": "60", "total_price": "", "gst_code": "P2",
        "claim_type": "", "cancellation_reason": "",
    } | values  # fmt: skip
    return {f"line-{number}-{name}": text for name, text in fields.items()}


def typed(**values: str) -> dict[str, str]:
    """A form with one line as somebody types it."""
    return {
        "provider": "51 824 753 556", "provider_id": "", "participant": "ann lee", "participant_id": "",
        "invoice_number": "INV-7", "invoice_date": "4 Nov 2026", "due_date": "18/11/2026", "received": "5/11/2026",
        "payee": "provider", "assigned_to": "", "external_id": "", "subtotal": "", "tax": "", "total": "$120.00",
    } | line(1) | values  # fmt: skip


def created_id(response: Any) -> str:
    assert response.status_code == 303, main_text(response.text)
    return response.headers["location"].rpartition("/")[2]


def check_text(page: str) -> str:
    """What the form says about the invoice as it is typed."""
    found = re.search(r'<div class="check".*?</div>\s*</section>', page, re.DOTALL)
    assert found
    return re.sub(r"\s+", " ", unescape(re.sub(r"<[^>]*>", " ", found[0]))).strip()


def test_an_invoice_is_typed_with_names_numbers_and_dates_as_on_paper(
    owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    saved = owner.submit(NEW, typed() | line(2) | line(4, quantity="1.5", unit_price="1,000.50", gst_code="P1"))
    invoice = client.get(f"/invoices/{created_id(saved)}").json()
    expected = {
        "invoice_number": "INV-7", "invoice_date": "2026-11-04", "due_date": "2026-11-18", "payee": "provider",
        "participant_id": record_ids["participant"], "pm_provider_id": record_ids["provider"],
        "received_at": "2026-11-04T13:00:00Z", "subtotal": 1740.75, "tax": 150.08, "total": 120, "external_id": None,
    }  # fmt: skip
    assert {name: invoice[name] for name in expected} == expected
    names = ("description", "service_item_number", "service_date_from", "quantity", "unit_price", "total_price")
    assert [[each[name] for name in names] for each in invoice["line_items"]] == [
        ["Mowing", ITEM, "2026-11-03", 2, 60, 120],
        ["Mowing", ITEM, "2026-11-03", 2, 60, 120],
        ["Mowing", ITEM, "2026-11-03", 1.5, 1000.5, 1500.75],
    ]
    assert invoice["state_management"]["errors"] == ["check_total"]


def test_a_form_is_shown_with_the_participant_or_the_provider_of_the_page_that_leads_to_it(
    owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    for kind, page in (("participant", "participants"), ("provider", "providers")):
        path = f"{NEW}?{kind}={record_ids[kind]}"
        leading = f"/console/{page}/{record_ids[kind]}" + ("/invoices" if kind == "participant" else "")
        assert f'href="{path}"' in owner.get(leading).text
        form = form_fields(owner, path)
        assert form[f"{kind}_id"] == [record_ids[kind]]
        saved = owner.submit(path, form | {"invoice_number": kind, "next": "yes"})
        assert saved.headers["location"].startswith(f"{NEW}?received=")
        assert f"{kind}={record_ids[kind]}" in saved.headers["location"]
        assert f"Invoice {kind} added. Enter the next one." in owner.get(saved.headers["location"]).text
    assert 'href="/console/invoices/new"' in owner.get(INVOICES).text
    found = {each["invoice_number"]: each for each in client.get("/invoices").json()["data"]}
    assert found["participant"]["participant_id"] == record_ids["participant"]
    assert found["provider"]["pm_provider_id"] == record_ids["provider"]


def test_what_cannot_be_read_is_named_and_nothing_is_lost(
    owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    client.create("/providers", {"entity_name": "Amber Gardens"})
    wrong = {"provider": "Amber", "participant": "nobody", "invoice_date": "31/2/2026", "received": "soon"}
    wrong |= {"total": "a lot", **line(2, quantity="two", unit_price="1.999999999999")}
    response = owner.submit(NEW, typed(**wrong))
    assert response.status_code == 422
    names = ["provider", "participant", "invoice_date", "received", "line-2-quantity", "line-2-unit_price", "total"]
    assert require_linked_errors(response.text) == names
    text = main_text(response.text)
    for sentence in (
        "Which provider?", "No participant matches “nobody”.", "Invoice date 31 Feb 2026 doesn’t exist.",
        "Line 2: quantity must be a number, such as 1,000.50.", "Total must be a number, such as 1,000.50.",
    ):  # fmt: skip
        assert sentence in text
    assert 'value="a lot"' in response.text
    for day in ("1/1/0001", "31/12/9999"):
        response_to_day = main_text(owner.submit(NEW, typed(received=day)).text)
        assert "Received must be in the years 2 to 9998." in response_to_day
    choice = re.search(r'name="provider_choice" value="([^"]+)"> Amber Gardens', response.text)
    assert choice
    saved = owner.submit(NEW, typed(provider="Amber", provider_choice=choice[1]))
    assert client.get(f"/invoices/{created_id(saved)}").json()["pm_provider_id"] == choice[1]
    places = owner.submit(NEW, typed(total="120.005", external_id="X1"))
    assert require_linked_errors(places.text) == ["total"]
    assert created_id(owner.submit(NEW, typed(external_id="X1")))
    assert owner.submit(NEW, typed(external_id="X1")).status_code in (409, 422)


def test_lines_are_changed_without_javascript(owner: Browser, record_ids: dict[str, str]) -> None:
    def step(name: str, form: dict[str, Any]) -> dict[str, Any]:
        page = owner.submit(f"{NEW}/step", form | {"step": name})
        assert page.status_code == 200
        assert 'formaction="/console/invoices/new/step"' in page.text
        return fields_of(page.text)

    form = step("duplicate-1", typed())
    assert (form["line-2-quantity"], form["line-2-unit_price"]) == ("2", "60")
    form = step("swap-2", form)
    assert (form["line-2-quantity"], form["line-2-unit_price"]) == ("60", "2")
    form = step("remove-1", form)
    assert (form["line-1-removed"], form["line-2-removed"]) == ("1", "")
    assert step("restore-1", form)["line-1-removed"] == ""
    form = step("add", form)
    assert (form["line-3-quantity"], form["line-3-gst_code"]) == ("", "P2")
    for nonsense in ("", "explode-1", "swap-99999", "remove-x"):
        assert step(nonsense, form) == form


def fields_of(page: str) -> dict[str, str]:
    """The fields of the lines, and of the header, as the page shows them."""
    page = page.partition("data-invoice-form")[2].partition("</form>")[0]
    page = re.sub(r"<template.*?</template>", "", page, flags=re.DOTALL)
    found = re.findall(r'<input [^>]*?name="([^"]+)"[^>]*? value="([^"]*)"', page)
    found += re.findall(r'<textarea [^>]*name="([^"]+)"[^>]*>\n(.*?)</textarea>', page, re.DOTALL)
    for name, options in re.findall(r'<select [^>]*name="([^"]+)"[^>]*>(.*?)</select>', page, re.DOTALL):
        found += [(name, chosen) for chosen in re.findall(r'value="([^"]*)" selected', options)[:1]]
    return {name: unescape(text) for name, text in found if name != "csrf"}


def test_sums_and_warnings_are_those_that_the_saved_invoice_will_have(
    owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    def check(**values: str) -> str:
        return check_text(owner.submit(f"{NEW}/step", typed(**values) | {"step": "totals"}).text)

    first = "This is the first invoice from this provider: check who it is."
    assert check() == f"{first} Lines $120.00 GST $0.00 Together $120.00 Everything adds up."
    before = client.get("/invoices").json()["pagination"]["total"]
    assert before == 0
    text = check(invoice_number="", total="130", invoice_date="1/1/2099", **line(2, service_item_number="1"))
    assert text.startswith("Not filled in: number.")
    for part in (
        "Subtotal $240.00 plus tax $0.00 is $240.00, the invoice says $130.00.",
        "days in the future.", "Line 2: “1” isn’t a valid number", "Lines $240.00",
    ):  # fmt: skip
        assert part in text
    assert "Line 2: quantity must be a number" in check(**line(2, quantity="x"))
    page = owner.submit(f"{NEW}/step", typed(total="") | {"step": "totals"}).text
    assert 'name="line-1-total_price" value="" autocomplete="off" class="number" inputmode="decimal"' in page
    assert page.count('placeholder="$120.00"') == 3  # of the line, the subtotal and the total
    owner.submit(NEW, typed())
    assert "An earlier invoice from this provider has the same number." in check()


def test_an_invoice_is_edited_and_its_untouched_values_stay(
    server: RunningServer, owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    lines = [INVOICE_LINE | {"description": "First\nline"}, INVOICE_LINE | {"description": "Second"}]
    ident = import_invoice(server, client, record_ids, line_items=lines, total=2469, subtotal=2469)
    path = f"{INVOICES}/{ident}"
    before = client.get(f"/invoices/{ident}").json()
    form = form_fields(owner, f"{path}/edit")
    assert owner.submit(f"{path}/edit", form).headers["location"] == path
    assert client.get(f"/invoices/{ident}").json() == before
    change = {"total": "1,851.75", "subtotal": "1851.75", "line-1-removed": "1", "line-2-quantity": "3"}
    change |= {"line-2-total_price": "", **line(3, quantity="0", description="Third", gst_code="P2")}
    response = owner.submit(f"{path}/edit", form | change)
    assert "Changes saved: Subtotal, Total, Lines." in owner.get(response.headers["location"]).text
    after = client.get(f"/invoices/{ident}").json()
    assert [(each["description"], each["is_deleted"], each["total_price"]) for each in after["line_items"]] == [
        ("First\nline", True, 1234.5), ("Second", False, 1851.75), ("Third", False, 0),
    ]  # fmt: skip
    assert (after["total"], after["received_at"]) == (1851.75, before["received_at"])


def test_a_line_that_somebody_else_adds_meanwhile_is_kept(
    server: RunningServer, owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    ident = import_invoice(server, client, record_ids)
    path = f"{INVOICES}/{ident}/edit"
    form = form_fields(owner, path)
    first = client.get(f"/invoices/{ident}").json()["line_items"][0]
    added = {"line_items": [{"id": first["id"]}, {"description": "From elsewhere", "total_price": 5}]}
    client.put(f"/invoices/{ident}", added).raise_for_status()
    conflict = owner.submit(path, form | {"line-1-quantity": "4"})
    assert conflict.status_code == 409
    assert "Someone else changed this while you were editing." in conflict.text
    version = re.search(r'name="was" value="([^"]+)"', conflict.text)
    assert version
    assert owner.submit(path, form | {"line-1-quantity": "4", "was": version[1]}).status_code == 303
    lines = client.get(f"/invoices/{ident}").json()["line_items"]
    assert [(each["quantity"], each["is_deleted"]) for each in lines] == [(4, False), (None, False)]


def test_locked_lines_are_no_fields_and_lock_the_header(
    server: RunningServer, owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    lines = [INVOICE_LINE | {"claim_status": "pending"}, INVOICE_LINE]
    ident = import_invoice(server, client, record_ids, claim_status="pending", line_items=lines)
    path = f"{INVOICES}/{ident}/edit"
    form = form_fields(owner, path)
    assert ("line-1-quantity" in form, "line-2-quantity" in form) == (False, True)
    assert "1 line is claimed or paid, and can’t be changed here" in main_text(owner.get(path).text)
    locked = owner.submit(path, form | {"invoice_number": "OTHER"})
    assert (locked.status_code, "Line 1 is pending" in main_text(locked.text)) == (409, True)
    assert owner.submit(path, form | {"due_date": "1/12/2026"}).status_code == 303
    assert client.get(f"/invoices/{ident}").json()["due_date"] == "2026-12-01"


def test_saving_leads_to_the_next_invoice_of_the_list(
    server: RunningServer, owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    first, second = (import_invoice(server, client, record_ids, invoice_number=each) for each in ("A", "B"))
    path = f"{INVOICES}/{first}/edit?list=sort=invoice_number"
    assert "Save and edit next" in owner.get(path).text
    saved = owner.submit(path, form_fields(owner, path) | {"next": "yes", "due_date": "1/12/2026"})
    assert saved.headers["location"] == f"{INVOICES}/{second}/edit?list=sort=invoice_number"


def test_an_invoice_is_assigned_to_a_colleague_and_a_number_of_several_people_is_chosen(
    owner: Browser, client: Client, record_ids: dict[str, str], new_account: Callable[..., Account]
) -> None:
    colleague = new_account("manager")
    saved = owner.submit(NEW, typed(assigned_to=str(colleague.account_id)))
    ident = created_id(saved)
    assert client.get(f"/invoices/{ident}").json()["assigned_to"] == str(colleague.account_id)
    client.create("/participants", {"first_name": "Ann", "last_name": "Twin", "participant_number": "430205409"})
    made = client.create("/invoices", {"participant_number": "430205409"})["id"]
    page = owner.get(f"{INVOICES}/{made}/edit").text
    assert "Which participant?" in page
    form = form_fields(owner, f"{INVOICES}/{made}/edit") | {"participant_choice": record_ids["participant"]}
    assert owner.submit(f"{INVOICES}/{made}/edit", form).status_code == 303
    assert client.get(f"/invoices/{made}").json()["participant_id"] == record_ids["participant"]


def test_an_invoice_of_a_program_with_very_many_lines_keeps_them(owner: Browser, client: Client) -> None:
    lines = [{"description": f"Line {each}", "total_price": 1} for each in range(101)]
    ident = client.create("/invoices", {"line_items": lines, "total": 101})["id"]
    path = f"{INVOICES}/{ident}/edit"
    assert "This invoice has too many lines for a form." in owner.get(path).text
    assert owner.submit(path, form_fields(owner, path) | {"invoice_number": "LONG"}).status_code == 303
    invoice = client.get(f"/invoices/{ident}").json()
    assert (invoice["invoice_number"], len(invoice["line_items"])) == ("LONG", 101)
    assert not any(each["is_deleted"] for each in invoice["line_items"])
    typed_lines = {name: text for number in range(1, 102) for name, text in line(number).items()}
    assert "At most 100 lines can be entered here." in owner.submit(NEW, typed(**typed_lines)).text


def test_dates_are_typed_without_a_year(owner: Browser, client: Client, record_ids: dict[str, str]) -> None:
    today = datetime.now(ZoneInfo("Australia/Sydney")).date()
    yesterday, tomorrow = today - timedelta(days=1), today + timedelta(days=1)
    short, day_after = f"{yesterday.day}/{yesterday.month}", f"{tomorrow.day} {tomorrow:%b}"
    dates = {"invoice_date": short, "received": f"{yesterday.day} {yesterday:%B}", "due_date": day_after}
    saved = owner.submit(NEW, typed(**dates) | line(1, service_date_from=day_after, service_date_to=short))
    invoice = client.get(f"/invoices/{created_id(saved)}").json()
    first = invoice["line_items"][0]
    assert (invoice["invoice_date"], invoice["due_date"]) == (yesterday.isoformat(), tomorrow.isoformat())
    assert first["service_date_to"] == yesterday.isoformat()
    assert date.fromisoformat(first["service_date_from"]) < today


def test_saving_links_the_open_warnings_and_can_lead_back_to_the_list(
    server: RunningServer, owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    added = owner.submit(NEW, typed() | {"finish": "yes"})
    assert added.headers["location"] == INVOICES
    page = owner.get(INVOICES).text
    ident = client.get("/invoices").json()["data"][0]["id"]
    assert "Invoice INV-7 added." in page
    assert f'href="{INVOICES}/{ident}#warnings"' not in page  # it has none
    path = f"{INVOICES}/{ident}/edit?list=sort=invoice_number"
    form = form_fields(owner, path) | {"total": "99", "finish": "yes"}
    saved = owner.submit(path, form)
    assert saved.headers["location"] == f"{INVOICES}?sort=invoice_number"
    link = f'<a href="{INVOICES}/{ident}?list=sort=invoice_number#warnings">1 open warning</a>'
    assert link in owner.get(saved.headers["location"]).text
    path = f"{INVOICES}/{ident}/edit?review=queue%3Dheld"
    saved = owner.submit(path, form_fields(owner, path) | {"finish": "yes"})
    assert saved.headers["location"] == f"/console/review?queue=held&after={ident}"


def test_the_number_tells_people_of_one_name_apart(owner: Browser, client: Client, record_ids: dict[str, str]) -> None:
    other = client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})["id"]
    refused = owner.submit(NEW, typed())
    assert (refused.status_code, "Which participant?" in refused.text) == (422, True)
    for ident, number in ((record_ids["participant"], "NDIS 430 205 409"), (other, "No NDIS number")):
        page = owner.submit(f"{NEW}/step", typed(participant_choice=ident) | {"step": "totals"}).text
        assert f'data-picked="participant">{number}<' in page
        assert 'data-picked="provider">ABN 51 824 753 556<' in page


def test_an_error_of_the_server_is_beside_the_field_of_its_line(
    server: RunningServer, owner: Browser, client: Client, record_ids: dict[str, str]
) -> None:
    lines = [
        INVOICE_LINE | {"is_deleted": True}, INVOICE_LINE | {"claim_status": "pending"}, INVOICE_LINE, INVOICE_LINE,
    ]  # fmt: skip
    ident = import_invoice(server, client, record_ids, line_items=lines)
    path = f"{INVOICES}/{ident}/edit?review=queue%3Dheld"
    form = form_fields(owner, path) | {"line-3-removed": "1"} | line(5) | {"line-5-unit_price": "1" + "0" * 13}
    for name, label in {"quantity": "quantity", "unit_price": "unit price", "total_price": "Total"}.items():
        refused = owner.submit(path, form | {f"line-4-{name}": "1" + "0" * 13})
        assert refused.status_code == 422
        assert require_linked_errors(refused.text) == [f"line-4-{name}", "line-5-unit_price"]
        assert f"Line 4: {label} must be" in main_text(refused.text)
