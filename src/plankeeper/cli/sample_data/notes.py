"""A few notes on participants, providers and invoices."""

from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime, time, timedelta
from random import Random

from plankeeper.cli.sample_data.random_values import LAST_MOMENT, Row, format_datetime, uuid7

# The kind of the record, the position of the note's type, the days since it was written, the text, pinned.
_TEXTS = (
    (
        "participant",
        0,
        61,
        "Called about the new plan. Prefers a call in the morning, and letters in large print.",
        True,
    ),
    ("participant", 1, 47, "Sent the statement again to the new email address.", False),
    ("participant", 0, 12, "Asked why the invoice for transport is on hold. Explained which line it is about.", False),
    ("participant", 3, 5, "Plan review is booked. Expects a higher amount for therapy.", False),
    ("provider", 0, 33, "Accounts are open on Tuesdays and Thursdays only.", True),
    ("provider", 1, 20, "Will send invoices with the participant’s NDIS number from now on.", False),
    ("invoice", 1, 9, "Asked the provider for the dates of the second line.", False),
)
_ALERT = "The guardian approves every invoice by phone before it is paid."


def generate_notes(
    rng: Random,
    participants: Sequence[Row],
    providers: Sequence[Row],
    invoices: Sequence[Row],
    note_types: Sequence[Row],
    managers: Sequence[Row],
) -> list[Row]:
    """Generate the notes in order of their times. The alert is on a participant without open invoices."""
    active = [each for each in participants if each["status"] == "Active"]
    subjects: Mapping[str, Iterator[Row]] = {
        "participant": iter([active[0], active[0], active[1], active[2]]),
        "provider": iter(providers),
        "invoice": iter([each for each in reversed(invoices) if each["claim_status"] == "on_hold"]),
    }
    notes = [(kind, next(subjects[kind]), place, days, text, pinned) for kind, place, days, text, pinned in _TEXTS]
    open_of = {each["participant_id"] for each in invoices if each["claim_status"] not in ("paid", "cancelled")}
    quiet = next(each for each in active[3:] if each["id"] not in open_of)
    rows = [
        _note(rng, (kind, record["id"]), note_types[place], managers[0], days, {"text": text, "pinned": pinned})
        for kind, record, place, days, text, pinned in notes
    ]
    alert = {"text": _ALERT, "pinned": True, "alert": True}
    rows.append(_note(rng, ("participant", quiet["id"]), note_types[0], managers[0], 75, alert))
    return sorted(rows, key=lambda each: each["created_at"])


def _note(rng: Random, resource: tuple[str, str], note_type: Row, manager: Row, days: int, values: Row) -> Row:
    created_at = datetime.combine(LAST_MOMENT.date() - timedelta(days=days), time(1, 30), LAST_MOMENT.tzinfo)
    return {
        "id": uuid7(rng, created_at),
        "resource_kind": resource[0],
        "resource_id": resource[1],
        "note_type_id": note_type["id"],
        "alert": False,
        **values,
        "author_kind": "user",
        "author_name": f"{manager['first_name']} {manager['last_name']}",
        "created_at": format_datetime(created_at),
    }
