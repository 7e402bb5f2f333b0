"""Payment runs: the list, and a new run with what it pays and leaves out."""

from collections.abc import Iterable, Mapping
from datetime import date, timedelta
from typing import Any, NamedTuple

from plankeeper.access.policy import Permission
from plankeeper.console.bank_details.section import payee_url
from plankeeper.console.claims.line_groups import ShownLine, load_lines
from plankeeper.console.claims.paging import select_part
from plankeeper.console.components.labels import PAYMENT_GROUPINGS, field_label
from plankeeper.console.components.pagination import with_query
from plankeeper.console.lists.registration import add_list
from plankeeper.console.payments.left_out import left_out_groups
from plankeeper.console.payments.list import PAYMENT_RUNS, PAYMENTS_URL
from plankeeper.console.shell.form_reader import read_date
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_money
from plankeeper.core.validation import validate_struct
from plankeeper.resources.claims.eligibility import LineKey
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.payments import service
from plankeeper.resources.payments.files import SETTINGS_PAGE
from plankeeper.resources.payments.rules import LineToPay
from plankeeper.resources.payments.schemas import NewPaymentRun, PaymentRun
from plankeeper.resources.payments.service import PreviewPayment, RunPreview

pages = Pages()

PERMISSION: Permission = "make_payments"
NEW_URL = f"{PAYMENTS_URL}/new"
CHANGED = "What can be paid has changed in the meantime. Look at the payments again, and then make the run."


class ShownPayment(NamedTuple):
    """A payment of a new run, with the pages of its payee and of its lines."""

    payment: PreviewPayment
    url: str
    lines_url: str
    line_count: int


class PaidLineRow(NamedTuple):
    """A line that a new run pays, and who gets it."""

    line: ShownLine
    payee: str
    payee_url: str


add_list(pages, PAYMENT_RUNS, permission=PERMISSION)


@pages.get("/payments/new", role="manager", permission=PERMISSION)
async def new(request: PageRequest) -> HtmlPage:
    """What a run on a day would pay, and what it would leave out and why."""
    settings = await office_settings.get(request.db, request.plan_manager_id)
    texts = request.form or request.query
    day = texts.text("process_date") or next_weekday(request.today).isoformat()
    form = Form([("process_date", day), ("group_by", texts.text("group_by") or settings.group_payments_by)])
    context: dict[str, Any] = {"form": form, "groupings": PAYMENT_GROUPINGS, "settings_url": SETTINGS_PAGE}
    context |= {"preview": None, "missing": (), "payments": (), "groups": (), "part": None}
    try:
        context |= await _preview(request, form)
    except ValidationError as error:
        missing = [field_label(each.field) for each in error.errors if each.code == "required"]
        context["missing"] = missing
        if not missing:
            request.errors = {each.field: each.message for each in error.errors} | dict(request.errors)
    is_wrong = bool(request.errors) and not request.form
    return HtmlPage("payments/new.html", context, 422 if is_wrong else 200)


def next_weekday(day: date) -> date:
    """The day itself, or the Monday after a weekend."""
    return day + timedelta(days=max(0, 7 - day.weekday())) if day.weekday() >= 5 else day


async def _preview(request: PageRequest, form: Form) -> dict[str, Any]:
    preview = await _plan(request, form)
    params = _params(form)
    # The number of a page is that of the payments, or of the lines with one reason.
    part = None if request.query.text("reason") else select_part(request, len(preview.payments), NEW_URL, params)
    shown = preview.payments[part.first : part.end] if part else ()
    _record_payees(request, shown)
    return {
        "preview": preview,
        "payments": [_shown(params, each) for each in shown],
        "part": part,
        "lines_url": with_query(f"{NEW_URL}/lines", params),
        "groups": await left_out_groups(request, preview.left_out, NEW_URL, params),
        "all_url": with_query(NEW_URL, params),
        "warnings": unset_to_none(preview.run.warnings) or [],
        "seen": seen_text(preview.run),
    }


