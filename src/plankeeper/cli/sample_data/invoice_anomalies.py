"""Anomalies of invoices. Each changes a valid invoice so that it causes exactly one warning."""

from collections.abc import Callable
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from plankeeper.cli.sample_data.random_values import Row, random_date

ANOMALY_PERCENTAGES = {
    "missing_invoice_number": 0.8,
    "missing_participant": 1.0,
    "missing_provider": 0.8,
    "inactive_participant": 1.5,
    "check_total": 1.6,
    "check_dates": 1.6,
    "check_item_code": 1.6,
    "possible_duplicate": 1.2,
}
"""Percentages of all invoices by the warning that they cause."""


def inject(rng: Random, warning_code: str, variant: int, invoice: Row, participant: Row) -> None:
    """Change a valid invoice so that it causes the warning `warning_code`. `variant` selects one of several ways.

    Inactive participants and duplicates are generated elsewhere, so these warnings change nothing here.
    """
    variants = _ANOMALIES.get(warning_code, ())
    if variants:
        variants[variant % len(variants)](rng, invoice, participant)


def _clear_field(field: str) -> Callable[[Random, Row, Row], None]:
    def clear(_rng: Random, invoice: Row, _participant: Row) -> None:
        invoice[field] = None

    return clear


def _wrong_total(rng: Random, invoice: Row, _participant: Row) -> None:
    invoice["total"] += rng.randint(1, 9) * Decimal("9.00")


def _omit_line(rng: Random, invoice: Row, _participant: Row) -> None:
    amount = rng.randint(1000, 9000) * Decimal("0.01")
    invoice["subtotal"] += amount
    invoice["total"] += amount


def _round_up_line(rng: Random, invoice: Row, _participant: Row) -> None:
    line = next(line for line in invoice["line_items"] if not line["is_deleted"])
    before = line["total_price"]
    line["total_price"] += rng.randint(5, 95) * Decimal("0.01")
    for field in ("subtotal", "total"):
        invoice[field] += line["total_price"] - before


def _date_before_plan(rng: Random, invoice: Row, participant: Row) -> None:
    plan_start = date.fromisoformat(participant["plan_start_date"])
    day = random_date(rng, plan_start - timedelta(days=40), plan_start - timedelta(days=1))
    invoice["invoice_date"] = day.isoformat()


def _date_after_plan(rng: Random, invoice: Row, participant: Row) -> None:
    plan_end = date.fromisoformat(participant["plan_end_date"])
    invoice["invoice_date"] = random_date(rng, plan_end + timedelta(days=1), plan_end + timedelta(days=20)).isoformat()


def _swap_year_digits(_rng: Random, invoice: Row, _participant: Row) -> None:
    year, rest = invoice["invoice_date"][:4], invoice["invoice_date"][4:]
    invoice["invoice_date"] = f"{year[:2]}{year[3]}{year[2]}{rest}"


def _rewrite_code(change: Callable[[str], str | None]) -> Callable[[Random, Row, Row], None]:
    def rewrite(_rng: Random, invoice: Row, _participant: Row) -> None:
        line = next(line for line in invoice["line_items"] if not line["is_deleted"])
        line["service_item_number"] = change(line["service_item_number"])

    return rewrite


_ANOMALIES: dict[str, tuple[Callable[[Random, Row, Row], None], ...]] = {
    "missing_invoice_number": (_clear_field("invoice_number"),),
    "missing_participant": (_clear_field("participant_id"),),
    "missing_provider": (_clear_field("pm_provider_id"),),
    "check_total": (_wrong_total, _omit_line, _round_up_line, _clear_field("total")),
    "check_dates": (_date_before_plan, _date_after_plan, _swap_year_digits, _clear_field("invoice_date")),
    "check_item_code": (
        _rewrite_code(lambda _: None),
        _rewrite_code(lambda code: code.replace("_", "-")),
        _rewrite_code(lambda code: "O" + code[1:]),
        _rewrite_code(lambda code: code[:-2]),
    ),
}
