"""The tiles about payments: what is ready to be paid, runs that aren't done, and payments that the bank sent back."""

import asyncio
from datetime import timedelta

from plankeeper.console.components.pagination import with_query
from plankeeper.console.home.attention import Tile
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.payments import queries, store
from plankeeper.resources.payments.rules import READY
from plankeeper.resources.payments.schemas import PaymentListQuery, PaymentRunListQuery

_URL = f"{PREFIX}/payments"
RETURNED_DAYS = 30  # since the payment date


async def payment_tiles(request: PageRequest) -> list[Tile]:
    """For those who make payments; without those that count nothing. Each counts what its page lists."""
    if not request.has_permission("make_payments"):
        return []
    place, start = (request.db, request.plan_manager_id), request.today - timedelta(days=RETURNED_DAYS)
    runs = queries.LIST.values_of(PaymentRunListQuery(state=["draft"]))
    returned = queries.ALL_PAYMENTS.values_of(PaymentListQuery(state=["returned"]), day_from=start)
    ready_count, run_count, returned_count = await asyncio.gather(
        store.count_ready(*place, READY),
        queries.LIST.count(*place, runs),
        queries.ALL_PAYMENTS.count(*place, returned),
    )
    tiles = [
        Tile("Lines to pay", ready_count, f"{_URL}/new"),
        Tile("Payment runs to finish", run_count, with_query(_URL, {"state": "draft"})),
        Tile(
            f"Payments returned in {RETURNED_DAYS} days",
            returned_count,
            with_query(f"{_URL}/all", {"state": "returned", "from": start.isoformat()}),
            is_overdue=True,
        ),
    ]
    return [each for each in tiles if each.count]
