"""How far an invoice has come by the demonstration's last day: claimed, approved, paid, or held."""

from collections.abc import Sequence
from random import Random

from plankeeper.demo.random_values import ANCHOR, Row, chance, parse

_OLD = {"paid": 91, "partially_paid": 3, "rejected": 3, "cancelled": 2, "on_hold": 1}
_RECENT = {"paid": 45, "payment_ready": 20, "pending": 25, "partially_ready": 5, "on_hold": 5}
_NEW = {"new": 50, "pending": 40, "payment_ready": 10}
_HELD = {"flagged": 70, "on_hold": 20, "rejected": 10}
_PARTLY = {"partially_paid": ("paid", "rejected"), "partially_ready": ("payment_ready", "pending")}


def settle(rng: Random, invoice: Row, participant: Row, *, doubtful: bool) -> None:
    """Set the claim and the approval of an invoice and its lines, by its age and whether it is doubtful."""
    age = (ANCHOR - parse(invoice["created_at"]).date()).days
    held = doubtful and not invoice["state_management"]["ignored_errors"]
    weights = _HELD if held else _OLD if age > 30 else _RECENT if age > 7 else _NEW
    status = rng.choices(tuple(weights), tuple(weights.values()))[0]
    lines = [line for line in invoice["line_items"] if not line["is_deleted"]]
    if len(lines) == 1 and status in _PARTLY:
        status = _PARTLY[status][0]
    invoice["claim_status"] = status
    invoice["approval_status"] = _approval(rng, status) if participant["approval_required"] else "not_required"
    invoice["wont_claim"] = status == "cancelled" and chance(rng, 60)
    _settle_lines(rng, status, invoice["line_items"], lines)


def _approval(rng: Random, status: str) -> str:
    if status in {"paid", "partially_paid", "payment_ready", "partially_ready"}:
        return "approved"
    if status in {"rejected", "cancelled"}:
        return rng.choice(("approved", "rejected"))
    return "pending"


def _settle_lines(rng: Random, status: str, lines: Sequence[Row], counted: Sequence[Row]) -> None:
    first, rest = _PARTLY.get(status, (status, status))
    batch = f"BATCH-{rng.randrange(10**6):06}"
    for line in lines:
        # What was deleted before it was claimed stays new.
        claim = "new" if line["is_deleted"] else first if line is counted[0] else rest
        sent = claim in {"paid", "rejected"} and status in {"paid", "partially_paid", "rejected"}
        line["claim_status"] = claim
        line["claim_batch_ref"] = batch if sent else None
        line["claim_number"] = f"{rng.randrange(10**8):08}" if sent else None
        line["payment_ref"] = f"PAY{rng.randrange(10**9):09}" if claim == "paid" else None
