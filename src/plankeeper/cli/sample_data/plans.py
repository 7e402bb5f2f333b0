"""Random budgets of the participants' plans: core supports, some of them in quarterly periods, and stated supports."""

from collections.abc import Sequence
from datetime import date, timedelta
from decimal import Decimal
from random import Random

from plankeeper.cli.sample_data.random_values import Row, chance, parse_datetime, uuid7

PERIODS = 4
_STATED = (("Improved daily living", 15, 400), ("Support coordination", 7, 60))  # name, category, mean hundreds of $


def generate_plans(rng: Random, participants: Sequence[Row]) -> list[Row]:
    """Generate the plan of each participant that has one, with the dates of the participant."""
    return [_plan(rng, each) for each in participants if each["plan_start_date"] and each["plan_end_date"]]


def _plan(rng: Random, participant: Row) -> Row:
    created_at = parse_datetime(participant["created_at"])
    start, end = (date.fromisoformat(participant[name]) for name in ("plan_start_date", "plan_end_date"))
    core = Decimal(rng.randint(40, 400) * 100)
    components = [
        {
            "id": uuid7(rng, created_at),
            "name": "Core supports",
            "kind": "flexible",
            "categories": [1, 2, 3, 4],
            "amount": core,
            "periods": _periods(start, end, core / PERIODS) if participant["is_pace_plan"] else [],
        }
    ]
    for name, category, hundreds in _STATED:
        if chance(rng, 60):
            amount = Decimal(round(rng.uniform(0.5, 1.5) * hundreds) * 100)
            stated = {"name": name, "kind": "stated", "categories": [category], "amount": amount}
            components.append({"id": uuid7(rng, created_at), **stated})
    return {
        "id": uuid7(rng, created_at),
        "participant_id": participant["id"],
        "start_date": participant["plan_start_date"],
        "end_date": participant["plan_end_date"],
        "is_pace_plan": participant["is_pace_plan"],
        "created_at": participant["created_at"],
        "components": components,
    }


def _periods(start: date, end: date, amount: Decimal) -> list[Row]:
    days = (end - start).days + 1
    starts = [start + timedelta(days=days * number // PERIODS) for number in range(PERIODS)]
    ends = [*(each - timedelta(days=1) for each in starts[1:]), end]
    return [
        {"start_date": first.isoformat(), "end_date": last.isoformat(), "amount": amount}
        for first, last in zip(starts, ends, strict=True)
        if first <= last
    ]
