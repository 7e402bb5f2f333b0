"""Holding, releasing, cancelling, reopening, excluding and assigning invoices: on their pages, and several at once."""

import re
from collections.abc import Callable
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support import factories
from support.claims import Office
from support.client import Client
from support.console import Account, Browser, main_text
from support.factories import INVOICE_LINE
from support.form_helpers import event_summaries, form_fields
from support.importing import import_records
from support.server import RunningServer
from support.webhooks import wait_for_events

INVOICES = "/console/invoices"
Put = Callable[..., str]


@pytest.fixture
def record_ids(client: Client) -> dict[str, str]:
    return {
        "participant": client.create("/participants", {"first_name": "Ann", "last_name": "Lee"})["id"],
        "provider": client.create("/providers", {"entity_name": "Amber & Sons", "abn": "51824753556"})["id"],
    }


@pytest.fixture
def import_invoice(server: RunningServer, client: Client, record_ids: dict[str, str]) -> Put:
    return partial(factories.import_invoice, server, client, record_ids)


def status(browser: Browser, ident: str) -> str:
    """The sentence about an invoice."""
    found = re.search(r'<p class="status-line[^>]*>(.*?)</p>', browser.get(f"{INVOICES}/{ident}").text, re.DOTALL)
    assert found
    return main_text(f"<main>{found[1]}</main>")


def offered(browser: Browser, ident: str, actions: str = "[a-z-]+") -> set[str]:
    """The actions on an invoice that its page offers."""
    page = browser.get(f"{INVOICES}/{ident}").text
    return set(re.findall(rf'action="{INVOICES}/{ident}/({actions})"', page))


def undo(browser: Browser, page: str) -> Any:
    """Follow the link of the message that a page shows once, and confirm."""
    found = re.search(r'role="status"><span dir="auto">[^<]*</span> <a href="([^"]+)">Undo</a>', page)
    assert found, main_text(page)
    return browser.submit(found[1], form_fields(browser, found[1]))


@pytest.mark.parametrize("name, reason, after, offers", [
    ("hold", "Price above\r\nlimit", "Held since {day} by Robin Hale: Price above limit. Next: release it.",
     {"release", "cancel", "wont-claim", "assign", "request-approval"}),
    ("cancel", "Billed twice", "Cancelled since {day}: Billed twice. Next: nothing, unless you reopen it.",
     {"reopen", "assign"}),
    ("wont-claim", "Too small", "Won’t be claimed: Too small. Next: nothing, unless you reopen it.",
     {"hold", "cancel", "reopen", "assign"}),
])  # fmt: skip
def test_an_action_has_a_reason_and_its_timeline_undoes_it(
    owner: Browser, client: Client, import_invoice: Put, name: str, reason: str, after: str, offers: set[str]
) -> None:
    ident = import_invoice()
    before = client.get(f"/invoices/{ident}").json()
    assert offered(owner, ident) == {"hold", "cancel", "wont-claim", "assign", "request-approval"}
    missing = owner.submit(f"{INVOICES}/{ident}/{name}", {"reason": " "})
    assert (missing.status_code, "must have 1 to 10000 characters" in missing.text) == (422, True)
    done = owner.submit(f"{INVOICES}/{ident}/{name}", {"reason": reason})
    assert done.headers["location"] == f"{INVOICES}/{ident}"
    page = owner.get(done.headers["location"]).text
    sentence = status(owner, ident)
    assert sentence == after.replace("{day}", sentence.partition("since ")[2].partition(":")[0].partition(" by")[0])
    assert offered(owner, ident) == offers
    again = owner.submit(f"{INVOICES}/{ident}/{name}", {"reason": reason})
    assert (again.status_code, "so it can&#39;t be" in again.text or "already excluded" in again.text) == (409, True)
    assert undo(owner, page).status_code == 303
    assert client.get(f"/invoices/{ident}").json() | {"updated_at": None} == before | {"updated_at": None}


