"""All claims and all payments, grouped: claimed, paid, short, waiting and late, and what was paid to whom."""

import io
import re
from collections import defaultdict
from collections.abc import Callable
from datetime import UTC, datetime
from decimal import Decimal
from typing import Any

import openpyxl
import pytest

from support.console import Browser
from support.list_groups import read_groups
from support.payments import PayingOffice

CLAIMS = "/console/claims/all"
PAYMENTS = "/console/payments/all"
LONG_AGO = datetime(2025, 3, 31, 13, tzinfo=UTC)  # 1 April in Sydney
# The state, the amount, what was paid, and when the claim was made; null: now, so that it isn't late.
CLAIM_ROWS: tuple[tuple[str, str, str | None, datetime | None], ...] = (
    ("paid", "100.00", "100.00", LONG_AGO),
    ("partially_paid", "50.00", "30.05", LONG_AGO),
    ("rejected", "20.00", None, datetime(2025, 3, 1, tzinfo=UTC)),
    ("submitted", "10.10", None, datetime(2025, 3, 2, tzinfo=UTC)),
    ("submitted", "7.00", None, None),
    ("cancelled", "1000.00", None, LONG_AGO),
)


@pytest.fixture
def claims(office: PayingOffice) -> PayingOffice:
    """A claim for each of CLAIM_ROWS."""
    numbers = [(f"C{index}", ["1.00"]) for index in range(len(CLAIM_ROWS))]
    statement = """
        update claims set state = $3, amount = $4, paid = $5, created_at = coalesce($6, created_at)
        where plan_manager_id = $1 and invoice_id = $2
    """
    for invoice, (state, amount, paid, made) in zip(office.invoices(numbers), CLAIM_ROWS, strict=True):
        values = (Decimal(amount), Decimal(paid) if paid else None, made or datetime.now(UTC))
        office.execute(statement, office.plan_manager_id, invoice, state, *values)
    return office


def expected_sums() -> dict[str, list[Decimal]]:
    """By state: claimed, paid, waiting, short, late."""
    sums = defaultdict[str, list[Decimal]](lambda: [Decimal(0)] * 5)
    for state, amount, paid, made in CLAIM_ROWS:
        claimed = Decimal(0) if state == "cancelled" else Decimal(amount)
        received = Decimal(paid or 0)
        waits = state == "submitted"
        parts = [claimed, received, claimed if waits else Decimal(0)]
        parts += [Decimal(0) if waits else claimed - received, claimed if waits and made else Decimal(0)]
        sums[state] = [one + other for one, other in zip(sums[state], parts, strict=True)]
    return sums


def test_claims_by_state_month_and_provider(claims: PayingOffice, manager: Callable[..., Browser]) -> None:
    assert claims
    browser, sums = manager("make_claims"), expected_sums()
    total = [sum(each) for each in zip(*sums.values(), strict=True)]
    labels = {"paid": "Paid", "partially_paid": "Paid in part", "rejected": "Rejected", "submitted": "Pending"}
    labels |= {"cancelled": "Cancelled"}
    found = read_groups(browser.get(CLAIMS, params={"group": "state"}).text)
    assert {name: each.sums for name, each in found.items()} == {
        labels[state]: each for state, each in sums.items()
    } | {"Total": total}
    months = read_groups(browser.get(CLAIMS, params={"group": "month"}).text)
    assert [months["April 2025"].count, months["April 2025"].sums[:2]] == [3, [Decimal(150), Decimal("130.05")]]
    assert [months["March 2025"].count, months["March 2025"].sums[4]] == [2, Decimal("10.10")]
    assert months["Total"].sums == total
    providers = read_groups(browser.get(CLAIMS, params={"group": "provider"}).text)
    assert providers["Amber Physio"].sums == total
    assert read_groups(browser.get(CLAIMS, params={"group": "category"}).text)["No category"].count == 6
    for groups in (found, months, providers):
        for name, group in groups.items():
            if name != "Total":
                assert len(rows_of(browser, group.url)) == group.count, name


def rows_of(browser: Browser, url: str) -> list[str]:
    return re.findall(r'<td class="lead"><a href="([^"]+)">', browser.get(url).text)


def test_late_claims_are_a_filter(claims: PayingOffice, manager: Callable[..., Browser]) -> None:
    assert claims
    browser = manager("make_claims")
    assert len(rows_of(browser, f"{CLAIMS}?late=1")) == 1
    assert "Pending, late" in browser.get(CLAIMS).text
    groups = read_groups(browser.get(CLAIMS, params={"group": "month", "late": "1"}).text)
    assert list(groups) == ["March 2025", "Total"]


def test_payments_by_month_state_and_payee(office: PayingOffice, payer: Browser) -> None:
    paid = office.run(office.invoice("40.00", number="PAID"), process_date="2026-10-03")
    office.act(paid, "mark-paid", paid_on="2026-10-04").raise_for_status()
    draft = office.run(office.invoice("60.55", number="DRAFT"), process_date="2027-01-05")
    assert draft
    expected: dict[str, dict[str, Any]] = {
        "month": {"October 2026": ["40.00", "40.00", "0", "0"], "January 2027": ["60.55", "0", "60.55", "0"]},
        "state": {"Paid": ["40.00", "40.00", "0", "0"], "Draft": ["60.55", "0", "60.55", "0"]},
        "payee": {"Amber Physio": ["100.55", "40.00", "60.55", "0"]},
    }
    total = {"Total": ["100.55", "40.00", "60.55", "0"]}
    for key, groups in expected.items():
        found = read_groups(payer.get(PAYMENTS, params={"group": key}).text)
        assert {name: each.sums for name, each in found.items()} == {
            name: [Decimal(each) for each in sums] for name, sums in (groups | total).items()
        }
        for name in groups:
            assert len(rows_of(payer, found[name].url)) == found[name].count, (key, name)


def test_the_files_of_payments_and_their_reconciliation(office: PayingOffice, payer: Browser) -> None:
    office.invoice("40.00", number="A")
    office.act(office.run(), "mark-paid").raise_for_status()
    held = office.invoice("60.55", number="HELD")
    file = payer.get(f"{PAYMENTS}.xlsx").content
    [heading, row] = openpyxl.load_workbook(io.BytesIO(file))["all-payments"].iter_rows(values_only=True)
    assert heading[:4] == ("Reference", "Payee", "Amount", "State")
    assert row[1:4] == ("Amber Physio", 40, "Paid")
    days = {"from": "2026-10-01", "to": "2026-10-31"}
    file = payer.get("/console/payments/reconciliation.xlsx", params=days).content
    rows = [*openpyxl.load_workbook(io.BytesIO(file))["Reconciliation"].iter_rows(values_only=True)]
    names = ("name", "provider", "participant")
    assert rows[0] == ("kind", "date", "invoice_id", "line_id", "claim_batch_id", "amount", *names)
    closing = ("closing", datetime(2026, 10, 31), None, None, None, 60.55)  # noqa: DTZ001 - a cell has no zone
    assert rows[-2] == (*closing, None, None, None)
    assert (rows[-1][0], rows[-1][2], rows[-1][5]) == ("held", held, 60.55)
    assert rows[-1][6:] == ("Invoice HELD", "Amber Physio", "Robin Hale")


def test_people_without_the_permission_see_neither(manager: Callable[..., Browser]) -> None:
    other = {CLAIMS: "make_payments", PAYMENTS: "make_claims"}
    for page, permission in other.items():
        for path in (page, f"{page}.csv", f"{page}.xlsx"):
            assert manager(permission).get(path).status_code == 403, path
