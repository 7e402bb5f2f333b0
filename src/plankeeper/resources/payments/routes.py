"""Payment runs: list, create, get, file, mark as paid, cancel; their payments, and those that the bank sends back."""

from collections.abc import Mapping, Sequence
from uuid import UUID

from plankeeper.core.context import AccessedKind, ReadContext, WriteContext, or_404
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Download
from plankeeper.core.lists import Page, read_page
from plankeeper.http.routing import PAYMENTS, Router
from plankeeper.resources.payments import files, queries, service, store
from plankeeper.resources.payments.schemas import (
    MarkPaid,
    NewPaymentRun,
    NewPaymentRunQuery,
    Payment,
    PaymentListQuery,
    PaymentReturn,
    PaymentRun,
    PaymentRunCancel,
    PaymentRunListQuery,
)

router = Router("payment_runs")

_RUN = "/payment-runs/{payment_run_id}"


@router.get("/payment-runs", scope=PAYMENTS, extension=True)
async def list_(ctx: ReadContext, query: PaymentRunListQuery) -> Page[PaymentRun]:
    """List payment runs. Filters are combined with AND."""
    return await read_page(query, queries.list_page, queries.LIST.count_matching, ctx.db, ctx.plan_manager_id)


@router.post(
    "/payment-runs",
    scope=PAYMENTS,
    extension=True,
    status=201,
    creates=True,
    errors=("invalid_transition", "secret_key_missing"),  # the first one after a restore
)
async def create(ctx: WriteContext, query: NewPaymentRunQuery, new: NewPaymentRun) -> PaymentRun:
    """Make a payment run of lines that are ready to be paid, or see what it would contain."""
    return await service.create(ctx, new, is_dry_run=query.dry_run is True)


@router.get(_RUN, scope=PAYMENTS, extension=True, has_etag=True)
async def get(ctx: ReadContext, payment_run_id: UUID) -> PaymentRun:
    """Get a payment run."""
    return or_404(await store.get(ctx.db, ctx.plan_manager_id, payment_run_id))


def _list_records(page: Page[Payment]) -> Mapping[AccessedKind, Sequence[UUID]]:
    """The invoices of payments, and the participants who get them, for the access log."""
    invoices = list(dict.fromkeys(line.invoice_id for each in page.data for line in each.lines))
    payees = [each.payee for each in page.data]
    participants = list(dict.fromkeys(each.id for each in payees if each.kind == "participant"))
    found: dict[AccessedKind, Sequence[UUID]] = {"invoice": invoices, "participant": participants}
    return {kind: ids for kind, ids in found.items() if ids}


@router.get(_RUN + "/payments", scope=PAYMENTS, extension=True, access_log=_list_records)
async def list_payments(ctx: ReadContext, payment_run_id: UUID, query: PaymentListQuery) -> Page[Payment]:
    """List the payments of a run, in the order of its file."""
    or_404(await store.exists(ctx.db, ctx.plan_manager_id, payment_run_id) or None)
    return await read_page(
        query, queries.list_payments_page, queries.count_payments, ctx.db, ctx.plan_manager_id, payment_run_id
    )


@router.get(
    _RUN + "/file",
    scope=PAYMENTS,
    extension=True,
    media_types=(files.MEDIA_TYPE,),
    errors=("invalid_transition", "run_outdated", "secret_key_missing"),
)
async def download(ctx: WriteContext, payment_run_id: UUID) -> Download:
    """Download the direct entry file of a run for the bank. The first download is checked and recorded."""
    return await files.download(ctx, payment_run_id)


@router.post(
    _RUN + "/mark-paid",
    scope=PAYMENTS,
    extension=True,
    optional_body=True,
    errors=("second_person_required", "invalid_transition", "run_outdated"),
)
async def mark_paid(ctx: WriteContext, payment_run_id: UUID, body: MarkPaid) -> PaymentRun:
    """Record that the bank has paid a run."""
    return await service.mark_paid(ctx, payment_run_id, unset_to_none(body.paid_on))


@router.post(
    _RUN + "/cancel",
    scope=PAYMENTS,
    extension=True,
    optional_body=True,
    errors=("second_person_required", "invalid_transition"),
)
async def cancel(ctx: WriteContext, payment_run_id: UUID, body: PaymentRunCancel) -> PaymentRun:
    """Cancel a payment run that the bank hasn't got."""
    return await service.cancel(ctx, payment_run_id, body)


@router.post(
    _RUN + "/payments/{payment_id}/returned",
    scope=PAYMENTS,
    extension=True,
    errors=("invalid_transition",),
)
async def record_return(ctx: WriteContext, payment_run_id: UUID, payment_id: UUID, body: PaymentReturn) -> Payment:
    """Record that the bank has sent a payment back."""
    return await service.record_return(ctx, payment_run_id, payment_id, body)
