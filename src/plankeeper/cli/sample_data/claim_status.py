"""Random claim and approval statuses of invoices on the last day of the sample data."""

from collections.abc import Sequence
from random import Random

from plankeeper.cli.sample_data.random_values import (
    LAST_DAY,
    Row,
    chance,
    parse_datetime,
)

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
