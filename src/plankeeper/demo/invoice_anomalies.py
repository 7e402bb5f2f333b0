"""What goes wrong with invoices: ways to spoil a sound one, so that it earns one warning and no other."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from plankeeper.demo.random_values import Row, day_between

SHARES = {
    "missing_invoice_number": 0.8,
    "missing_participant": 1.0,
    "missing_provider": 0.8,
    "inactive_participant": 1.5,
    "check_total": 1.6,
    "check_dates": 1.6,
    "check_item_code": 1.6,
    "possible_duplicate": 1.2,
}
"""Percent of all invoices by the warning that they earn."""


def spoil(rng: Random, code: str, turn: int, invoice: Row, participant: Row) -> None:
    """Change a sound invoice so that it earns the warning `code`; `turn` picks one of the ways in rotation.

    An inactive participant and a duplicate cannot be put in afterwards: for these nothing changes.
    """
    ways = _WAYS.get(code, ())
    if ways:
        ways[turn % len(ways)](rng, invoice, participant)


def _forget(member: str) -> Callable[[Random, Row, Row], None]:
    def forget(_rng: Random, invoice: Row, _participant: Row) -> None:
        invoice[member] = None

    return forget


def _misread_total(rng: Random, invoice: Row, _participant: Row) -> None:
    invoice["total"] += rng.randint(1, 9) * Decimal("9.00")


def _leave_out_a_line(rng: Random, invoice: Row, _participant: Row) -> None:
    missing = rng.randint(1000, 9000) * Decimal("0.01")
    invoice["subtotal"] += missing
    invoice["total"] += missing


def _round_a_line_up(rng: Random, invoice: Row, _participant: Row) -> None:
    line = next(line for line in invoice["line_items"] if not line["is_deleted"])
    before = line["total_price"]
    line["total_price"] += rng.randint(5, 95) * Decimal("0.01")
    for member in ("subtotal", "total"):
        invoice[member] += line["total_price"] - before


def _date_before_plan(rng: Random, invoice: Row, participant: Row) -> None:
    starts = date.fromisoformat(participant["plan_start_date"])
    day = day_between(rng, starts - timedelta(days=40), starts - timedelta(days=1))
    invoice["invoice_date"] = day.isoformat()


def _date_after_plan(rng: Random, invoice: Row, participant: Row) -> None:
    ends = date.fromisoformat(participant["plan_end_date"])
    invoice["invoice_date"] = day_between(rng, ends + timedelta(days=1), ends + timedelta(days=20)).isoformat()


def _swap_the_year_s_digits(_rng: Random, invoice: Row, _participant: Row) -> None:
    year, rest = invoice["invoice_date"][:4], invoice["invoice_date"][4:]
    invoice["invoice_date"] = f"{year[:2]}{year[3]}{year[2]}{rest}"


def _rewrite_code(change: Callable[[str], str | None]) -> Callable[[Random, Row, Row], None]:
    def rewrite(_rng: Random, invoice: Row, _participant: Row) -> None:
        line = next(line for line in invoice["line_items"] if not line["is_deleted"])
        line["service_item_number"] = change(line["service_item_number"])

    return rewrite


_WAYS: dict[str, tuple[Callable[[Random, Row, Row], None], ...]] = {
    "missing_invoice_number": (_forget("invoice_number"),),
    "missing_participant": (_forget("participant_id"),),
    "missing_provider": (_forget("pm_provider_id"),),
    "check_total": (_misread_total, _leave_out_a_line, _round_a_line_up, _forget("total")),
    "check_dates": (_date_before_plan, _date_after_plan, _swap_the_year_s_digits, _forget("invoice_date")),
    "check_item_code": (
        _rewrite_code(lambda _: None),
        _rewrite_code(lambda code: code.replace("_", "-")),
        _rewrite_code(lambda code: "O" + code[1:]),
        _rewrite_code(lambda code: code[:-2]),
    ),
}
