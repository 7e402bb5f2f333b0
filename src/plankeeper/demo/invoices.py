"""Invoices: who was billed for what and when, and how far each has come."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import count as counter
from random import Random
from typing import NamedTuple

from plankeeper.demo.claim_status import settle
from plankeeper.demo.invoice_anomalies import SHARES, spoil
from plankeeper.demo.providers import Business, Item
from plankeeper.demo.random_values import ANCHOR, Row, chance, day_between, days_before, moment, parse, stamp, uuid7

_CENT = Decimal("0.01")
_STYLES = ("INV-{:05}", "{:06}", "2026/{}", "A{:04}", "INV{}")


class _Case(NamedTuple):
    """What an invoice is about, before it is written: `flaw` is the warning to earn, `turn` which way."""

    flaw: str | None
    turn: int
    participant: Row
    business: Business
    day: date
    received: datetime


def invoices(rng: Random, count: int, participants: Sequence[Row], businesses: Sequence[Business]) -> list[Row]:
    """Give `count` invoices in the order of their creation: about nine in ten are sound."""
    numbers = {business.row["id"]: (rng.choice(_STYLES), counter(rng.randint(100, 4000))) for business in businesses}
    twins = _share(count, "possible_duplicate")
    cases = sorted(_cases(rng, count - twins, participants, businesses), key=lambda case: case.received)
    rows: list[Row] = []
    copyable: list[tuple[Row, _Case]] = []
    for case in cases:
        style, following = numbers[case.business.row["id"]]
        row = _invoice(rng, case, style.format(next(following)))
        rows.append(row)
        if case.flaw is None and not row["is_deleted"] and case.day < days_before(40):
            copyable.append((row, case))
    for turn, (row, case) in enumerate(rng.sample(copyable, twins)):
        rows.append(_twin(rng, row, case, turn))
    return sorted(rows, key=lambda row: row["id"])


def _share(count: int, flaw: str) -> int:
    # Four at least, so that every way of going wrong is seen even among few.
    return max(4, round(count * SHARES[flaw] / 100))


def _cases(rng: Random, count: int, participants: Sequence[Row], businesses: Sequence[Business]) -> list[_Case]:
    flaws: list[tuple[str | None, int]] = [
        (flaw, turn) for flaw in SHARES if flaw != "possible_duplicate" for turn in range(_share(count, flaw))
    ]
    flaws += [(None, 0)] * (count - len(flaws))
    by_status = {status: [row for row in participants if row["status"] == status] for status in ("Active", "Inactive")}
    regulars = {
        row["id"]: rng.sample(businesses, rng.randint(1, 4)) for row in (*by_status["Active"], *by_status["Inactive"])
    }
    cases: list[_Case] = []
    for flaw, turn in flaws:
        person = rng.choice(by_status["Inactive" if flaw == "inactive_participant" else "Active"])
        first, last = _served(person)
        day = day_between(rng, first, last)
        received = moment(rng, min(day + timedelta(days=rng.randint(0, 12)), ANCHOR))
        cases.append(_Case(flaw, turn, person, rng.choice(regulars[person["id"]]), day, received))
    return cases


def _served(participant: Row) -> tuple[date, date]:
    first = max(date.fromisoformat(participant[key]) for key in ("plan_start_date", "onboard_date"))
    last = participant["date_ceased"]
    return first, date.fromisoformat(last) if last else days_before(1)


def _invoice(rng: Random, case: _Case, number: str) -> Row:
    lines = _lines(rng, case)
    subtotal = sum((line["total_price"] for line in lines if not line["is_deleted"]), Decimal("0.00"))
    taxed = case.business.taxed and chance(rng, 60)
    tax = (subtotal / 10).quantize(_CENT, ROUND_HALF_UP) if taxed else Decimal("0.00")
    row: Row = _envelope(rng, case.received) | {
        "invoice_number": number,
        "invoice_date": case.day.isoformat(),
        "total": subtotal + tax,
        "tax": tax,
        "subtotal": subtotal,
        "participant_id": case.participant["id"],
        "pm_provider_id": case.business.row["id"],
        # Every eighth warning is one that somebody has looked into and chosen to ignore.
        "state_management": {"ignored_errors": [case.flaw] if case.flaw and case.turn % 8 == 3 else []},
        "is_deleted": case.flaw is None and chance(rng, 1.5),
        "is_reimbursement": chance(rng, 3),
        "line_items": lines,
    }
    if case.flaw:
        spoil(rng, case.flaw, case.turn, row, case.participant)
    settle(rng, row, case.participant, doubtful=bool(case.flaw))
    return row


def _envelope(rng: Random, received: datetime) -> Row:
    row_id = uuid7(rng, received)
    return {
        "id": row_id,
        "created_at": stamp(received),
        "s3_key": f"invoices/{received:%Y/%m}/{row_id}.pdf" if chance(rng, 97) else None,
        "email_message_id": f"<{rng.getrandbits(64):016x}@mail.example.net>" if chance(rng, 80) else None,
    }


def _lines(rng: Random, case: _Case) -> list[Row]:
    size = rng.choices((1, 2, 3, 4), (50, 27, 15, 8))[0]
    items = [rng.choice(case.business.items) for _ in range(size)]
    lines = [_line(rng, item, _nth(case.received, place)) for place, item in enumerate(items)]
    if size > 1 and chance(rng, 4):
        lines[-1]["is_deleted"] = True
    return lines


def _nth(received: datetime, place: int) -> datetime:
    # Lines are of one second; the millisecond keeps their ids in the order of the page.
    return received + timedelta(milliseconds=place)


def _line(rng: Random, item: Item, created: datetime) -> Row:
    quantity = {
        "hour": Decimal(rng.randint(2, 24)) / 4,
        "kilometre": Decimal(rng.randint(4, 80)),
        "each": Decimal(rng.randint(1, 3)),
    }[item.unit]
    price = (item.price * 9 / 10).quantize(_CENT, ROUND_HALF_UP) if chance(rng, 15) else item.price
    return {
        "id": uuid7(rng, created),
        "description": item.description,
        "service_item_number": item.code,
        "quantity": quantity,
        "unit_price": price,
        "total_price": (quantity * price).quantize(_CENT, ROUND_HALF_UP),
        "is_deleted": False,
        "created_at": stamp(created),
    }


def _twin(rng: Random, original: Row, case: _Case, turn: int) -> Row:
    """Send an invoice a second time, some days later: same provider, same number, everything else anew."""
    day = parse(original["created_at"]).date() + timedelta(days=rng.randint(1, 20))
    received = moment(rng, day)
    lines = [
        line | {"id": uuid7(rng, _nth(received, place)), "created_at": stamp(received)}
        for place, line in enumerate(original["line_items"])
    ]
    ignored = ["possible_duplicate"] if turn % 8 == 3 else []
    row = original | _envelope(rng, received)
    row |= {"line_items": lines, "state_management": {"ignored_errors": ignored}}
    settle(rng, row, case.participant, doubtful=True)
    return row
