"""Ranges of dates and totals, the search `q`, and the filter for a warning."""

from collections.abc import Callable
from typing import Any

import pytest

from plankeeper.core.validation import allowed_values
from plankeeper.resources.invoices.schemas import WarningCode
from plankeeper.resources.invoices.warnings import WARNINGS
from support.client import Client

Import = Callable[..., Any]

DATES = ["2026-01-31", "2026-02-01", "2026-02-28", None]


def get_values(api: Client, path: str, field: str, **params: Any) -> list[Any]:
    response = api.get(path, **params)
    assert response.status_code == 200, response.text
    found = [each[field] for each in response.json()["data"]]
    assert response.json()["pagination"]["total"] == len(found)
    return found


@pytest.mark.parametrize(
    "bounds, expected",
    [(("2026-02-01", None), DATES[1:3]), ((None, "2026-02-01"), DATES[:2]), (DATES[1:3], DATES[1:3])],
)
def test_a_range_of_dates_includes_its_ends(
    api: Client, import_rows: Import, bounds: tuple[str | None, str | None], expected: list[str]
) -> None:
    for each in DATES:
        api.create("/participants", {"plan_end_date": each})
    assert not import_rows(api, "invoices", [{"invoice_date": each} for each in DATES]).errors
    for path, field in (("/participants", "plan_end_date"), ("/invoices", "invoice_date")):
        names = (f"{field}_from", f"{field}_to")
        params = {name: bound for name, bound in zip(names, bounds, strict=True) if bound}
        assert get_values(api, path, field, **params) == expected
        assert get_values(api, path, field, sort=f"-{field}", **params) == expected[::-1]


def test_a_range_of_totals_is_exact_to_the_cent(api: Client, import_rows: Import) -> None:
    assert not import_rows(api, "invoices", [{"total": each} for each in (9.99, 10, 10.01, None)]).errors
    assert get_values(api, "/invoices", "total", total_min="10") == [10, 10.01]
    assert get_values(api, "/invoices", "total", total_max="10.00") == [9.99, 10]
    assert get_values(api, "/invoices", "total", total_min="9.99", total_max="9.99") == [9.99]
    [error] = api.get("/invoices", total_min="ten").json()["errors"]
    assert error["field"] == "total_min"


def test_the_filter_for_a_warning_knows_every_warning_and_no_ignored_one(api: Client, import_rows: Import) -> None:
    assert set(allowed_values(WarningCode)) == set(WARNINGS)
    ignored = {"state_management": {"ignored_errors": ["missing_provider"]}}
    rows = [{"invoice_number": "A"}, {"invoice_number": "B"} | ignored]
    assert not import_rows(api, "invoices", rows).errors
    assert get_values(api, "/invoices", "invoice_number", warning="missing_provider") == ["A"]
    assert get_values(api, "/invoices", "invoice_number", warning="missing_participant") == ["A", "B"]
    both = "missing_provider,missing_participant"
    assert get_values(api, "/invoices", "invoice_number", warning=both) == ["A", "B"]
    assert get_values(api, "/invoices", "invoice_number", warning="missing_provider,check_total") == ["A"]
    assert api.get("/invoices", warning="missing_provider,check_total").json()["pagination"]["total"] == 1
    [error] = api.get("/invoices", warning="missing").json()["errors"]
    assert error["field"] == "warning[0]"


def test_a_search_finds_names_numbers_and_emails(api: Client, other: Client) -> None:
    people = [
        {"first_name": "Ann", "last_name": "Lee", "participant_number": "430000001", "email": "a@example.com"},
        {"first_name": "Lee", "last_name": "Anders", "participant_number": "431111111", "status": "Lead"},
    ]
    for person in people:
        api.create("/participants", person)
    other.create("/participants", people[0])
    for text, expected in {
        "lee": ["Ann", "Lee"], "Ann Lee": ["Ann"], "Lee, Ann": ["Ann"], "Lee And": ["Lee"], "anders": ["Lee"],
        "430 000 001": ["Ann"], "A@EX": ["Ann"], "nobody": [], "nder": ["Lee"], "Anderz": [], "-": [], "%": [],
    }.items():  # fmt: skip
        assert get_values(api, "/participants", "first_name", q=text) == expected
    assert get_values(api, "/participants", "first_name", q="lee", status="Lead", sort="-last_name") == ["Lee"]
    api.create("/providers", {"entity_name": "Quokka Care", "abn": "51 824 753 556", "email": "q@example.com"})
    for text in ("quokka", "51824", "Q@example"):
        assert get_values(api, "/providers", "entity_name", q=text) == ["Quokka Care"]
    for path in ("/participants", "/providers"):
        assert [(each["field"], each["message"]) for each in api.get(path, q=" ").json()["errors"]] == [
            ("q", "must not be blank")
        ]