def test_a_hold_is_released_and_a_cancelled_invoice_reopened_with_one_click(
    server: RunningServer, owner: Browser, client: Client, import_invoice: Put
) -> None:
    ident = import_invoice(claim_status="on_hold")
    assert owner.submit(f"{INVOICES}/{ident}/release").status_code == 303
    page = owner.get(f"{INVOICES}/{ident}").text
    assert status(owner, ident).endswith("Nothing is left to check. Next: claim it.")
    assert undo(owner, page).status_code == 303
    assert client.get(f"/invoices/{ident}").json()["claim_status"] == "on_hold"
    assert owner.submit(f"{INVOICES}/{ident}/cancel", {"reason": "Twice"}).status_code == 303
    assert owner.submit(f"{INVOICES}/{ident}/reopen").status_code == 303
    assert client.get(f"/invoices/{ident}").json()["claim_status"] == "on_hold"
    verbs = [each.partition(" ")[0] for each in event_summaries(server, ident)]
    assert verbs == [
        "invoice.created", "invoice.released", "invoice.held", "invoice.cancelled", "invoice.reopened",
    ]  # fmt: skip


def test_an_invoice_is_assigned_and_the_list_leads_on(
    owner: Browser, client: Client, import_invoice: Put, new_account: Callable[..., Account]
) -> None:
    colleague = new_account("manager")
    first, second = (import_invoice(invoice_number=each, claim_status="on_hold") for each in ("A", "B"))
    place = "list=claim_status=on_hold%26sort=invoice_number"
    form = {"assigned_to": str(colleague.account_id)}
    done = owner.submit(f"{INVOICES}/{first}/assign?{place}", form)
    assert done.headers["location"].startswith(f"{INVOICES}/{first}?list=")
    page = owner.get(done.headers["location"]).text
    assert client.get(f"/invoices/{first}").json()["assigned_to"] == str(colleague.account_id)
    assert undo(owner, page).status_code == 303
    assert client.get(f"/invoices/{first}").json()["assigned_to"] is None
    unknown = owner.submit(f"{INVOICES}/{first}/assign", {"assigned_to": first})
    assert unknown.status_code == 422
    released = owner.submit(f"{INVOICES}/{first}/release?{place}")
    assert released.headers["location"].startswith(f"{INVOICES}/{second}?list=")
    assert "Invoice A released. This is the next invoice." in owner.get(released.headers["location"]).text


def test_several_invoices_are_changed_and_come_back_with_one_undo(
    owner: Browser, client: Client, import_invoice: Put
) -> None:
    ids = [import_invoice(invoice_number=each) for each in ("A", "B")]
    paid = import_invoice(invoice_number="P", claim_status="paid", line_items=[INVOICE_LINE | {"claim_status": "paid"}])
    forms: dict[str, dict[str, Any]] = {
        "hold": {"reason": "Check"}, "cancel": {"reason": "Twice"}, "wont-claim": {"reason": "Small"},
        "assign": {"assigned_to": ""}, "release": {}, "reopen": {},
    }  # fmt: skip
    listed = owner.get(INVOICES).text
    for name, form in forms.items():
        path = f"{INVOICES}/selected/{name}"
        assert f'formaction="{path}"' in listed
        assert "3 invoices" in owner.get(path, params={"id": [*ids, paid]}).text
        if name not in ("hold", "cancel", "wont-claim"):
            continue
        before = [client.get(f"/invoices/{each}").json() | {"updated_at": None} for each in ids]
        done = owner.submit(path, form | {"id": [*ids, paid]}).text
        assert "Not changed (1)" in done
        assert "Changed (2)" in done
        assert "The invoice is paid, so it can&#39;t be" in done
        [undo] = {*re.findall(r'href="(/console/activity/[0-9a-f-]+/request)"', done)}
        assert "Undone: 2 changes" in owner.submit(undo).text
        assert [client.get(f"/invoices/{each}").json() | {"updated_at": None} for each in ids] == before
    assert owner.submit(f"{INVOICES}/selected/hold", {"id": ids}).status_code == 422
    owner.submit(f"{INVOICES}/selected/hold", {"id": ids, "reason": "Check"})
    released = owner.submit(
        f"{INVOICES}/selected/release", {"all": "1", "list": "claim_status=on_hold"} | matched(owner)
    )
    assert "Released: 2 invoices" in main_text(released.text)


