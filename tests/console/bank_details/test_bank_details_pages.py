"""Bank details in the console: proposed on the page of a payee, decided by another person."""

import re
from collections.abc import Callable
from uuid import UUID

import pytest

from support.bank_details import ACCOUNT, OTHER_ACCOUNT, Office
from support.client import Client
from support.console import Account, Browser, main_text
from support.importing import import_records
from support.server import RunningServer

CALL = {"called_back": "Called Sam on 02 5550 1234"}


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Office:
    return Office(server, plan_manager_id, new_client(plan_manager_id, scopes=("read", "write", "payments")))


def test_one_person_proposes_and_another_one_approves(office: Office, manager: Callable[..., Browser]) -> None:
    page, form = f"/console/providers/{office.provider_id}", f"/console{office.path}"
    one, two = manager("make_payments", "approve_bank_details"), manager("approve_bank_details")
    assert "No account, so no payments." in main_text(one.get(page).text)
    assert 'name="account_number"' in one.get(f"{form}/new").text
    done = one.submit(form, ACCOUNT | {"account_name": "Café Amber"})
    assert done.headers["location"] == page
    assert "Bank files have its name as “Cafe Amber”." in one.get(page).text
    assert "Waiting Account ending in 678 , proposed by Robin Hale" in main_text(one.get(page).text)
    assert "12345678" not in one.get(page).text

    proposal = f"/console/bank-details/{office.proposal_id()}"
    assert "Another person must approve it." in one.get(proposal).text
    assert f'action="{proposal}/approve"' not in one.get(proposal).text
    assert one.submit(f"{proposal}/approve", CALL).status_code == 409
    listed = main_text(two.get("/console/bank-details").text)
    assert "Amber Physio" in listed
    assert "Call 02 5550 1234" in listed
    assert two.submit(f"{proposal}/approve", {"called_back": " "}).status_code == 422
    assert office.endings() == (None, "678")
    assert two.submit(f"{proposal}/approve", CALL).status_code == 303
    assert office.endings() == ("678", None)
    assert "Approved: none → … 678" in main_text(two.get(page).text)
    assert CALL["called_back"] in two.get(page).text
    assert "No bank details wait for approval." in two.get("/console/bank-details").text


def test_a_replaced_or_decided_proposal_cannot_be_approved(office: Office, manager: Callable[..., Browser]) -> None:
    person, two = office.actor(), manager("approve_bank_details")
    seen = f"/console/bank-details/{office.propose(person)}"
    replaced = f"/console/bank-details/{office.propose(person, OTHER_ACCOUNT)}"
    assert two.get(seen).status_code == 409
    assert two.submit(f"{seen}/approve", CALL).status_code == 409
    assert two.submit(f"{replaced}/reject", {"reject_reason": ""}).status_code == 422
    assert two.submit(f"{replaced}/reject", {"reject_reason": "Nobody knows of it"}).status_code == 303
    assert two.submit(f"{replaced}/approve", CALL).status_code == 409
    assert office.endings() == (None, None)


def test_the_approver_sees_a_changed_phone_and_others_with_the_account(
    office: Office, manager: Callable[..., Browser]
) -> None:
    person = office.actor()
    other = office.client.create("/providers", {"entity_name": "Twin Pty Ltd"})["id"]
    assert office.client.put(f"/providers/{other}/bank-details", ACCOUNT).status_code == 200
    assert office.client.put(f"/providers/{office.provider_id}", {"primary_phone_number": "0491 570 156"}).is_success
    proposal = office.propose(person)
    assert office.client.put(f"/providers/{office.provider_id}", {"primary_phone_number": "0491 570 157"}).is_success
    text = main_text(manager("approve_bank_details").get(f"/console/bank-details/{proposal}").text)
    assert "Phone on record when it was proposed: 0491 570 156" in text
    assert "before: 0491 570 156" in text
    assert "before: 02 5550 1234" in text
    assert "Twin Pty Ltd (provider, proposed)" in text


def test_several_changes_of_the_phone_dont_hide_the_first_number(
    office: Office, manager: Callable[..., Browser]
) -> None:
    for number in ("0491 570 006", "0491 570 156", "0491 570 157"):
        assert office.client.put(f"/providers/{office.provider_id}", {"primary_phone_number": number}).is_success
    page = main_text(
        manager("approve_bank_details").get(f"/console/bank-details/{office.propose(office.actor())}").text
    )
    before = re.findall(r"before: ([\d ]+\d)", page)
    assert before == ["02 5550 1234", "0491 570 006", "0491 570 156"]