async def _plan(request: PageRequest, form: Form) -> RunPreview:
    """Raises ValidationError."""
    new_run = read_run(form)
    async with request.db.transaction() as tx:
        return await service.preview(request.with_transaction(tx).write_context, new_run)


def _params(form: Form) -> dict[str, str]:
    return {name: form.text(name) for name in ("process_date", "group_by")}


def _shown(params: Mapping[str, str], payment: PreviewPayment) -> ShownPayment:
    url = with_query(f"{NEW_URL}/lines", {**params, "payment": _key_of(payment, params["group_by"])})
    return ShownPayment(payment, payee_url(payment.payee), url, len(payment.planned.lines))


def _key_of(payment: PreviewPayment, group_by: str) -> str:
    """What names a payment in an address: its payee, or its invoice."""
    return str(payment.payee.id if group_by == "payee" else payment.planned.lines[0].line.invoice_id)


@pages.get("/payments/new/lines", role="manager", permission=PERMISSION)
async def list_new_lines(request: PageRequest) -> HtmlPage:
    """The lines that a run on a day would pay, in the order of its payments, or those of one payment."""
    form = Form([(name, request.query.text(name)) for name in ("process_date", "group_by")])
    context: dict[str, Any] = {"lines": (), "payment": None, "all_url": with_query(NEW_URL, _params(form))}
    try:
        context |= await _lines_context(request, form)
    except ValidationError:  # the page of the run names what is wrong
        return HtmlPage("payments/new_lines.html", context)
    return HtmlPage("payments/new_lines.html", context)


async def _lines_context(request: PageRequest, form: Form) -> dict[str, Any]:
    preview, params, key = await _plan(request, form), _params(form), request.query.text("payment")
    chosen = [each for each in preview.payments if key in ("", _key_of(each, params["group_by"]))]
    lines = [(each, line) for each in chosen for line in each.planned.lines]
    part = select_part(request, len(lines), f"{NEW_URL}/lines", params | {"payment": key})
    shown = lines[part.first : part.end]
    found = await load_lines(request, [_line_key(line) for _, line in shown], {"page": "payments"})
    _record_payees(request, [each for each, _ in shown])
    rows = [
        PaidLineRow(found[_line_key(line)]._replace(amount=line.amount), each.name, payee_url(each.payee))
        for each, line in shown
        if _line_key(line) in found
    ]
    return {"lines": rows, "part": part, "payment": chosen[0] if key and chosen else None}


def _record_payees(request: PageRequest, payments: Iterable[PreviewPayment]) -> None:
    people = [each.payee.id for each in payments if each.payee.kind == "participant"]
    request.record_list("participant", people, {"page": "payments"})


def _line_key(line: LineToPay) -> LineKey:
    return line.line.invoice_id, line.line.line_id


def seen_text(run: PaymentRun) -> str:
    """What a person has seen before making the run: the number of payments and their sum."""
    return f"{run.payments} {run.total:.2f}"


def read_run(form: Form) -> NewPaymentRun:
    """All invoices on the form's day. Raises ValidationError."""
    day = read_date(form, "process_date")
    values = {"all": True, "process_date": day.isoformat(), "group_by": form.text("group_by")}
    return validate_struct(NewPaymentRun, values)


@pages.post("/payments", role="manager", permission=PERMISSION, on_error=new)
async def create(request: FormRequest) -> Redirect:
    """Make the run that the person has seen. If it has changed since, the page shows the new one."""
    new_run = read_run(request.form)
    try:
        run = await service.create(request.write_context, new_run)
    except ValidationError as error:
        if [each.field for each in error.errors] == ["all"]:
            raise DomainError("invalid_transition", CHANGED) from None
        raise
    if request.form.text("seen") != seen_text(run):
        raise DomainError("invalid_transition", CHANGED)
    text = f"Payment run {run.number} made: {format_money(run.total)}. Download its file for your bank."
    return Redirect(f"{PAYMENTS_URL}/{run.id}", text)
