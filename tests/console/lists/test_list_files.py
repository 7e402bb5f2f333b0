"""The CSV files of lists: ids and other columns, local times, and that it can be imported again."""

import csv
import io
import re
from collections.abc import Callable
from typing import Any

import openpyxl
from uuid_utils.compat import uuid7

from support.client import Client
from support.console import Browser
from support.factories import seed_plan_manager
from support.imports import counts, import_path, upload
from support.server import RunningServer

UTC_TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d")
LOCAL_TIME = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d(:\d\d)?")
# What each file has, whichever columns the page shows, and its columns of times.
FILES = {
    "participants": (
        {"ID", "NDIS number", "First name", "Last name", "Status", "State", "Account manager"},
        {"Updated"},
    ),
    "providers": ({"ID", "ABN", "State", "NDIS provider number", "Active"}, {"Added", "Updated"}),
    "invoices": (
        {"ID", "Participant ID", "NDIS number", "State", "Account manager", "Provider ID", "ABN", "Claim", "Approval"}
        | {"Warnings", "Why held"},
        {"Received"},
    ),
    "activity": ({"Record ID", "Event type", "Before", "After"}, {"Time"}),
    "requests": ({"Request ID"}, {"Time"}),
}


def read_file(browser: Browser, path: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(browser.get(path).content.decode("utf-8-sig"), newline="")))


def show_columns(browser: Browser, kind: str, columns: list[str]) -> None:
    assert browser.submit(
        "/console/list-settings", {"list": kind, "columns": columns, "density": "compact"}
    ).is_redirect


def test_every_file_has_ids_and_local_times(server: RunningServer) -> None:
    seeded = seed_plan_manager(server)
    owner = seeded.browser()
    for kind, (expected, times) in FILES.items():
        if kind in ("participants", "providers"):
            show_columns(owner, kind, ["created_at", "updated_at"])
        rows = read_file(owner, f"/console/{kind}.csv")
        assert rows or kind == "requests", kind
        for row in rows:
            assert expected | times <= set(row), kind
            assert all(LOCAL_TIME.fullmatch(row[name]) for name in times), row
            assert not [name for name, text in row.items() if UTC_TIME.match(text)], row
    owner.http.close()
    seeded.client.http.close()


def test_an_invoice_has_its_numbers_account_manager_state_and_why_it_is_held(
    owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    manager, invoice = str(uuid7()), str(uuid7())
    assert not import_rows(
        client, "account-managers", [{"id": manager, "first_name": "Kim", "last_name": "Ray"}]
    ).errors
    person = client.create(
        "/participants",
        {"first_name": "Ann", "participant_number": "430205409", "state": "TAS", "account_manager_id": manager},
    )["id"]
    provider = client.create("/providers", {"entity_name": "Amber", "abn": "51824803556"})["id"]
    row = {
        "id": invoice, "invoice_number": "A1", "participant_id": person, "pm_provider_id": provider, "total": 10,
        "claim_status": "on_hold", "created_at": "2026-10-31T06:42:24Z", "invoice_date": None,
    }  # fmt: skip
    assert not import_rows(client, "invoices", [row, {"id": str(uuid7()), "invoice_number": "B1"}]).errors
    found = {each["Number"]: each for each in read_file(owner, "/console/invoices.csv")}
    names = ("ID", "Received", "Participant ID", "NDIS number", "State", "Account manager", "Provider ID", "ABN")
    assert [found["A1"][name] for name in names] == [
        invoice, "2026-10-31 17:42", person, "430205409", "TAS", "Kim Ray", provider, "51824803556",
    ]  # fmt: skip
    assert "The invoice date is missing" in found["A1"]["Why held"]
    assert [found["B1"][name] for name in (*names[2:], "Why held")] == [""] * 7
    selected = owner.get(f"/console/invoices/selected.csv?id={invoice}").content.decode("utf-8-sig")
    assert list(csv.DictReader(io.StringIO(selected, newline=""))) == [found["A1"]]
    book = owner.get(f"/console/invoices/selected.xlsx?id={invoice}").content
    head, row = openpyxl.load_workbook(io.BytesIO(book))["invoices"].iter_rows(values_only=True)
    assert (list(head), row[0]) == (list(found["A1"]), "A1")


def test_files_of_participants_and_providers_can_be_imported_again(
    owner: Browser, client: Client, import_rows: Callable[..., Any]
) -> None:
    manager = str(uuid7())
    managers = [{"id": manager, "first_name": "Kim", "last_name": "Ray", "email": "kim@example.com"}]
    assert not import_rows(client, "account-managers", managers).errors
    person = {
        "first_name": "Róisín", "last_name": "Kavanagh", "participant_number": "430205409", "state": "TAS",
        "status": "Active", "plan_start_date": "2026-07-01", "plan_end_date": "2027-06-30",
        "account_manager_id": manager, "phone_number": "0491 570 006", "email": "roisin@example.com",
        "approval_required": True, "city": "Hobart",
        "date_of_birth": "1975-06-22", "postcode": "7000", "preferred_name": "Ro",
    }  # fmt: skip
    provider = {"entity_name": "Amber", "abn": "51824803556", "active": True, "state": "TAS", "city": "Hobart"}
    client.create("/participants", person)
    client.create("/providers", provider)
    for kind in ("participants", "providers"):
        show_columns(owner, kind, ["city", "postcode", "date_of_birth", "approval_required", "phone_number", "email"])
        file = owner.get(f"/console/{kind}.csv").content
        path = import_path(upload(owner, file, kind))
        page = owner.get(f"{path}/columns").text
        fields = re.findall(r'<select id="(column-\d+)".*?</select>', page, re.DOTALL)
        chosen = re.findall(
            r'<select id="(column-\d+)"(?:(?!</select>).)*<option value="(\w+)" selected', page, re.DOTALL
        )
        form = {"resource": kind, **dict.fromkeys(fields, ""), **dict(chosen)}
        assert owner.submit(f"{path}/columns", form).is_redirect
        check = owner.get(path)
        assert counts(check) == {"Rows": 1, "Unchanged": 1}, kind
