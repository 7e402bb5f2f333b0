"""Importing the file of an office: its columns, its formats, matching, errors, and the same file again."""

import csv
import io
import re
from collections.abc import Callable
from uuid import UUID

import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.json import to_json
from support.client import Client
from support.console import Account, Browser
from support.importing import import_records
from support.imports import OFFICE_FILE, confirm, counts, import_path, rows, upload
from support.server import RunningServer

MANAGERS = [
    {"first_name": "Ama", "last_name": "Owusu", "email": "ama@example.com"},
    {"first_name": "Kim", "last_name": "Lee", "email": "kim@example.com"},
    {"first_name": "Kim", "last_name": "Lee", "email": "kim.lee@example.com"},
]


class Person(Struct):
    """A participant as it is stored."""

    first_name: str | None
    last_name: str | None
    participant_number: str | None
    date_of_birth: str | None
    state: str | None
    plan_end_date: str | None
    manager_email: str | None


ROISIN = Person("Róisín", "Kavanagh", "430205409", "1975-06-22", "NSW", "2027-06-30", "ama@example.com")
BEE = Person("Bee", "Thompson", "430205410", "1990-02-01", "VIC", "2027-07-31", None)
CY = Person("Cy", "Nguyễn", "430205412", "1985-05-05", "WA", "2026-06-30", None)


@pytest.fixture
def people(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[Person]]:
    """All participants, by number."""
    statement = """
        select first_name, last_name, participant_number, date_of_birth::text, state, plan_end_date::text, users.email
        from participants left join users
            on users.plan_manager_id = $1 and users.id = account_manager_id
        where participants.plan_manager_id = $1 order by participant_number, participants.id
    """
    return lambda: server.run(server.db.rows(Person, statement, plan_manager_id))


@pytest.fixture
def managers(server: RunningServer, plan_manager_id: UUID) -> None:
    report = server.run(import_records(server, plan_manager_id, "account-managers", MANAGERS))
    assert not report.errors


@pytest.mark.usefixtures("managers")
def test_an_office_imports_its_own_file(owner: Browser, people: Callable[[], list[Person]]) -> None:
    check = upload(owner, OFFICE_FILE.encode())
    assert counts(check) == {"Rows": 6, "New": 3, "Errors": 3, "With warnings": 1}
    assert (people(), "Participants" in check.text, "Import 3 rows, skip 3" in check.text) == ([], True, True)
    assert rows(check) == [
        (
            "Line 2 Róisín Kavanagh New First name Róisín Last name Kavanagh NDIS number 430205409"
            " Phone 0491 570 006 Date of birth 22 Jun 1975 State NSW Postcode 2026 Suburb Bondi Status Active"
            " Plan start date 1 Jul 2026 Plan end date 30 Jun 2027 Account manager Ama Owusu"
        ),
        (
            "Line 3 Bee Thompson New First name Bee Last name Thompson NDIS number 430205410 Phone 0491 570 156"
            " Date of birth 1 Feb 1990 State VIC Postcode 3065 Suburb Fitzroy Status Active"
            " Plan start date 1 Aug 2026 Plan end date 31 Jul 2027"
        ),
        "Line 4 Ada Lindqvist Error Date of birth “31/02/1980”: 31 Feb 1980 doesn’t exist",
        "Line 5 Ben Okafor Error NDIS number “430205409”: line 2 has the same NDIS number",
        (
            "Line 6 Cy Nguyễn New Check Plan end date “30 Jun 2026”: is before the plan start date, 1 Jul 2026"
            " First name Cy Last name Nguyễn NDIS number 430205412 Date of birth 5 May 1985 State WA Postcode 6000"
            " Suburb Perth Status Active Plan start date 1 Jul 2026 Plan end date 30 Jun 2026"
        ),
        (
            "Line 7 Di Evans Error Account manager “Nobody Known”: must be the name or id of an account manager"
            " of this plan manager: Ama Owusu (ama@example.com), Kim Lee (kim.lee@example.com), Kim Lee"
            " (kim@example.com)"
        ),
    ]
    done = confirm(owner, import_path(check))
    assert people() == [ROISIN, BEE, CY]
    assert counts(done) == {"Rows": 6, "New": 3, "Errors": 3, "With warnings": 1}
    assert [each.partition(" Event")[0] for each in rows(done)[:2]] == [
        "Line 2 Róisín Kavanagh New", "Line 3 Bee Thompson New",
    ]  # fmt: skip
    listed = owner.get("/console/imports").text
    assert all(text in listed for text in ("people.csv", "Imported", "Participants"))


