"""Random invoice view sessions with their durations."""

from collections.abc import Sequence
from datetime import timedelta
from random import Random

from plankeeper.cli.sample_data.participants import assignable_managers
from plankeeper.cli.sample_data.random_values import (
    LAST_DAY,
    Row,
    days_ago,
    format_datetime,
    parse_datetime,
    random_datetime,
    uuid7,
)


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