def matched(browser: Browser) -> dict[str, str]:
    """The number and the digest of the invoices on hold, which the page of an action counts."""
    path = f"{INVOICES}/selected/release?all=1&list=claim_status%3Don_hold"
    found = re.search(r'name="matched" value="([^"]+)"', browser.get(path).text)
    assert found
    return {"matched": found[1]}


def test_a_viewer_has_the_sentence_but_no_actions(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account], import_invoice: Put
) -> None:
    viewer, ident = new_browser(new_account("viewer")), import_invoice(claim_status="on_hold")
    assert (status(viewer, ident).endswith("Next: release it."), offered(viewer, ident)) == (True, set())


def test_the_document_is_shown_beside_the_lines(owner: Browser, client: Client, import_invoice: Put) -> None:
    ident = import_invoice()
    assert "/document" not in owner.get(f"{INVOICES}/{ident}").text
    factories.upload_document(client, ident)
    for path in (f"{INVOICES}/{ident}", f"{INVOICES}/{ident}/edit"):
        page = owner.get(path).text
        assert f'src="{INVOICES}/{ident}/document/pages/1"' in page
        assert f'href="{INVOICES}/{ident}/document"' in page


def test_lines_show_dates_taxes_and_why_they_are_closed(owner: Browser, client: Client, plan_manager_id: UUID) -> None:
    line = {"service_date_from": "2026-11-02", "service_date_to": "2026-11-08", "total_price": 10, "gst_code": "P1"}
    made = client.create("/invoices", {"line_items": [line | {"claim_type": "TRAN"}, {"total_price": 5}]})
    second = made["line_items"][1]["id"]
    client.post(f"/invoices/{made['id']}/lines/{second}/cancel", {"reason": "Twice"}).raise_for_status()
    page = owner.get(f"{INVOICES}/{made['id']}").text
    text = main_text(page)
    for part in ("2 Nov 2026 – 8 Nov 2026", "$10.00 + GST", "Provider travel", "Cancelled Twice"):
        assert part in text


def test_a_line_is_cancelled_reopened_and_claimed_again(owner: Browser, client: Client, import_invoice: Put) -> None:
    lines = [INVOICE_LINE, INVOICE_LINE | {"claim_status": "rejected", "rejection_reason": "Not in the plan"}]
    ident = import_invoice(line_items=lines, total=2469, subtotal=2469)
    first, second = (each["id"] for each in client.get(f"/invoices/{ident}").json()["line_items"])

    def statuses() -> list[str]:
        return [each["claim_status"] for each in client.get(f"/invoices/{ident}").json()["line_items"]]

    path = f"{INVOICES}/{ident}/lines"
    assert offered(owner, ident, "lines/[a-z0-9/-]+") == {
        f"lines/{each}" for each in (f"{first}/cancel", f"{second}/cancel", f"{second}/retry")
    }
    assert owner.submit(f"{path}/{first}/cancel", {"reason": ""}).status_code == 422
    done = owner.submit(f"{path}/{first}/cancel", {"reason": "Twice"})
    assert statuses() == ["cancelled", "rejected"]
    assert undo(owner, owner.get(done.headers["location"]).text).status_code == 303
    assert statuses() == ["new", "rejected"]
    owner.submit(f"{path}/{first}/cancel", {"reason": "Twice"})
    assert owner.submit(f"{path}/{first}/reopen").status_code == 303
    again = owner.submit(f"{path}/{second}/retry")
    page = owner.get(again.headers["location"]).text
    assert ("Line put up for the next claim." in page, "Undo</a>" in page) == (True, False)
    event = wait_for_events(client, "invoice.line_changed", 5)[-1]["id"]
    undo_path = f"/console/activity/{event}/undo"
    refused = owner.submit(undo_path, form_fields(owner, undo_path))
    assert (refused.status_code, "can only be cancelled" in refused.text) == (409, True)
    assert statuses() == ["new", "new"]
    refused = owner.submit(f"{path}/{first}/retry")
    assert (refused.status_code, "Line 1 is new, so it can&#39;t be" in refused.text) == (409, True)
    assert owner.submit(f"{path}/{ident}/reopen").status_code == 404


