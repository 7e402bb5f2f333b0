"""Whatever an office does, no cent is claimed, paid or counted twice: the rules of money hold after each step."""

from collections.abc import Iterator
from datetime import timedelta
from decimal import Decimal
from typing import Any

import pytest
from msgspec import Struct

from support.client import Client
from support.money_rules import BROKEN_RULES, HELD
from support.money_walk import MoneyWalk
from support.server import RunningServer

STEPS = 150
FIGURES = ("opening", "received", "paid_out", "returned", "refunded", "repaid", "fees", "closing")


class BrokenRule(Struct):
    """A rule, and the record that breaks it."""

    rule: str
    what: str | None


@pytest.fixture(params=range(4))
def walk(server: RunningServer, api: Client, request: pytest.FixtureRequest) -> Iterator[MoneyWalk]:
    made = MoneyWalk(server, api, request.param)
    yield made
    made.close()


def test_the_rules_of_money_hold_after_each_step(walk: MoneyWalk) -> None:
    for _ in range(STEPS):
        if walk.step():
            check(walk)
    walk.finish()
    check(walk)
    assert len(walk.done) > 10


def check(walk: MoneyWalk) -> None:
    assert walk.server.run(walk.server.db.rows(BrokenRule, BROKEN_RULES, walk.plan_manager_id)) == []
    needs_receipts = walk.needs_receipts
    held = walk.server.run(walk.server.db.one(Decimal, HELD, walk.plan_manager_id, needs_receipts))
    days = {"from": "2020-01-01", "to": str(walk.today + timedelta(days=1))}
    found: dict[str, Any] = walk.client.get("/reconciliation", **days).json()
    figures = {name: Decimal(str(found[name])) for name in FIGURES}
    assert (figures["opening"], figures["closing"]) == (0, held)
    moved = figures["received"] - figures["paid_out"] + figures["returned"] + figures["refunded"] - figures["repaid"]
    assert moved - figures["fees"] == held == sum(Decimal(str(each["amount"])) for each in found["lines"])