@pytest.mark.parametrize("number, is_changed", [("0491 570 156", True), ("02 5550 1234", False)])
def test_the_approver_sees_the_phone_of_a_payee_that_was_deleted_and_created_again(
    office: Office, manager: Callable[..., Browser], number: str, *, is_changed: bool
) -> None:
    assert office.client.delete(f"/providers/{office.provider_id}").is_success
    row = {"id": office.provider_id, "entity_name": "Amber Physio", "primary_phone_number": number}
    report = office.server.run(import_records(office.server, office.plan_manager_id, "providers", [row]))
    assert report.counts.created == 1
    browser, proposal = manager("approve_bank_details"), office.propose(office.actor())
    page = main_text(browser.get(f"/console/bank-details/{proposal}").text)
    assert f"Phone on record when it was proposed: {number}" in page
    assert ("before: 02 5550 1234" in page) == is_changed
    assert ("Phone changed" in browser.get("/console/bank-details").text) == is_changed


@pytest.mark.parametrize(
    "permissions, can_propose, can_approve",
    [
        ((), False, False),
        (("make_payments",), True, False),
        (("approve_bank_details",), False, True),
        (("make_claims", "override_blocks"), False, False),
    ],
)
def test_each_permission_allows_one_part(
    office: Office,
    manager: Callable[..., Browser],
    permissions: tuple[str, ...],
    can_propose: bool,
    can_approve: bool,
) -> None:
    proposal, browser = office.propose(office.actor()), manager(*permissions)
    assert browser.get(f"/console{office.path}/new").status_code == (200 if can_propose else 403)
    assert browser.submit(f"/console/bank-details/{proposal}/approve", CALL).status_code == (
        303 if can_approve else 403
    )
    assert browser.submit(f"/console{office.path}", OTHER_ACCOUNT).status_code == (303 if can_propose else 403)
    assert office.endings() == (
        "678" if can_approve else None,
        "321" if can_propose else None if can_approve else "678",
    )


def test_a_viewer_sees_endings_and_decides_nothing(
    office: Office, new_account: Callable[..., Account], new_browser: Callable[..., Browser]
) -> None:
    proposal, viewer = office.propose(office.actor()), new_browser(new_account("viewer"))
    assert "Account ending in 678" in main_text(viewer.get(f"/console/providers/{office.provider_id}").text)
    assert viewer.get("/console/bank-details").status_code == 403
    for action in ("approve", "reject"):
        assert viewer.submit(f"/console/bank-details/{proposal}/{action}", CALL).status_code == 403
    assert viewer.submit(f"/console{office.path}", OTHER_ACCOUNT).status_code == 403
    assert office.endings() == (None, "678")


def test_another_offices_proposal_is_not_found(
    office: Office,
    new_plan_manager: Callable[[], UUID],
    new_account: Callable[..., Account],
    new_browser: Callable[..., Browser],
) -> None:
    proposal = office.propose(office.actor())
    stranger = new_browser(new_account("owner", new_plan_manager()))
    assert stranger.get(f"/console/bank-details/{proposal}").status_code == 404
    assert stranger.submit(f"/console/bank-details/{proposal}/approve", CALL).status_code == 404
    assert office.endings() == (None, "678")


def test_only_an_owner_approves_the_payee_of_an_estate(
    office: Office, owner: Browser, manager: Callable[..., Browser]
) -> None:
    values = {"first_name": "Kim", "last_name": "Late", "deceased_on": "2026-11-01"}
    page = f"/console/participants/{office.client.create('/participants', values)['id']}"
    payer, approver = manager("make_payments"), manager("approve_bank_details")
    assert "Reimbursements wait until an owner has approved a payee" in main_text(payer.get(page).text)
    assert 'name="estate_payee"' in payer.get(f"{page}/bank-details/new").text
    refused = payer.submit(f"{page}/bank-details", ACCOUNT)
    assert (refused.status_code, "Estate payee is required" in refused.text) == (422, True)
    done = payer.submit(f"{page}/bank-details", ACCOUNT | {"estate_payee": "Lee Late"})
    assert done.status_code == 303
    proposal = re.findall(r'href="(/console/bank-details/[0-9a-f-]{36})"', payer.get(page).text)[0]
    assert "Only an owner can approve a payee for an estate." in approver.get(proposal).text
    assert approver.submit(f"{proposal}/approve", CALL).status_code == 409
    assert "Lee Late gets the reimbursements of Kim Late, who has died." in main_text(owner.get(proposal).text)
    assert "Participant, for the estate: Lee Late" in main_text(owner.get("/console/bank-details").text)
    assert owner.submit(f"{proposal}/approve", CALL).status_code == 303
    text = main_text(owner.get(page).text)
    assert "For the estate: Lee Late" in text
    assert "Reimbursements wait" not in text


