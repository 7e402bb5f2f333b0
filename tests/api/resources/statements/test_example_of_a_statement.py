"""The worked example of the documentation: the records of its tables, and the statements that it computes."""

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import pytest

from plankeeper.core.dates import parse_date
from support.client import Client
from support.pages import section, table_rows, text_of
from support.payments import PayingOffice
from support.server import RunningServer
from support.statements import send_statement

PAGE = "docs/statements-worked-example.md"
SCOPES = ("read", "write", "claims", "payments")
OFFICE_ABN = "11123456780"
SPENT_ELSEWHERE = {"amount": 300, "as_of": "2026-01-01", "source": "Former office"}
STATEMENTS = {  # the sections, in order, with the month and the plan
    "January": ("2026-01", "First"),
    "February": ("2026-02", "First"),
    "March, first plan": ("2026-03", "First"),
    "March, second plan": ("2026-03", "Second"),
}
SUMS = ("amount", "spent_before", "spent", "waiting", "available")


def amount(text: str) -> Decimal:
    """A result: what follows the last equals sign."""
    return Decimal(text.rpartition("= ")[2].replace(",", ""))


def tables(heading: str, columns: int) -> list[list[str]]:
    return [each for each in table_rows(section(PAGE, heading)) if len(each) == columns]


class Example:
    """The records of the page."""

    def __init__(self, server: RunningServer, client: Client) -> None:
        self.office, self.client = PayingOffice(server, client), client
        self.office.set(abn=OFFICE_ABN)
        payees = {"provider": self.office.provider, "participant": self.office.provider}
        self.payees = payees | {"office": self.office.provider_with("Harbour Plans", abn=OFFICE_ABN)}
        self.lines: dict[str, tuple[str, str]] = {}  # the invoice and the line
        self.plans: dict[str, str] = {}
        self.path = f"/participants/{self.office.participant}"
        self.plans["First"] = self.create_plan("First")

    def create_plan(self, name: str) -> str:
        rows = [each for each in tables("The budget", 6) if each[0] == name]
        start, end = (parse_date(each).isoformat() for each in rows[0][1:3])
        components: list[dict[str, Any]] = [
            {"name": each[3], "kind": "stated", "categories": [int(each[4])], "amount": float(amount(each[5]))}
            for each in rows
        ]
        if name == "First":
            components[1]["spent_elsewhere"] = SPENT_ELSEWHERE
        body = {"start_date": start, "end_date": end, "components": components}
        return self.client.create(f"{self.path}/plans", body)["id"]

    def change_plan(self) -> None:
        path = f"{self.path}/plans/{self.plans['First']}"
        components = self.client.get(path).json()["components"]
        components[0]["amount"] = 1800
        response = self.client.put(path, {"end_date": "2026-03-15", "components": components})
        assert response.status_code == 200, response.text
        self.plans["Second"] = self.create_plan("Second")

    def happen(self, month: str) -> None:
        """What happens before the statement of a month."""
        for before, line, what in tables("What happens", 3):
            for event in what.split(", ") if before == month else ():
                verb, _, rest = event.partition(" ")
                getattr(self, verb)(line, *([float(rest)] if re.fullmatch(r"[0-9.]+", rest) else []))

    def entered(self, line: str) -> None:
        [[_, day, item, price, payee]] = [each for each in tables("The lines", 5) if each[0] == line]
        day, total = parse_date(day).isoformat(), float(amount(price))
        item = {
            "service_date_from": day, "service_item_number": item.strip("`"), "quantity": 1, "unit_price": total,
            "total_price": total,
        }  # fmt: skip
        invoice = self.client.create(
            "/invoices",
            {
                "invoice_number": f"INV-{line}", "invoice_date": day, "participant_id": self.office.participant,
                "pm_provider_id": self.payees[payee], "subtotal": total, "tax": 0, "total": total,
                "payee": "participant" if payee == "participant" else "provider", "line_items": [item],
            },
        )  # fmt: skip
        self.lines[line] = invoice["id"], invoice["line_items"][0]["id"]

    def act(self, line: str, action: str, **body: Any) -> None:
        invoice, line_id = self.lines[line]
        path = f"/invoices/{invoice}/{action.format(line=line_id)}"
        response = self.client.post(path, body)
        assert response.status_code in (200, 201), response.text

    def claimed(self, line: str) -> None:
        self.act(line, "claimed-elsewhere", reference=f"R-{line}")

    def answered(self, line: str, paid: float) -> None:
        self.act(line, "lines/{line}/claim-result", outcome="paid", amount=paid)

    def rejected(self, line: str) -> None:
        self.act(line, "lines/{line}/claim-result", outcome="rejected", reason="Not in the plan")

    def cancelled(self, line: str) -> None:
        self.act(line, "lines/{line}/cancel", reason="Not delivered")

    def paid(self, line: str) -> None:
        self.office.act(self.office.run(self.lines[line][0]), "mark-paid").raise_for_status()

    def adjusted(self, line: str, kind: str, amount: float) -> None:
        self.act(line, "adjustments", line_id=self.lines[line][1], kind=kind, amount=amount, date="2026-02-10")

    def reversed(self, line: str, amount: float) -> None:
        self.adjusted(line, "agency_reversal", amount)

    def refunded(self, line: str, amount: float) -> None:
        self.adjusted(line, "provider_refund", amount)

    def make(self, month: str, plan: str) -> dict[str, Any]:
        body = {"month": month} | ({"plan_id": self.plans[plan]} if plan == "First" else {})
        return self.client.create(f"{self.path}/statements", body)

    # What a statement says, as the page has it

    def name(self, line_id: str) -> str:
        return next(name for name, (_, each) in self.lines.items() if each == line_id)

    def components(self, statement: dict[str, Any]) -> list[list[object]]:
        return [[each["name"], *_decimals(each, *SUMS)] for each in statement["components"]]

    def service_lines(self, statement: dict[str, Any]) -> list[list[object]]:
        return [
            [self.name(each["line_id"]), each["kind"], *_decimals(each, "spent", "waiting"), each["state"]]
            for each in statement["lines"]
        ]

    def changes(self, statement: dict[str, Any]) -> list[list[object]]:
        return [
            [
                self.name(each["line_id"]),
                *(_decimals(each["before"], "spent") if each["before"] else [None]),
                *_decimals(each["after"], "spent"),
                each["before"]["state"] if each["before"] else "",
                each["after"]["state"],
                ", ".join(f"{one['kind']} {one['amount']:.2f}" for one in each["after"]["adjustments"]),
            ]
            for each in statement["earlier_changes"]
        ]


