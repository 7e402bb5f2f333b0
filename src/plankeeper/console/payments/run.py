"""The page of a payment run: its payments, the bank's file, and the end of the run."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET

from plankeeper.access.accounts import member_store
from plankeeper.access.policy import has_permission
from plankeeper.console.activity.timeline import latest_events
from plankeeper.console.bank_details.section import payee_url
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links, with_query
from plankeeper.console.lists.reading import list_position
from plankeeper.console.payments.left_out import left_out_groups
from plankeeper.console.payments.list import PAYMENT_RUNS, PAYMENTS_URL
from plankeeper.console.payments.pages import PERMISSION
from plankeeper.console.shell.form_reader import read_date
from plankeeper.console.shell.forms import Form, parse_number
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import ReadContext, or_404
from plankeeper.core.errors import ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.files import Download
from plankeeper.core.ids import parse_uuid
from plankeeper.core.validation import validate_struct
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.payments import files, people, queries, remittance_store, service, store
from plankeeper.resources.payments.files import RunProblem
from plankeeper.resources.payments.remittance_documents import PART_SIZE, find_unprintable, get_print_file
from plankeeper.resources.payments.remittance_mails import are_mailed
from plankeeper.resources.payments.schemas import Payment, PaymentListQuery, PaymentRun, PaymentRunCancel

pages = Pages()

LATEST_EVENTS = 6
MAX_PROBLEMS = 50  # that the page lists
MAX_INVOICES = 3  # of a payment in the table
OUT_OF_DATE = "The run is out of date, so nothing was done. See what has changed since it was made."
MAX_PAYEES = 10  # named because of their letters


class ShownPayment(NamedTuple):
    """A row of the table: `invoices` are the first ones with their numbers, `more` how many others there are."""

    payment: Payment
    url: str
    invoices: Sequence[tuple[UUID, str]]
    more: int


class OtherPeople(NamedTuple):
    """Whether this person can't mark the run as paid, and the names of those who can."""

    is_first: bool
    names: Sequence[str]


@pages.get("/payments/{payment_run_id}", role="manager", permission=PERMISSION)
async def get(request: PageRequest, payment_run_id: UUID) -> HtmlPage:
    place = (request.db, request.plan_manager_id)
    run = or_404(await store.get(*place, payment_run_id))
    draft = await _draft_context(request, run) if run.state == "draft" else {}
    is_mailed = await are_mailed(ReadContext(*place, request.settings), run)
    context: dict[str, Any] = {
        "run": run,
        "form": request.form
        or Form([("paid_on", run.process_date.isoformat())] if run.process_date <= request.today else []),
        "is_mailed": is_mailed,
        "to_print": await _count_to_print(request, run, is_mailed=is_mailed),
        "warnings": unset_to_none(run.warnings) or [],
        "groups": await left_out_groups(
            request, unset_to_none(run.left_out) or [], f"{PAYMENTS_URL}/{payment_run_id}", {}
        ),
        "max_length": MAX_REASON_LENGTH,
        "events": await latest_events(request, "payment_run", payment_run_id, LATEST_EVENTS + 1),
        "max_events": LATEST_EVENTS,
        "place": await list_position(request, PAYMENT_RUNS, payment_run_id),
        **await _payments_context(request, payment_run_id),
        **draft,
    }
    return HtmlPage("payments/run.html", context)


async def _count_to_print(request: PageRequest, run: PaymentRun, *, is_mailed: bool) -> int:
    """The number of remittance advices that nobody gets by mail: without a mail server, all."""
    if not is_mailed:
        return run.payments
    return await remittance_store.count_without_email(request.executor, request.plan_manager_id, or_404(run.id))