@pytest.mark.usefixtures("managers")
def test_the_same_file_duplicates_nobody(owner: Browser, people: Callable[[], list[Person]]) -> None:
    first = import_path(upload(owner, OFFICE_FILE.encode()))
    confirm(owner, first)
    again = upload(owner, OFFICE_FILE.encode())
    assert counts(again) == {"Rows": 6, "Unchanged": 3, "Errors": 3}
    assert "There is nothing to import" in again.text
    # Even where it would change something, it has to be confirmed.
    other = upload(owner, OFFICE_FILE.replace("Bondi", "Bronte").encode())
    assert counts(other) == {"Rows": 6, "Changed": 1, "Unchanged": 2, "Errors": 3}
    confirm(owner, import_path(other))
    repeated = upload(owner, OFFICE_FILE.encode())
    path = import_path(repeated)
    assert (f'href="{first}"' in repeated.text, "Import the same file again" in repeated.text) == (True, True)
    rejected = owner.submit(path)
    assert (rejected.status_code, "must be ticked" in rejected.text) == (422, True)
    assert "Suburb Bronte → Bondi" in rows(repeated)[0]
    assert counts(confirm(owner, path, {"again": "yes"}))["Changed"] == 1
    assert people() == [ROISIN, BEE, CY]


def test_a_check_of_an_imported_file_names_the_import(owner: Browser) -> None:
    content = b"Surname,NDIS Number\nThompson,430205410\n"
    first = import_path(upload(owner, content))
    assert owner.get("/console/imports").text.count("Checked, not imported") == 1
    confirm(owner, first)
    for _ in range(2):
        again = upload(owner, content)
    other = import_path(upload(owner, content + b"Owens,430205411\n"))
    assert f'the same file as the <a href="{first}">import of ' in again.text
    page = owner.get("/console/imports").text
    links = re.findall(r'class="lead"><a href="([^"]+)"', page)
    assert links == [other, import_path(again), first]  # without the check that a later one has replaced
    tags = re.findall(r'<span class="([^"]+)">Checked, not imported<', page)
    assert tags == ["tag warn", "tag"]  # without a warning where nothing is left to do
    assert f'Same file as the <a href="{first}">import of ' in page


def test_all_faults_and_warnings_of_a_row_are_named_at_once(owner: Browser) -> None:
    content = (
        b"First name,NDIS Number,DOB,Phone,Plan start,Plan end\n"
        b"Ada,43020,31/02/1980,12,1/7/2026,30/6/2026\n"
        b"Ben,43020,31/02/1980,0491 570 156,1/7/2026,30/6/2027\n"
    )
    check = upload(owner, content)
    odd = "NDIS number “43020”: should have 9 digits, such as 430 205 409"
    assert rows(check) == [
        (
            "Line 2 Ada Error Check Date of birth “31/02/1980”: 31 Feb 1980 doesn’t exist"
            f" {odd} Phone “12”: should have 8 to 15 digits, such as 0491 570 156"
            " Plan end date “30 Jun 2026”: is before the plan start date, 1 Jul 2026"
        ),
        (
            "Line 3 Ben Error Check Date of birth “31/02/1980”: 31 Feb 1980 doesn’t exist"
            f" NDIS number “43020”: line 2 has the same NDIS number {odd}"
        ),
    ]
    assert counts(check) == {"Rows": 2, "Errors": 2, "With warnings": 2}
    [_, first, second] = csv.reader(
        io.StringIO(owner.get(f"{import_path(check)}/rejected.csv").content.decode("utf-8-sig"))
    )
    assert ("31 Feb 1980 doesn’t exist" in first[-1], "should have 9 digits" in first[-1]) == (True, True)
    assert "line 2 has the same NDIS number" in second[-1]


