"""What is to be recovered: lines that were paid out, and that the agency has reversed since."""

from plankeeper.console.claims.line_groups import line_url
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.shell.routing import PREFIX, HtmlPage, PageRequest, Pages
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.claims import adjustments
from plankeeper.resources.claims.adjustment_schemas import RecoveryListQuery

pages = Pages()

RECOVERIES_URL = f"{PREFIX}/recoveries"


@pages.get("/recoveries", role="manager", permission="make_payments")
async def list_(request: PageRequest) -> HtmlPage:
    after = parse_uuid(request.query.text("after"))
    query = RecoveryListQuery(limit=PAGE_SIZE, after=str(after)) if after else RecoveryListQuery(limit=PAGE_SIZE)
    rows = await adjustments.list_recoveries(request.db, request.plan_manager_id, query)
    request.record_list("invoice", [each.invoice_id for each in rows], {})
    shown = [(each, line_url(each.invoice_id, each.line_id).removesuffix("/claim")) for each in rows]
    return HtmlPage("claims/recoveries.html", {"rows": shown, **paginate_links(RECOVERIES_URL, {}, rows, after)})
