"""Random invoices with their lines, warnings and duplicates."""

from collections.abc import Sequence
from datetime import date, datetime, timedelta
from decimal import ROUND_HALF_UP, Decimal
from itertools import count as counter
from random import Random
from typing import NamedTuple

from plankeeper.cli.sample_data.invoice_anomalies import ANOMALY_PERCENTAGES, inject
from plankeeper.cli.sample_data.participants import assignable_managers
from plankeeper.cli.sample_data.providers import DemoProvider, Item
from plankeeper.cli.sample_data.random_values import (
    LAST_DAY,
    Row,
    chance,
    days_ago,
    format_datetime,
    parse_datetime,
    random_date,
    random_datetime,
    uuid7,
)
from plankeeper.core.formatting import CENT

_OLD_WEIGHTS = {"paid": 91, "partially_paid": 3, "rejected": 3, "cancelled": 2, "on_hold": 1}
_RECENT_WEIGHTS = {"paid": 45, "payment_ready": 20, "pending": 25, "partially_ready": 5, "on_hold": 5}
_NEW_WEIGHTS = {"new": 50, "pending": 40, "payment_ready": 10}
_HELD_WEIGHTS = {"on_hold": 70, "flagged": 20, "rejected": 10}
_PARTIAL_STATUSES = {"partially_paid": ("paid", "rejected"), "partially_ready": ("payment_ready", "pending")}


def set_claim_status(rng: Random, invoice: Row, participant: Row, *, has_warning: bool) -> None:
    """Set the claim and approval status of an invoice and its lines, depending on its age and on warnings."""
    age = (LAST_DAY - parse_datetime(invoice["created_at"]).date()).days
    is_held = has_warning and not invoice["state_management"]["ignored_errors"]
    weights = _HELD_WEIGHTS if is_held else _OLD_WEIGHTS if age > 30 else _RECENT_WEIGHTS if age > 7 else _NEW_WEIGHTS
    status = rng.choices(tuple(weights), tuple(weights.values()))[0]
    active_lines = [line for line in invoice["line_items"] if not line["is_deleted"]]
    if len(active_lines) == 1 and status in _PARTIAL_STATUSES:
        status = _PARTIAL_STATUSES[status][0]
    invoice["claim_status"] = status
    invoice["approval_status"] = _approval_status(rng, status) if participant["approval_required"] else "not_required"
    invoice["wont_claim"] = status == "cancelled" and chance(rng, 60)
    invoice["held_at"] = invoice["created_at"] if status == "on_hold" else None
    invoice["held_by"] = "Plankeeper demo" if status == "on_hold" else None
    invoice["hold_reason"] = "Waiting for an answer from the provider" if status == "on_hold" else None
    _set_line_statuses(rng, status, invoice["line_items"], active_lines)


def _approval_status(rng: Random, status: str) -> str:
    if status in {"paid", "partially_paid", "payment_ready", "partially_ready"}:
        return "approved"
    if status in {"rejected", "cancelled"}:
        return rng.choice(("approved", "rejected"))
    return "pending"


def _set_line_statuses(rng: Random, status: str, lines: Sequence[Row], active_lines: Sequence[Row]) -> None:
    first_status, other_status = _PARTIAL_STATUSES.get(status, (status, status))
    batch = f"BATCH-{rng.randrange(10**6):06}"
    for line in lines:
        # Lines deleted before the claim keep the status new.
        line_status = "new" if line["is_deleted"] else first_status if line is active_lines[0] else other_status
        is_submitted = line_status in {"paid", "rejected"} and status in {"paid", "partially_paid", "rejected"}
        line["claim_status"] = line_status
        line["claim_batch_ref"] = batch if is_submitted else None
        line["claim_number"] = f"{rng.randrange(10**8):08}" if is_submitted else None
        line["payment_ref"] = f"PAY{rng.randrange(10**9):09}" if line_status == "paid" else None
        line["paid_amount"] = line["total_price"] if line_status in {"paid", "payment_ready"} else None
        line["rejection_reason"] = "The support isn't in the participant's plan" if line_status == "rejected" else None


_NUMBER_FORMATS = ("INV-{:05}", "{:06}", "2026/{}", "A{:04}", "INV{}")


class _InvoiceSpec(NamedTuple):
    """The input of one invoice. `warning_code` is the warning to cause, and `variant` selects the way to cause it."""

    warning_code: str | None
    variant: int
    participant: Row
    provider: DemoProvider
    day: date
    received_at: datetime


