"""The report on the service standard: its numbers are those of a computation of the test, and lead to their lists."""

import csv
import io
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import date, datetime, time, timedelta
from random import Random
from typing import Any
from zoneinfo import ZoneInfo

import openpyxl
import pytest
from uuid_utils.compat import uuid7

from support.claims import Office, set_office
from support.client import Client
from support.console import Account, Browser, main_text
from support.server import RunningServer

PAGE = "/console/reports/service-standard"
DAY = timedelta(days=1)
TO_CLAIM, TO_PAY = 4, 3
Result = tuple[date, date, date | None]

INSERT_INVOICE = """
    insert into invoices (plan_manager_id, id, invoice_number, participant_id, claim_status, approval_status,
        created_at, is_deleted, wont_claim, is_reimbursement, received_at, total, waiting_line_status)
    values ($1, $2, $2::uuid::text, $3, $4, 'not_required', $5, $6, $7, false, $5, 100,
        case when $4 in ('new', 'flagged', 'rejected') then $4 end)
"""
INSERT_LINE = """
    insert into invoice_lines (plan_manager_id, invoice_id, id, position, gst_code, claim_status, is_deleted,
        created_at)
    values ($1, $2, $3, 0, 'P2', $4, false, now())
"""
INSERT_FEE = "insert into fees values ($1, $2, $3, $4, now())"
INSERT_BATCH = """
    insert into claim_batches (plan_manager_id, id, number, state, total, lines, created_at, submitted_at)
    values ($1, $2, $2::uuid::text, 'processed', 1, 1, now(), $3)
"""
INSERT_CLAIM = """
    insert into claims (plan_manager_id, id, invoice_id, line_id, source, batch_id, reference, amount, state, paid,
        result_date, created_at)
    values ($1, $2, $3, $4, $5, $6, $2::uuid::text, 100, $7, $8::int, $9, $10)
"""
INSERT_RECEIPT = """
    insert into claim_receipts (plan_manager_id, id, batch_id, date, amount, created_at)
    values ($1, $2, $3, $4, 1, now())
"""
INSERT_RUN = """
    insert into payment_runs (plan_manager_id, id, number, state, process_date, group_by, header, account, total,
        payment_count, created_at, paid_on)
    values ($1, $2, $2::uuid::text, $3, '2026-01-01', 'payee', '{}', '', 1, 1, now(), $4)
"""
INSERT_PAYMENT = """
    insert into payments (plan_manager_id, id, run_id, position, payee_kind, payee_id, payee_name, account,
        account_ending, account_title, reference, amount, state, created_at)
    values ($1, $2, $2, 1, 'provider', $2, '', '', '', '', '', 1, $3, now())
"""
INSERT_PAID = """
    insert into payment_lines (plan_manager_id, payment_id, claim_id, invoice_id, line_id, amount)
    values ($1, $2, $3, $4, $5, 1)
"""


@dataclass
class Expected:
    """What the test expects: the ids of the invoices by month and standing."""

    claimed: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))
    paid: dict[tuple[str, str], set[str]] = field(default_factory=lambda: defaultdict(set))


def later(day: date, count: int) -> date:
    """The day that is so many weekdays later."""
    days = [day + number * DAY for number in range(1, 3 * count + 5)]
    return [each for each in days if each.weekday() < 5][count - 1]