def test_columns_are_mapped_once(owner: Browser, people: Callable[[], list[Person]]) -> None:
    content = b"Rufname,Surname,Nr.,Shoe size\nBee,Thompson,430205410,38\n"
    page = upload(owner, content, "participants")
    assert ("Shoe size" in page.text, "38" in page.text, "Don’t import" in page.text) == (True, True, True)
    path = import_path(page)
    form = {"resource": "participants", "existing": "update"}
    nothing = owner.submit(f"{path}/columns", form)
    assert (nothing.status_code, "must include at least one" in nothing.text) == (422, True)
    twice = {"column-0": "last_name", "column-1": "last_name"}
    both = owner.submit(f"{path}/columns", form | twice)
    assert (both.status_code, "Rufname and Surname are both Last name" in both.text) == (422, True)
    chosen = {"column-0": "preferred_name", "column-1": "last_name", "column-2": "participant_number"}
    assert owner.submit(f"{path}/columns", form | chosen).status_code == 303
    check = owner.get(path)
    assert rows(check) == [
        "Line 2 Thompson New Last name Thompson Preferred name Bee NDIS number 430205410 Status Active"
    ]
    confirm(owner, path)
    # The next file needs no mapping.
    next_file = upload(owner, content.replace(b"430205410", b"430205411"))
    assert counts(next_file) == {"Rows": 1, "New": 1}
    assert len(people()) == 1


def test_the_kind_of_a_file_can_be_changed(owner: Browser) -> None:
    content = b"Name,ABN,Suburb\nCopper Quokka,51 824 753 556,Perth\n"
    check = upload(owner, content)
    path = import_path(check)
    assert rows(check) == ["Line 2 Copper Quokka New Name Copper Quokka ABN 51824753556 Active yes Suburb Perth"]
    page = owner.get(f"{path}/columns", params={"kind": "note-types"})
    assert '<option value="note_type" selected>' in page.text
    form = {"resource": "note-types", "column-0": "note_type"}
    assert owner.submit(f"{path}/columns", form).status_code == 303
    assert rows(owner.get(path)) == ["Line 2 Copper Quokka New Note type Copper Quokka"]


@pytest.mark.parametrize(
    "existing, expected, names",
    [
        ("update", {"Rows": 2, "New": 1, "Changed": 1}, ["Beatrice", "Cy"]),
        ("skip", {"Rows": 2, "New": 1, "Skipped": 1}, ["Bee", "Cy"]),
        ("create", {"Rows": 2, "New": 2, "With warnings": 1}, ["Bee", "Beatrice", "Cy"]),
    ],
)
def test_people_on_record_are_updated_skipped_or_created_again(
    owner: Browser,
    client: Client,
    people: Callable[[], list[Person]],
    existing: str,
    expected: dict[str, int],
    names: list[str],
) -> None:
    client.create("/participants", {"first_name": "Bee", "participant_number": "430 205 410"})
    content = b"First name,NDIS Number\nBeatrice,430-205-410\nCy,430205412\n"
    path = import_path(upload(owner, content))
    form = {"resource": "participants", "column-0": "first_name", "column-1": "participant_number"}
    assert owner.submit(f"{path}/columns", form | {"existing": existing}).status_code == 303
    check = owner.get(path)
    assert counts(check) == expected
    assert ("Bee has this NDIS number already" in check.text) == (existing == "create")
    confirm(owner, path)
    assert [each.first_name for each in people()] == names


@pytest.mark.parametrize("stored", ["430-205-410", "4302 05410", "430.205.410"])
def test_a_number_is_matched_however_it_is_stored(owner: Browser, client: Client, stored: str) -> None:
    client.create("/participants", {"first_name": "Bee", "participant_number": stored})
    check = upload(owner, b"First name,NDIS Number\nBee,430205410\n")
    assert (counts(check).get("New"), counts(check)["Changed"]) == (None, 1)


def test_an_abn_is_matched_however_it_is_stored(owner: Browser, client: Client) -> None:
    client.create("/providers", {"entity_name": "Care", "abn": "51-824-753-556"})
    check = upload(owner, b"entity_name,abn,city\nCare,51824753556,Perth\n", "providers")
    assert (counts(check).get("New"), counts(check)["Changed"]) == (None, 1)


def test_a_number_of_two_people_is_a_fault_that_names_them(owner: Browser, client: Client) -> None:
    for name in ("Bee", "Cy"):
        client.create("/participants", {"first_name": name, "participant_number": "430205410"})
    check = upload(owner, b"First name,NDIS Number\nDi,430205410\n")
    assert rows(check) == [
        "Line 2 Di Error NDIS number “430205410”: Bee and Cy have this NDIS number: add the ID of one of them"
    ]