def generate_invoices(
    rng: Random, count: int, participants: Sequence[Row], providers: Sequence[DemoProvider]
) -> list[Row]:
    """Generate `count` invoices in order of creation. About nine in ten have no warning."""
    numbers = {
        provider.row["id"]: (rng.choice(_NUMBER_FORMATS), counter(rng.randint(100, 4000))) for provider in providers
    }
    duplicate_count = _anomaly_count(count, "possible_duplicate")
    specs = sorted(
        _invoice_specs(rng, count - duplicate_count, participants, providers), key=lambda spec: spec.received_at
    )
    rows: list[Row] = []
    duplicable: list[tuple[Row, _InvoiceSpec]] = []
    for spec in specs:
        number_format, sequence = numbers[spec.provider.row["id"]]
        row = _invoice(rng, spec, number_format.format(next(sequence)))
        rows.append(row)
        if spec.warning_code is None and not row["is_deleted"] and spec.day < days_ago(40):
            duplicable.append((row, spec))
    for variant, (row, spec) in enumerate(rng.sample(duplicable, duplicate_count)):
        rows.append(_duplicate(rng, row, spec, variant))
    return sorted(rows, key=lambda row: row["id"])


def _anomaly_count(count: int, warning_code: str) -> int:
    # At least four, so that a small set contains every variant.
    return max(4, round(count * ANOMALY_PERCENTAGES[warning_code] / 100))


def _invoice_specs(
    rng: Random, count: int, participants: Sequence[Row], providers: Sequence[DemoProvider]
) -> list[_InvoiceSpec]:
    warnings: list[tuple[str | None, int]] = [
        (warning_code, variant)
        for warning_code in ANOMALY_PERCENTAGES
        if warning_code != "possible_duplicate"
        for variant in range(_anomaly_count(count, warning_code))
    ]
    warnings += [(None, 0)] * (count - len(warnings))
    by_status = {status: [row for row in participants if row["status"] == status] for status in ("Active", "Inactive")}
    providers_by_participant = {
        row["id"]: rng.sample(providers, rng.randint(1, 4)) for row in (*by_status["Active"], *by_status["Inactive"])
    }
    specs: list[_InvoiceSpec] = []
    for warning_code, variant in warnings:
        participant = rng.choice(by_status["Inactive" if warning_code == "inactive_participant" else "Active"])
        first, last = _service_period(participant)
        day = random_date(rng, first, last)
        received_at = random_datetime(rng, min(day + timedelta(days=rng.randint(0, 12)), LAST_DAY))
        provider = rng.choice(providers_by_participant[participant["id"]])
        specs.append(_InvoiceSpec(warning_code, variant, participant, provider, day, received_at))
    return specs


def _service_period(participant: Row) -> tuple[date, date]:
    first = max(date.fromisoformat(participant[key]) for key in ("plan_start_date", "onboard_date"))
    last = participant["date_ceased"]
    return first, date.fromisoformat(last) if last else days_ago(1)


def _invoice(rng: Random, spec: _InvoiceSpec, number: str) -> Row:
    lines = _lines(rng, spec)
    subtotal = sum((line["total_price"] for line in lines if not line["is_deleted"]), Decimal("0.00"))
    has_gst = spec.provider.charges_gst and chance(rng, 60)
    for position, line in enumerate(reversed(lines)):
        day = (spec.day - timedelta(days=position)).isoformat()
        line |= {"service_date_from": day, "service_date_to": day, "gst_code": "P1" if has_gst else "P2"}
    tax = (subtotal / 10).quantize(CENT, ROUND_HALF_UP) if has_gst else Decimal("0.00")
    row: Row = _common_fields(rng, spec.received_at) | {
        "invoice_number": number,
        "invoice_date": spec.day.isoformat(),
        "total": subtotal + tax,
        "tax": tax,
        "subtotal": subtotal,
        "participant_id": spec.participant["id"],
        "pm_provider_id": spec.provider.row["id"],
        # One warning in eight is ignored.
        "state_management": {
            "ignored_errors": [spec.warning_code] if spec.warning_code and spec.variant % 8 == 3 else []
        },
        "is_deleted": spec.warning_code is None and chance(rng, 1.5),
        "is_reimbursement": chance(rng, 3),
        "due_date": (spec.day + timedelta(days=14)).isoformat(),
        "line_items": lines,
    }
    if spec.warning_code:
        inject(rng, spec.warning_code, spec.variant, row, spec.participant)
    set_claim_status(rng, row, spec.participant, has_warning=bool(spec.warning_code))
    return row


