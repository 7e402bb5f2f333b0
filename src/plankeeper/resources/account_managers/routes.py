"""Account managers: list and get. They are read-only in the API; imports and the console write them."""

from plankeeper.core.context import ReadContext, or_404
from plankeeper.core.ids import UuidOr404
from plankeeper.core.lists import Page, build_page
from plankeeper.http.routing import READ, Router
from plankeeper.resources.account_managers import store
from plankeeper.resources.account_managers.schemas import AccountManager, AccountManagerListQuery

router = Router("account_managers")


@router.get("/account-managers", scope=READ)
async def list_(ctx: ReadContext, query: AccountManagerListQuery) -> Page[AccountManager]:
    """List account managers. Deleted and internal ones are never returned."""
    operator = ctx.settings.operator_name
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, query, operator)
    total = None if query.uses_cursor else await store.count(ctx.db, ctx.plan_manager_id, query, operator)
    return build_page(query, rows, total)


@router.get("/account-managers/{account_manager_id}", scope=READ, has_etag=True)
async def get(ctx: ReadContext, account_manager_id: UuidOr404) -> AccountManager:
    """Get an account manager. Deleted and internal ones aren't found."""
    operator = ctx.settings.operator_name
    return or_404(await store.get_visible(ctx.db, ctx.plan_manager_id, account_manager_id, operator))