def test_the_number_of_a_faulty_row_counts(owner: Browser) -> None:
    content = b"First name,NDIS Number,DOB\nBee,430205410,soon\nCy,430205410,1/2/1990\nDi,430205411,1/2/1990\n"
    assert [each.partition("Error")[2] for each in rows(upload(owner, content))] == [
        " Date of birth “soon”: must be a date, such as 22 Jun 1975 or 22/6/1975",
        " NDIS number “430205410”: line 2 has the same NDIS number",
        "",
    ]


def test_empty_cells_leave_or_clear_a_value(owner: Browser, client: Client, people: Callable[[], list[Person]]) -> None:
    client.create("/participants", {"first_name": "Bee", "last_name": "Lee", "participant_number": "430205410"})
    content = b"First name,Surname,NDIS Number\nBeatrice,,430205410\n"
    check = upload(owner, content)
    path = import_path(check)
    assert "Blank cells don’t change anything" in check.text
    assert rows(check) == ["Line 2 Bee Lee Changed First name Bee → Beatrice"]
    form = {"column-0": "first_name", "column-1": "last_name", "column-2": "participant_number"}
    owner.submit(f"{path}/columns", {"resource": "participants", "clears_empty": "yes", **form})
    check = owner.get(path)
    assert "Blank cells clear the value" in check.text
    assert rows(check) == ["Line 2 Bee Lee Changed First name Bee → Beatrice Last name Lee → —"]
    confirm(owner, path)
    assert [(each.first_name, each.last_name) for each in people()] == [("Beatrice", None)]


@pytest.mark.usefixtures("managers")
def test_a_name_of_two_managers_is_a_fault_that_names_them(owner: Browser) -> None:
    content = b"First name,Account manager\nDi,Kim Lee\nCy,KIM@example.com\n"
    assert rows(upload(owner, content))[0] == (
        "Line 2 Di Error Account manager “Kim Lee”: must name one record, but 2 have this name:"
        " Kim Lee (kim@example.com), Kim Lee (kim.lee@example.com)"
    )


@pytest.mark.usefixtures("managers")
def test_rows_with_errors_can_be_corrected_and_imported_again(
    owner: Browser, people: Callable[[], list[Person]]
) -> None:
    content = OFFICE_FILE.replace("Lindqvist", "=Lindqvist")
    path = import_path(upload(owner, content.encode()))
    confirm(owner, path)
    response = owner.get(f"{path}/rejected.csv")
    assert response.headers["content-disposition"] == 'attachment; filename="rejected-rows.csv"'
    table = list(csv.reader(io.StringIO(response.content.decode("utf-8-sig"))))
    assert table[0] == [*OFFICE_FILE.splitlines()[0].split(","), "Problem"]
    assert [(row[0], row[1], row[-1][:24]) for row in table[1:]] == [
        ("Ada", "'=Lindqvist", "date_of_birth: 31 Feb 19"),
        ("Ben", "Okafor", "participant_number: line"),
        ("Di", "Evans", "account_manager_id: must"),
    ]
    corrected = response.text.replace("31/02/1980", "28/02/1980").replace("Nobody Known", "")
    check = upload(owner, corrected.encode())
    assert counts(check) == {"Rows": 3, "New": 2, "Unconfirmed": 1}  # Ben Okafor has the number of Róisín Kavanagh
    confirm(owner, import_path(check))
    assert {"=Lindqvist", "Evans"} <= {each.last_name for each in people()}


def test_an_import_of_another_plan_manager_is_not_found(
    owner: Browser,
    new_plan_manager: Callable[[], UUID],
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
) -> None:
    path = import_path(upload(owner, b"first_name\nBee\n"))
    confirm(owner, path)
    other, viewer = new_browser(new_account("owner", new_plan_manager())), new_browser(new_account("viewer"))
    for page in (path, f"{path}/rejected.csv", f"{path}/undo", f"{path}/columns"):
        assert other.get(page).status_code == 404
        assert viewer.get(page).status_code == 403
    assert (other.submit(f"{path}/undo").status_code, viewer.submit(f"{path}/undo").status_code) == (404, 403)
    assert "people.csv" not in other.get("/console/imports").text


