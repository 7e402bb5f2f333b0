"""The reconciliation of the money that the office holds."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import AccessedKind, ReadContext
from plankeeper.core.files import Download
from plankeeper.core.xlsx import XLSX
from plankeeper.http.routing import PAYMENTS, Router
from plankeeper.resources.payments import reconciliation
from plankeeper.resources.payments.reconciliation_schemas import Reconciliation, ReconciliationQuery

router = Router("reconciliation")


def _list_invoices(found: Reconciliation) -> Mapping[AccessedKind, Sequence[UUID]]:
    ids = list(dict.fromkeys(each.invoice_id for each in found.lines if each.invoice_id))
    return {"invoice": ids} if ids else {}


async def _to_csv(_ctx: ReadContext, found: Reconciliation) -> Download:
    return reconciliation.to_csv(found)


async def _to_xlsx(_ctx: ReadContext, found: Reconciliation) -> Download:
    return reconciliation.to_xlsx(found, reconciliation.file_rows(found))


@router.get(
    "/reconciliation",
    scope=PAYMENTS,
    extension=True,
    access_log=_list_invoices,
    formats={reconciliation.CSV: _to_csv, XLSX: _to_xlsx},
)
async def get(ctx: ReadContext, query: ReconciliationQuery) -> Reconciliation:
    """Get what the office has received, paid out and holds, for any two days, as JSON, CSV or XLSX by `Accept`."""
    return await reconciliation.reconcile(ctx, query)