def test_home_counts_what_waits(office: Office, manager: Callable[..., Browser]) -> None:
    office.client.create("/participants", {"first_name": "Ada"})
    browser = manager()
    assert "Bank details to approve" not in browser.get("/console").text
    office.propose(office.actor())
    assert re.search(r"Bank details to approve\s+1", main_text(browser.get("/console").text))


CSV = "Name,BSB,Account number,Account name\nAmber Physio Two,062-000,12345678,Amber\nWrong,06,87654321,Wrong\n"


def upload(browser: Browser, csv: str) -> str:
    """The page of the import after its check."""
    sent = browser.http.post(
        "/console/imports",
        data={"csrf": browser.csrf(), "resource": "providers"},
        files={"file": ("providers.csv", csv.encode(), "text/csv")},
        headers={"Origin": browser.url},
    )
    assert sent.status_code == 303, sent.text
    return sent.headers["location"]


def test_an_import_in_the_console_proposes(office: Office, manager: Callable[..., Browser]) -> None:
    one = manager("make_payments", "approve_bank_details")
    location = upload(one, CSV)
    text = one.get(location).text
    assert "The bank account ending in 678 is proposed" in text
    assert "87654321" not in text
    assert one.submit(location, {}).status_code == 303
    found = office.client.get("/providers", q="Amber Physio Two").json()["data"][0]["id"]
    details = office.client.get(f"/providers/{found}/bank-details").json()
    assert (details["current"], details["proposed"]["account_ending"]) == (None, "678")
    [path] = set(re.findall(r"/console/bank-details/[0-9a-f-]{36}", one.get("/console/bank-details").text))
    assert one.submit(f"{path}/approve", CALL).status_code == 409
    rejected = one.get(f"{location}/rejected.csv").text
    assert "•••" in rejected
    assert "87654321" not in rejected
    # The stored rows have no numbers either.
    statement = "select count(*) from import_rows where plan_manager_id = $1 and to_jsonb(import_rows)::text like $2"
    for number in ("%12345678%", "%87654321%"):
        assert office.server.run(office.server.db.one(int, statement, office.plan_manager_id, number)) == 0
    assert one.submit(f"{location}/undo", {}).status_code == 303
    assert office.client.get(f"/providers/{found}").status_code == 404


@pytest.mark.parametrize(
    "content",
    [
        '{"entity_name": "A", "active": "?", "bank_account_number": 87654321}',
        '{"entity_name": "A", "active": "?", "bank_account_number": "8\\"87654321"}',
        '{"entity_name": "A", "active": "?", "bank_account_number": ["87654321"]}',
        '{"entity_name": "A", "active": "?", "bank\\u005faccount_number": "87654321"}',
        '{"entity_name": "A", "Account number": "87654321"}',
        '{"entity_name": "A", "bank_account_number": "87654321',
        "Name,Active,Account number,Bank account\nA,?,1,87654321\n",
        "Name,Active,Account number\nA,?,x,87654321\n",
    ],
)
def test_no_account_number_of_a_rejected_row_is_stored(
    office: Office, manager: Callable[..., Browser], content: str
) -> None:
    one = manager("make_payments")
    location = upload(one, content)
    if not content.startswith("{"):
        fields = ("entity_name", "active", "bank_account_number", "")
        form = {f"column-{position}": field for position, field in enumerate(fields)}
        saved = one.submit(f"{location.partition('/columns')[0]}/columns", {"resource": "providers", **form})
        assert saved.status_code == 303, saved.text
    statement = "select cells::text from import_rows where plan_manager_id = $1 and outcome = 'rejected'"
    [cells] = office.server.run(office.server.db.rows(str, statement, office.plan_manager_id))
    assert ("•••" in cells, "87654321" in cells) == (True, False)


def test_an_import_by_somebody_who_cannot_make_payments_has_no_bank_details(
    office: Office, manager: Callable[..., Browser]
) -> None:
    browser = manager("approve_bank_details")
    text = main_text(browser.get(upload(browser, CSV)).text)
    assert "can only be imported by people who can make payments" in text