class History:
    """Invoices that were claimed and paid, and those that weren't, of the last 150 days."""

    def __init__(self, office: Office, zone: ZoneInfo, today: date, seed: int) -> None:
        self.office, self.zone, self.today, self.rng = office, zone, today, Random(seed)
        self.expected = Expected()
        self.statements = list[tuple[str, tuple[Any, ...]]]()

    def run(self, statement: str, *values: Any) -> None:
        self.statements.append((statement, values))

    def store(self) -> None:
        async def work() -> None:
            async with self.office.server.db.transaction() as tx:
                for statement, values in self.statements:
                    await tx.execute(statement, self.office.plan_manager_id, *values)  # pyright: ignore[reportArgumentType]

        self.office.server.run(work())

    def moment(self, day: date) -> datetime:
        return datetime.combine(day, time(self.rng.randrange(24), 30), self.zone)

    def add_invoice(self, participant: str) -> None:
        invoice, received = str(uuid7()), self.today - self.rng.randrange(150) * DAY
        lines = [(str(uuid7()), self.rng.random() < 0.8) for _ in range(self.rng.choice([1, 1, 2]))]
        kind = self.rng.choice([*["plain"] * 8, "deleted", "wont_claim", "imported", "own_fee"])
        is_claimed = all(claimed for _, claimed in lines)
        status = "pending" if is_claimed or kind == "imported" else "new"
        self.run(INSERT_INVOICE, invoice, participant, status, self.moment(received), kind == "deleted",
                 kind == "wont_claim")  # fmt: skip
        if kind == "own_fee":
            self.run(INSERT_FEE, participant, f"{len(self.statements):04}-01", invoice)  # the month doesn't matter
        days, results = list[date](), list[Result]()
        for line, claimed in lines:
            state = self.rng.choice(["pending", "payment_ready"])
            self.run(INSERT_LINE, invoice, line, state if claimed else "new")
            if claimed and kind != "imported":
                days.append(self.add_claims(invoice, line, received, results, is_ready=state == "payment_ready"))
        if kind == "plain":
            self.expect("claimed", received, invoice, max(days) if is_claimed else None, later(received, TO_CLAIM))
        if kind != "own_fee":
            self.expect_payments(invoice, results)

    def add_claims(self, invoice: str, line: str, received: date, results: list[Result], *, is_ready: bool) -> date:
        """A first claim, and sometimes an earlier one that was cancelled, and a later one after a rejection."""
        first = min(received + self.rng.randrange(12) * DAY, self.today)
        self.add_claim(invoice, line, received, "cancelled")
        if self.rng.random() < 0.3:
            self.add_claim(invoice, line, first, "rejected")
            self.add_claim(invoice, line, min(first + 3 * DAY, self.today), "submitted")
            return first
        if self.rng.random() < 0.2:
            self.add_claim(invoice, line, first, "submitted", is_elsewhere=True)
            return first
        results += self.add_result(invoice, line, first, is_ready=is_ready)
        return first

    def add_claim(
        self, invoice: str, line: str, day: date, state: str, result: date | None = None, *, is_elsewhere: bool = False
    ) -> tuple[str, str | None]:
        claim, batch = str(uuid7()), None if is_elsewhere else str(uuid7())
        if batch:
            self.run(INSERT_BATCH, batch, self.moment(day))
        paid = 100 if result else None
        self.run(INSERT_CLAIM, claim, invoice, line, "batch" if batch else "elsewhere", batch, state, paid, result,
                 self.moment(day if is_elsewhere else self.today))  # fmt: skip
        return claim, batch

    def add_result(self, invoice: str, line: str, first: date, *, is_ready: bool) -> list[Result]:
        """The month's day, the day of the money, and that of the payment; none for money that isn't paid by a run."""
        result = min(first + self.rng.randrange(4) * DAY, self.today)
        claim, batch = self.add_claim(invoice, line, first, "paid", result)
        money = result
        if self.rng.random() < 0.5:
            money = min(result + self.rng.randrange(-2, 6) * DAY, self.today)
            for day in (money, self.today):
                self.run(INSERT_RECEIPT, str(uuid7()), batch, day)
        money, paid_on = max(money, result), None
        if self.rng.random() < 0.7:
            paid_on = min(money + self.rng.randrange(8) * DAY, self.today)
            self.pay(claim, invoice, line, "paid", paid_on)
        if self.rng.random() < 0.3:
            self.pay(claim, invoice, line, "draft", None)
        return [(result, money, paid_on)] if paid_on or is_ready else []

    def pay(self, claim: str, invoice: str, line: str, state: str, paid_on: date | None) -> None:
        run = str(uuid7())
        self.run(INSERT_RUN, run, state, paid_on)
        self.run(INSERT_PAYMENT, run, state)
        if state == "paid":
            self.run(INSERT_PAID, run, claim, invoice, line)

    def expect(self, part: str, day: date, invoice: str, done: date | None, due: date) -> None:
        standing = "late" if (done or self.today) > due else "in time" if done else "not due"
        getattr(self.expected, part)[f"{day:%Y-%m}", standing].add(invoice)

    def expect_payments(self, invoice: str, results: list[Result]) -> None:
        found = defaultdict[str, set[str]](set)
        for result, money, paid_on in results:
            due = later(money, TO_PAY)
            standing = "late" if (paid_on or self.today) > due else "in time" if paid_on else "not due"
            found[f"{result:%Y-%m}"].add(standing)
        for month, standings in found.items():
            worst = next(each for each in ("late", "not due", "in time") if each in standings)
            self.expected.paid[month, worst].add(invoice)


@pytest.fixture
def office(server: RunningServer, client: Client) -> Office:
    office = Office(server, client)
    set_office(server, client, days_to_claim=TO_CLAIM, days_to_pay=TO_PAY)
    return office


@pytest.fixture
def today(server: RunningServer) -> date:
    return datetime.now(server.settings.time_zone).date()


@pytest.fixture
def history(office: Office, server: RunningServer, today: date) -> History:
    history = History(office, server.settings.time_zone, today, 7)
    other = office.participant_with(first_name="Other")
    for number in range(60):
        history.add_invoice(office.participant if number % 3 else other)
    history.store()
    return history