async def _payments_context(request: PageRequest, run_id: UUID) -> dict[str, Any]:
    """A page of the payments, in the order of the file."""
    place = (request.db, request.plan_manager_id)
    after = parse_uuid(request.query.text("after"))
    query = PaymentListQuery(limit=PAGE_SIZE, after=str(after) if after else "0")
    found = await queries.list_payments_page(*place, run_id, query)
    ids = list(dict.fromkeys(line.invoice_id for each in found for line in each.lines))
    numbers = {each.id: each.invoice_number for each in await invoice_store.get_many_without_lines(*place, ids)}
    request.record_list("invoice", ids, {"page": "payments"})
    participants = [each.payee.id for each in found if each.payee.kind == "participant"]
    request.record_list("participant", participants, {"page": "payments"})
    links = paginate_links(f"{PAYMENTS_URL}/{run_id}", {}, found, after, "#payments")
    return {"payments": [_shown(run_id, each, numbers) for each in found], "pages": links}


def _shown(run_id: UUID, payment: Payment, numbers: Mapping[UUID, str | None]) -> ShownPayment:
    ids = list(dict.fromkeys(each.invoice_id for each in payment.lines))
    invoices = [(each, numbers.get(each) or "without number") for each in ids[:MAX_INVOICES]]
    return ShownPayment(payment, payment_url(run_id, payment.id), invoices, len(ids) - len(invoices))


def payment_url(run_id: UUID, payment_id: UUID) -> str:
    return f"{PAYMENTS_URL}/{run_id}/payments/{payment_id}"


async def _draft_context(request: PageRequest, run: PaymentRun) -> dict[str, Any]:
    """What is to be known before the file goes to the bank, and before the run is marked as paid."""
    run_id, problems = or_404(run.id), list[RunProblem]()
    if run.downloaded_at is None:
        async with request.db.transaction() as tx:
            problems = await files.find_problems(request.with_transaction(tx).write_context, run_id)
    if problems and "form" in request.errors:
        request.errors = {"form": OUT_OF_DATE}
    unprintable = await find_unprintable(request.read_context, run_id)
    return {
        "problems": [(each, _problem_url(each)) for each in problems[:MAX_PROBLEMS]],
        "more_problems": max(0, len(problems) - MAX_PROBLEMS),
        "unprintable": unprintable,
        "max_payees": MAX_PAYEES,
        "people": await _other_people(request, run_id),
    }


def _problem_url(problem: RunProblem) -> str:
    if problem.kind == "invoice":
        return f"{PREFIX}/invoices/{problem.id}"
    return payee_url(Payee(problem.kind, problem.id))


async def _other_people(request: PageRequest, run_id: UUID) -> OtherPeople:
    place = (request.db, request.plan_manager_id)
    first = await people.list_first_people(*place, await office_settings.get(*place), run_id)
    if request.account.account_id not in first:
        return OtherPeople(is_first=False, names=())
    members = await member_store.list_members(*place)
    others = [each for each in members if each.id not in first]
    names = [each.name for each in others if has_permission(each.role, each.permissions, PERMISSION)]
    return OtherPeople(is_first=True, names=names)


@pages.post("/payments/{payment_run_id}/file", role="manager", permission=PERMISSION, on_error=get)
async def download_file(request: FormRequest, payment_run_id: UUID) -> Download:
    """The file for the bank. The first download is checked and recorded."""
    return await files.download(request.write_context, payment_run_id)


@pages.post("/payments/{payment_run_id}/mark-paid", role="manager", permission=PERMISSION, on_error=get)
async def mark_paid(request: FormRequest, payment_run_id: UUID) -> Redirect:
    run = await service.mark_paid(request.write_context, payment_run_id, read_date(request.form, "paid_on"))
    is_mailed = await are_mailed(request.read_context, run)
    to_print = await _count_to_print(request, run, is_mailed=is_mailed)
    text = f"Payment run {run.number} is marked as paid."
    if not is_mailed:
        text += " No mail server was set, so no remittance advice was mailed."
    elif to_print < run.payments:
        text += " Payees with an email get their remittance advice by mail."
    if to_print:
        text += f" Next: print {to_print:,} remittance {'advice' if to_print == 1 else 'advices'}."
    return Redirect(f"{PAYMENTS_URL}/{payment_run_id}", text)


