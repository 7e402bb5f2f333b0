"""Cells as people type them."""

from typing import Any

import pytest
from msgspec.structs import fields

from plankeeper.imports.cells import CellError, clean, normalize
from plankeeper.resources.registry import RESOURCES


def normalized(resource: str, field: str, text: str) -> str:
    types: dict[str, Any] = {each.encode_name: each.type for each in fields(RESOURCES[resource].import_schema)}
    return normalize(field, types[field], text)


@pytest.mark.parametrize(
    "field, text, expected",
    [
        ("date_of_birth", "31/12/1980", "1980-12-31"),
        ("date_of_birth", "1/2/1980", "1980-02-01"),
        ("date_of_birth", "31 Dec 1980", "1980-12-31"),
        ("date_of_birth", "1980-12-31", "1980-12-31"),
        ("date_of_birth", "31/12/1980 0:00", "1980-12-31"),
        ("date_of_birth", "1980-12-31 00:00:00", "1980-12-31"),
        ("approval_required", "Yes", "true"),
        ("approval_required", "N", "false"),
        ("approval_required", "1", "true"),
        ("approval_required", "maybe", "maybe"),
        ("status", "ACTIVE", "Active"),
        ("status", "gone", "gone"),
        ("state", "New South Wales", "NSW"),
        ("state", "vic", "VIC"),
        ("participant_number", "430 205-409", "430205409"),
        ("participant_number", "about 430 205", "about 430 205"),
        ("phone_number", "0491  570\t006", "0491 570 006"),
        ("first_name", "Zoë  Anne", "Zoë  Anne"),
    ],
)
def test_values_of_a_participant(field: str, text: str, expected: str) -> None:
    assert normalized("participants", field, text) == expected


@pytest.mark.parametrize(
    "resource, field, text, expected",
    [
        ("providers", "abn", "51 824 753 556", "51824753556"),
        ("providers", "active", "inactive", "false"),
        ("team-members", "permissions", "View budget, approve-invoices", "view_budget;approve_invoices"),
        ("team-members", "permissions", '["view_budget"]', '["view_budget"]'),
        ("team-members", "contact_priority", "Primary", "1"),
        ("invoices", "total", "$1,234.50", "1234.50"),
        ("invoices", "total", "(12.00)", "-12.00"),
        ("invoices", "claim_status", "On hold", "on_hold"),
    ],
)
def test_values_of_other_records(resource: str, field: str, text: str, expected: str) -> None:
    assert normalized(resource, field, text) == expected


@pytest.mark.parametrize("text", ["31/02/1980", "12/31/1980", "1/2/80", "soon", "44561"])
def test_a_text_that_is_no_date_is_an_error(text: str) -> None:
    with pytest.raises(CellError):
        normalized("participants", "date_of_birth", text)


@pytest.mark.parametrize(
    "cell, text",
    [(" a\u00a0", "a"), ("'=1+1", "=1+1"), ("'+61 491", "+61 491"), ("'＝1", "＝1"), ("'a", "'a"), ("", "")],
)
def test_a_cell_loses_spaces_and_the_apostrophe_of_a_spreadsheet(cell: str, text: str) -> None:
    assert clean(cell) == text