def test_a_change_by_a_claim_batch_is_undone_only_with_the_batch(
    server: RunningServer,
    owner: Browser,
    client: Client,
    plan_manager_id: UUID,
    new_client: Callable[..., Client],
) -> None:
    office = Office(server, new_client(plan_manager_id, scopes=("read", "write", "claims")))
    office.batch(office.invoice("A1"))
    event = wait_for_events(client, "invoice.line_changed", 1)[-1]["id"]
    undo_path = f"/console/activity/{event}/undo"
    refused = owner.submit(undo_path, form_fields(owner, undo_path))
    assert (refused.status_code, "cancel the claim batch or the payment run" in refused.text) == (409, True)


def test_an_undo_of_a_rest_that_is_put_up_says_how_to_keep_it_out(
    server: RunningServer, owner: Browser, client: Client, plan_manager_id: UUID, new_client: Callable[..., Client]
) -> None:
    office = Office(server, new_client(plan_manager_id, scopes=("read", "write", "claims")))
    line = office.line(id=str(uuid7()), claim_status="partially_paid", paid_amount=100)
    row = office.values("A1", line, id=str(uuid7()), claim_status="partially_paid")
    assert not server.run(import_records(server, plan_manager_id, "invoices", [row])).errors
    office.client.post(f"/invoices/{row['id']}/lines/{line['id']}/claim-rest", {}).raise_for_status()
    event = wait_for_events(client, "invoice.line_changed", 1)[-1]["id"]
    undo_path = f"/console/activity/{event}/undo"
    refused = owner.submit(undo_path, form_fields(owner, undo_path))
    assert (refused.status_code, "hold the invoice" in refused.text) == (409, True)
    assert "cancel the claim batch" not in refused.text


def test_a_line_is_split_at_a_date(owner: Browser, client: Client) -> None:
    line = {"service_date_from": "2026-11-02", "service_date_to": "2026-11-08", "quantity": 7, "unit_price": 10}
    made = client.create("/invoices", {"line_items": [line | {"total_price": 70}, {"total_price": 5}]})
    first, second = (each["id"] for each in made["line_items"])
    ident, path = made["id"], f"{INVOICES}/{made['id']}/lines/{first}/split"
    assert {each for each in offered(owner, ident, "lines/[a-z0-9/-]+") if "split" in each} == {f"lines/{first}/split"}
    assert "/split" not in owner.get(f"{INVOICES}/{ident}").text.partition(second)[2]
    for form, message in (
        ({"date": "2026-11-02", "quantity": "3"}, "must be after the first day"),
        ({"date": "", "quantity": "3"}, "is required"),
        ({"date": "soon", "quantity": "3"}, "must be a date"),
        ({"date": "2026-11-05", "quantity": "7"}, "must be a number above 0 and below 7"),
        ({"date": "2026-11-05", "quantity": "many"}, "must be a number above 0 and below 7"),
    ):
        refused = owner.submit(path, form)
        assert (refused.status_code, message in refused.text) == (422, True), refused.text
    done = owner.submit(path, {"date": "5 Nov 2026", "quantity": "3"})
    page = owner.get(done.headers["location"]).text
    assert "Line split." in page
    parts = [
        (each["service_date_from"], each["service_date_to"], each["quantity"], each["total_price"])
        for each in client.get(f"/invoices/{ident}").json()["line_items"]
        if each["service_date_from"]
    ]
    assert parts == [("2026-11-02", "2026-11-04", 3, 30), ("2026-11-05", "2026-11-08", 4, 40)]
    assert undo(owner, page).status_code == 303
    lines = [each for each in client.get(f"/invoices/{ident}").json()["line_items"] if not each["is_deleted"]]
    assert [(each["id"], each["total_price"]) for each in lines] == [(first, 70), (second, 5)]


def test_the_page_leads_to_invoices_with_the_same_document(owner: Browser, client: Client) -> None:
    first, second = (client.create("/invoices", {"invoice_number": each})["id"] for each in ("A-1", "A-2"))
    for ident in (first, second):
        factories.upload_document(client, ident, b"%PDF-1.7 the same")
    page = owner.get(f"{INVOICES}/{first}").text
    assert f'<a class="break" href="{INVOICES}/{second}">Invoice A-2</a>' in page
    assert "Another invoice has the same document." in page