def read_csv(text: str) -> list[dict[str, str]]:
    return list(csv.DictReader(io.StringIO(text.removeprefix("\ufeff"))))


def test_the_numbers_are_those_of_the_invoices_and_lead_to_their_lists(owner: Browser, history: History) -> None:
    rows = read_csv(owner.get(f"{PAGE}.csv").text)
    for part, expected in (("claimed", history.expected.claimed), ("paid", history.expected.paid)):
        found = {
            (row["Month"], standing): int(row[f"{part.capitalize()}: {standing}"])
            for row in rows
            for standing in ("in time", "late", "not due")
            if row[f"{part.capitalize()}: {standing}"] != "0"
        }
        assert found == {key: len(ids) for key, ids in expected.items() if ids}
        assert {standing for _, standing in found} >= {"in time", "late"}
        for month in {month for month, _ in expected}:
            listed = read_csv(owner.get(f"/console/invoices.csv?standard={part}_late.{month}").text)
            assert {each["ID"] for each in listed} == expected[month, "late"]


def test_the_page_and_home_show_the_current_month(
    owner: Browser, history: History, today: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("plankeeper.console.home.pages.PATIENCE", 60.0)  # seconds
    month = f"{today:%Y-%m}"
    sizes = {key: len(ids) for key, ids in history.expected.claimed.items()}
    in_time, late = (sizes.get((month, each), 0) for each in ("in time", "late"))
    sentence = f"{in_time:,} of {in_time + late:,} invoice"
    for path in (PAGE, "/console"):
        text = main_text(owner.get(path).text)
        assert f"In {today:%B %Y}, " in text
        if in_time + late:
            assert sentence in text
            assert f"were claimed within {TO_CLAIM} business days" in text
    page = owner.get(PAGE).text
    if late:
        assert f"/console/invoices?standard=claimed_late.{month}" in page
    assert "No account manager" in page


def test_a_month_without_numbers_and_unknown_ones(owner: Browser, client: Client) -> None:
    text = main_text(owner.get(PAGE).text)
    assert "no invoice counts for the service standard yet" in text
    assert owner.get(f"{PAGE}?month=1999-01").status_code == 404
    assert owner.get(f"{PAGE}?month=soon").status_code == 404
    assert owner.get("/console/invoices?standard=claimed_late.2026-13").status_code == 422
    assert owner.get("/console/invoices?standard=never.2026-11").status_code == 422
    assert "Claimed late by the service standard, received in November 2026" in main_text(
        owner.get("/console/invoices?standard=claimed_late.2026-11").text
    )


def test_the_numbers_are_by_account_manager(
    owner: Browser, office: Office, history: History, import_rows: Callable[..., Any], client: Client
) -> None:
    manager = str(uuid7())
    assert not import_rows(client, "account-managers", [{"id": manager, "first_name": "Ada"}]).errors
    client.put(f"/participants/{office.participant}", {"account_manager_id": manager}).raise_for_status()
    rows = read_csv(owner.get(f"{PAGE}.csv").text)
    assert {row["Account manager"] for row in rows} == {"Ada", "No account manager"}
    month, late = next((row["Month"], int(row["Claimed: late"])) for row in rows if row["Claimed: late"] != "0"
                       and row["Account manager ID"] == manager)  # fmt: skip
    path = f"/console/invoices?standard=claimed_late.{month}&account_manager={manager}"
    assert path.replace("&", "&amp;") in owner.get(f"{PAGE}?month={month}").text
    assert len(read_csv(owner.get(path.replace("?", ".csv?")).text)) == late
    total = sum(len(ids) for (_, standing), ids in history.expected.claimed.items() if standing == "late")
    assert sum(int(row["Claimed: late"]) for row in rows) == total


def test_the_workbook_has_the_rows_of_the_csv_file(owner: Browser, history: History) -> None:
    assert history.expected.claimed
    lines = read_csv(owner.get(f"{PAGE}.csv").text)
    book = openpyxl.load_workbook(io.BytesIO(owner.get(f"{PAGE}.xlsx").content))
    heading, *rows = book["service_standard"].iter_rows(values_only=True)
    assert list(heading) == list(lines[0])
    assert [row[0].strftime("%Y-%m") for row in rows] == [each["Month"] for each in lines]
    numbers = [[None if text == "" else float(text) for text in [*each.values()][3:]] for each in lines]
    assert [[*row[3:]] for row in rows] == numbers
    assert [(row[1], row[2] or "") for row in rows] == [
        (each["Account manager"], each["Account manager ID"]) for each in lines
    ]


def test_viewers_without_downloads_get_no_file(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    viewer = new_browser(new_account("viewer"))
    assert f'href="{PAGE}.csv"' in viewer.get(PAGE).text
    assert f'href="{PAGE}.xlsx"' in viewer.get(PAGE).text