@pages.post("/payments/{payment_run_id}/cancel", role="manager", permission=PERMISSION, on_error=get)
async def cancel(request: FormRequest, payment_run_id: UUID) -> Redirect:
    reason = request.form.multiline_text("reason")
    before = or_404(await store.get_bare(request.tx, request.plan_manager_id, payment_run_id))
    is_confirmed = bool(request.form.text("not_sent_to_bank"))
    if before.downloaded_at and not is_confirmed:
        message = "Tick the box if the bank hasn’t got the file. If it has, the run can’t be cancelled"
        raise ValidationError(not_sent_to_bank=message)
    values: dict[str, Any] = {"not_sent_to_bank": True} if is_confirmed else {}
    body = validate_struct(PaymentRunCancel, values | ({"reason": reason} if reason else {}))
    if body.reason is UNSET and before.downloaded_at:
        raise ValidationError(reason="is required")
    run = await service.cancel(request.write_context, payment_run_id, body)
    text = f"Payment run {run.number} cancelled. Its lines are free again."
    return Redirect(f"{PAYMENTS_URL}/{payment_run_id}", text)


@pages.get("/payments/{payment_run_id}/remittance-advices", role="manager", permission=PERMISSION)
async def list_advices(request: PageRequest, payment_run_id: UUID) -> HtmlPage:
    """The payees of a run who get no remittance advice by mail, to print it: without a mail server, all."""
    place = (request.db, request.plan_manager_id)
    run = or_404(await store.get_bare(*place, payment_run_id))
    is_mailed = await are_mailed(ReadContext(*place, request.settings), run)
    after = parse_uuid(request.query.text("after"))
    position = (payment_run_id, after or UUID(int=0), PAGE_SIZE)
    rows = await remittance_store.list_to_print(*place, *position, is_of_all=not is_mailed)
    participants = [each.payee_id for each in rows if each.payee_kind == "participant"]
    request.record_list("participant", participants, {"page": "payments"})
    shown = [
        (each, payee_url(Payee(each.payee_kind, each.payee_id)), payment_url(payment_run_id, each.id)) for each in rows
    ]
    links = paginate_links(f"{PAYMENTS_URL}/{payment_run_id}/remittance-advices", {}, rows, after)
    context: dict[str, Any] = {
        "run": run,
        "is_mailed": is_mailed,
        "rows": shown,
        "pages": links,
        "files": (),
        "unprintable": None,
        "max_payees": MAX_PAYEES,
    }
    if run.state == "paid":
        count = await _count_to_print(request, run, is_mailed=True) if is_mailed else 0
        context["files"] = [_files(payment_run_id, count, ""), _files(payment_run_id, run.payments, "all")]
        context["unprintable"] = await find_unprintable(ReadContext(*place, request.settings), payment_run_id)
    return HtmlPage("payments/remittance_advices.html", context)


def _files(run_id: UUID, count: int, payees: str) -> list[str]:
    """The addresses of the parts of a print file."""
    url = f"{PAYMENTS_URL}/{run_id}/remittance-advices.pdf"
    parts = range(1, -(-count // PART_SIZE) + 1)
    return [with_query(url, {"payees": payees, "part": str(part) if part > 1 else ""}) for part in parts]


@pages.get("/payments/{payment_run_id}/remittance-advices.pdf", role="manager", permission=PERMISSION)
async def download_advices(request: PageRequest, payment_run_id: UUID) -> Download:
    """A part of the remittance advices to post as one PDF: of payees without an email, or of all payees."""
    run = or_404(await store.get_bare(request.db, request.plan_manager_id, payment_run_id))
    part = or_404(parse_number(request.query.text("part") or "1", 999) or None)
    or_404(run.paid_at)
    file = await get_print_file(request.read_context, run, part, is_of_all=request.query.text("payees") == "all")
    request.record_list("participant", file.participants, {"page": "payments"}, "exported")
    request.record_list("invoice", file.invoices, {"page": "payments"}, "exported")
    return Download.of_bytes(file.name, "application/pdf", file.content)
