"""Items of the support catalogue for people: their names, units and price limits."""

from collections.abc import Iterable
from datetime import date
from decimal import Decimal
from uuid import UUID

from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.formatting import format_money
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices.schemas import LineItem
from plankeeper.resources.participants import store as participants
from plankeeper.resources.support_items import store
from plankeeper.resources.support_items.rules import Remoteness, price_limit
from plankeeper.resources.support_items.schemas import SupportItem, SupportItemListQuery

UNITS = {"H": "per hour", "E": "each", "D": "per day", "WK": "per week", "MON": "per month", "YR": "per year"}


async def place_of(request: PageRequest, participant_id: UUID | None) -> tuple[str | None, Remoteness | None]:
    """The state and the remoteness of a participant, which decide price limits."""
    if participant_id is None:
        return None, None
    participant = await participants.get(request.db, request.plan_manager_id, participant_id)
    return (participant.state, participant.remoteness) if participant else (None, None)


def describe_limit(item: SupportItem, limit: Decimal | None) -> str:
    """The unit and the price limit: `per hour, up to $193.99`."""
    parts = [UNITS.get(item.unit or "", item.unit), f"up to {format_money(limit)}" if limit is not None else None]
    return ", ".join(each for each in parts if each)


async def search_items(request: PageRequest, text: str, limit: int) -> list[tuple[SupportItem, Decimal | None]]:
    """The items that match a text, with their price limits: on the day `on` of the query, for its `participant`."""
    try:
        day = parse_date(request.query.text("on"))
    except DateError:
        day = request.today
    place = await place_of(request, parse_uuid(request.query.text("participant")))
    found = await store.list_page(request.db, SupportItemListQuery(q=text, limit=limit), day)
    return [(each, price_limit(each, *place)) for each in found]


async def list_names(request: PageRequest, lines: Iterable[LineItem], invoice_date: date | None) -> dict[UUID, str]:
    """The names of the items of lines, by the line's id: as the catalogue has them on the first day of the service."""
    wanted = {
        each.id: (each.service_item_number.strip(), day)
        for each in lines
        if each.service_item_number and (day := each.service_date_from or each.service_date_to or invoice_date)
    }
    items = await store.get_in_force(request.db, wanted.values()) if wanted else {}
    return {id_: items[pair].name for id_, pair in wanted.items() if pair in items}
