"""Account managers: list and get. The contract makes them read-only: they are made by import and in the console."""

from plankeeper.account_managers import store
from plankeeper.account_managers.schemas import AccountManager, AccountManagerListQuery
from plankeeper.http.context import Read, found
from plankeeper.http.pagination import page_of
from plankeeper.http.parsing import LooseId
from plankeeper.http.routing import READ, Routes
from plankeeper.http.schemas import Page

routes = Routes("account_managers")


@routes.get("/account-managers", need=READ)
async def list_(ctx: Read, query: AccountManagerListQuery) -> Page[AccountManager]:
    """List account managers."""
    operator = ctx.settings.operator_name
    rows = await store.list_page(ctx.db, ctx.plan_manager_id, query, operator)
    total = None if query.by_cursor else await store.count(ctx.db, ctx.plan_manager_id, query, operator)
    return page_of(query, rows, total)


@routes.get("/account-managers/{account_manager_id}", need=READ)
async def get(ctx: Read, account_manager_id: LooseId) -> AccountManager:
    """Get an account manager."""
    operator = ctx.settings.operator_name
    return found(await store.get_visible(ctx.db, ctx.plan_manager_id, account_manager_id, operator))
