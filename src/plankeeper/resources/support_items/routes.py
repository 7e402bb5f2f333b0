"""The list of support items, which is the same for every plan manager."""

from msgspec import UNSET

from plankeeper.core.context import ReadContext
from plankeeper.core.lists import Page, build_page
from plankeeper.http.routing import READ, Router
from plankeeper.resources.support_items import store
from plankeeper.resources.support_items.schemas import SupportItem, SupportItemListQuery

router = Router("support_items")


@router.get("/support-items", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: SupportItemListQuery) -> Page[SupportItem]:
    """List the items of the support catalogue that are in force today, or on the day `on`."""
    day = ctx.settings.today if query.on is UNSET else query.on
    rows = await store.list_page(ctx.db, query, day)
    total = None if query.uses_cursor else await store.count(ctx.db, query, day)
    return build_page(query, rows, total)