def _decimals(line: dict[str, Any], *names: str) -> list[Decimal]:
    return [Decimal(str(line[name])) for name in names]


@pytest.fixture
def example(server: RunningServer, new_client: Callable[..., Client]) -> Example:
    return Example(server, new_client(scopes=SCOPES))


def test_the_sums_of_the_page_are_right() -> None:
    sums = re.findall(r"([0-9,.]+(?: [+-] [0-9,.]+)+) = (-?[0-9,.]+)", text_of(PAGE))
    assert len(sums) == text_of(PAGE).count(" = ") > 10
    for terms, result in sums:
        added = sum(Decimal(each) for each in terms.replace(",", "").replace("- ", "-").replace("+ ", "").split())
        assert added == amount(result), terms


def expected_components(heading: str) -> list[list[object]]:
    return [[name, *map(amount, sums)] for name, *sums in tables(heading, 6) if len(name) > 1]


def expected_lines(heading: str) -> list[list[object]]:
    return [
        [name, kind, amount(spent), amount(waiting), state.strip("`")]
        for name, kind, spent, waiting, state in tables(heading, 5)
    ]


def expected_changes(heading: str) -> list[list[object]]:
    return [
        [name, amount(before) if before else None, amount(now), state.strip("`"), state_now.strip("`"), adjustments]
        for name, before, now, state, state_now, adjustments in tables(heading, 6)
        if len(name) == 1
    ]


def test_the_statements_are_those_of_the_page(server: RunningServer, example: Example) -> None:
    former = None
    for heading, (month, plan) in STATEMENTS.items():
        if heading == "March, first plan":
            example.change_plan()
        if heading != "March, second plan":
            example.happen(heading.partition(",")[0])
        statement = example.make(month, plan)
        assert statement["plan_id"] == example.plans[plan]
        assert statement["previous_id"] == (former if plan == "First" else None)
        assert example.components(statement) == expected_components(heading)
        assert example.service_lines(statement) == expected_lines(heading)
        assert example.changes(statement) == expected_changes(heading)
        send_statement(server, example.client, statement["id"])
        former = statement["id"]