def test_existing_invoices_keep_their_states_unless_an_owner_says_that_the_file_is_the_record_of_them(
    owner: Browser, client: Client, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    confirm(owner, import_path(upload(owner, b"invoice_number,claim_status\nINV-1,on_hold\n", "invoices")))
    invoice_id = client.get("/invoices").json()["data"][0]["id"]
    content = f"id,invoice_number,claim_status\n{invoice_id},INV-2,rejected\n".encode()
    path = import_path(upload(owner, content, "invoices"))
    assert "Existing invoices keep their claim and approval states." in owner.get(path).text
    confirm(owner, path)
    invoice = client.get(f"/invoices/{invoice_id}").json()
    assert (invoice["invoice_number"], invoice["claim_status"]) == ("INV-2", "on_hold")
    form = {"resource": "invoices", "column-0": "id", "column-1": "invoice_number", "column-2": "claim_status"}
    for browser, is_record in ((new_browser(new_account("manager")), False), (owner, True)):
        path = import_path(upload(browser, content + b"\n" * is_record, "invoices"))
        assert ('name="sets_states"' in browser.get(f"{path}/columns").text) == is_record
        browser.submit(f"{path}/columns", form | {"sets_states": "yes"})
        assert ("get the claim and approval states of the file" in browser.get(path).text) == is_record
        confirm(browser, path)
    assert client.get(f"/invoices/{invoice_id}").json()["claim_status"] == "rejected"
    assert ">Rejected<" in owner.get(f"/console/invoices/{invoice_id}").text


def test_lines_of_existing_invoices_keep_their_states_and_paid_amounts(owner: Browser, client: Client) -> None:
    line = {"id": str(uuid7()), "description": "Mowing", "total_price": 20, "claim_status": "paid", "paid_amount": 20}
    row = {"id": str(uuid7()), "total": 20, "subtotal": 20, "tax": 0, "claim_status": "paid", "line_items": [line]}
    confirm(owner, import_path(upload(owner, to_json(row).encode(), "invoices")))
    lines = [
        line | {"description": "Mowing twice", "claim_status": "new", "paid_amount": None},
        {"description": "Weeding", "total_price": 10, "claim_status": "paid"},
    ]
    changed = row | {"total": 30, "subtotal": 30, "line_items": lines, "claim_status": "new"}
    confirm(owner, import_path(upload(owner, to_json(changed).encode(), "invoices")))
    stored = client.get(f"/invoices/{row['id']}").json()["line_items"]
    found = [(each["description"], each["claim_status"], each["paid_amount"]) for each in stored]
    assert found == [("Mowing twice", "paid", 20), ("Weeding", "new", None)]


def test_warnings_that_block_claims_are_ignored_only_with_the_permission(
    owner: Browser, client: Client, new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    row = {"id": str(uuid7()), "state_management": {"ignored_errors": ["missing_provider", "check_total"]}}
    new = {"state_management": {"ignored_errors": ["possible_duplicate"]}}
    content = b"\n".join(to_json(each).encode() for each in (row, new))
    manager = new_browser(new_account("manager"))
    check = upload(manager, content, "invoices")
    assert counts(check) == {"Rows": 2, "Errors": 2}
    reason = "only people who can ignore blocking warnings can import that"
    assert [each.partition("must")[2] for each in rows(check)] == [
        f" not ignore missing_provider: {reason}", f" not ignore possible_duplicate: {reason}",
    ]  # fmt: skip
    allowed = {"state_management": {"ignored_errors": ["check_total"]}}
    assert counts(upload(manager, to_json(allowed).encode(), "invoices")) == {"Rows": 1, "New": 1}
    assert counts(confirm(owner, import_path(upload(owner, content, "invoices"))))["New"] == 2
    # What the invoice ignores already can be imported again.
    changed = to_json(row | {"invoice_number": "INV-1"}).encode()
    assert counts(confirm(manager, import_path(upload(manager, changed, "invoices")))) == {"Rows": 1, "Changed": 1}
    invoice = client.get(f"/invoices/{row['id']}").json()
    assert invoice["state_management"]["ignored_errors"] == ["missing_provider", "check_total"]