def _common_fields(rng: Random, received_at: datetime) -> Row:
    row_id = uuid7(rng, received_at)
    return {
        "id": row_id,
        "created_at": format_datetime(received_at),
        "s3_key": f"invoices/{received_at:%Y/%m}/{row_id}.pdf" if chance(rng, 97) else None,
        "email_message_id": f"<{rng.getrandbits(64):016x}@mail.example.net>" if chance(rng, 80) else None,
    }


def _lines(rng: Random, spec: _InvoiceSpec) -> list[Row]:
    size = rng.choices((1, 2, 3, 4), (50, 27, 15, 8))[0]
    items = [rng.choice(spec.provider.items) for _ in range(size)]
    lines = [_line(rng, item, _line_created_at(spec.received_at, position)) for position, item in enumerate(items)]
    if size > 1 and chance(rng, 4):
        lines[-1]["is_deleted"] = True
    return lines


def _line_created_at(received_at: datetime, position: int) -> datetime:
    # The lines of an invoice have the same second. The millisecond keeps their ids in the order of the lines.
    return received_at + timedelta(milliseconds=position)


def _line(rng: Random, item: Item, created_at: datetime) -> Row:
    quantity = {
        "hour": Decimal(rng.randint(2, 24)) / 4,
        "kilometre": Decimal(rng.randint(4, 80)),
        "each": Decimal(rng.randint(1, 3)),
    }[item.unit]
    price = (item.price * 9 / 10).quantize(CENT, ROUND_HALF_UP) if chance(rng, 15) else item.price
    return {
        "id": uuid7(rng, created_at),
        "description": item.description,
        "service_item_number": item.code,
        "quantity": quantity,
        "unit_price": price,
        "total_price": (quantity * price).quantize(CENT, ROUND_HALF_UP),
        "is_deleted": False,
        "created_at": format_datetime(created_at),
    }


def _duplicate(rng: Random, original: Row, spec: _InvoiceSpec, variant: int) -> Row:
    """The same invoice again, received some days later, with new ids."""
    day = parse_datetime(original["created_at"]).date() + timedelta(days=rng.randint(1, 20))
    received_at = random_datetime(rng, day)
    lines = [
        line | {"id": uuid7(rng, _line_created_at(received_at, position)), "created_at": format_datetime(received_at)}
        for position, line in enumerate(original["line_items"])
    ]
    ignored = ["possible_duplicate"] if variant % 8 == 3 else []
    row = original | _common_fields(rng, received_at)
    row |= {"line_items": lines, "state_management": {"ignored_errors": ignored}}
    set_claim_status(rng, row, spec.participant, has_warning=True)
    return row


def generate_view_sessions(rng: Random, count: int, invoices: Sequence[Row], managers: Sequence[Row]) -> list[Row]:
    """Generate `count` sessions in order of creation. A few, started on the last day, are still open."""
    open_count = max(2, count // 40)
    eligible_invoices = [row for row in invoices if parse_datetime(row["created_at"]).date() < days_ago(6)]
    viewers = assignable_managers(managers)
    rows = [
        _session(rng, rng.choice(eligible_invoices), rng.choice(viewers), is_open=number < open_count)
        for number in range(count)
    ]
    return sorted(rows, key=lambda row: row["id"])


def _session(rng: Random, invoice: Row, viewer: Row, *, is_open: bool) -> Row:
    received = parse_datetime(invoice["created_at"]).date()
    started = random_datetime(rng, LAST_DAY if is_open else received + timedelta(days=rng.randint(1, 5)))
    seconds = rng.randint(15, 180) if rng.randrange(3) else rng.randint(180, 1800)
    ended = started + timedelta(seconds=seconds)
    # A viewer is idle after half a minute without input.
    idle_count = rng.choices(range(4), (60, 25, 10, 5))[0] if seconds > 300 else 0
    active = seconds - sum(rng.randint(30, 75) for _ in range(idle_count))
    return {
        "id": uuid7(rng, started),
        "invoice_id": invoice["id"],
        "user_id": viewer["id"],
        "user_name": f"{viewer['first_name']} {viewer['last_name']}",
        "session_started": format_datetime(started),
        "session_ended": None if is_open else format_datetime(ended),
        "last_heartbeat": format_datetime(ended - timedelta(seconds=rng.randrange(15))),
        "duration_seconds": None if is_open else seconds,
        "created_at": format_datetime(started),
        "active_duration_seconds": None if is_open else active,
        "engaged_duration_seconds": None if is_open else active * rng.randint(40, 95) // 100,
        "idle_count": None if is_open else idle_count,
    }
