"""Payment runs: the list, and a new run with what it pays and leaves out."""

from datetime import date, timedelta
from typing import Any

from plankeeper.access.policy import Permission
from plankeeper.console.bank_details.section import payee_url
from plankeeper.console.components.labels import field_label
from plankeeper.console.components.pagination import with_query
from plankeeper.console.lists.registration import add_list
from plankeeper.console.payments.left_out import left_out_groups
from plankeeper.console.payments.list import PAYMENT_RUNS, PAYMENTS_URL
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_money
from plankeeper.core.validation import validate_struct
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.payments import service
from plankeeper.resources.payments.files import SETTINGS_PAGE
from plankeeper.resources.payments.schemas import NewPaymentRun, PaymentRun

pages = Pages()

PERMISSION: Permission = "make_payments"
MAX_PAYMENTS = 100  # that the page of a new run lists
CHANGED = "What can be paid has changed in the meantime. Look at the payments again, and then make the run."
GROUPINGS = {"payee": "One payment for each payee", "invoice": "One payment for each invoice"}


add_list(pages, PAYMENT_RUNS, permission=PERMISSION)


@pages.get("/payments/new", role="manager", permission=PERMISSION)
async def new(request: PageRequest) -> HtmlPage:
    """What a run on a day would pay, and what it would leave out and why."""
    settings = await office_settings.get(request.db, request.plan_manager_id)
    texts = request.form or request.query
    day = texts.text("process_date") or next_weekday(request.today).isoformat()
    form = Form([("process_date", day), ("group_by", texts.text("group_by") or settings.group_payments_by)])
    context: dict[str, Any] = {"form": form, "groupings": GROUPINGS, "settings_url": SETTINGS_PAGE, "preview": None}
    context |= {"missing": (), "payments": (), "groups": (), "max_payments": MAX_PAYMENTS}
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
    new_run = read_run(form)
    async with request.db.transaction() as tx:
        preview = await service.preview(request.with_transaction(tx).write_context, new_run)
    payments = preview.payments[:MAX_PAYMENTS]
    request.record_list("invoice", [id_ for each in payments for id_ in each.invoice_ids], {"page": "payments"})
    people = [each.payee.id for each in payments if each.payee.kind == "participant"]
    params = {name: form.text(name) for name in ("process_date", "group_by")}
    request.record_list("participant", people, {"page": "payments"})
    return {
        "preview": preview,
        "payments": [(each, payee_url(each.payee)) for each in payments],
        "groups": await left_out_groups(
            request, unset_to_none(preview.run.left_out) or [], f"{PAYMENTS_URL}/new", params
        ),
        "all_url": with_query(f"{PAYMENTS_URL}/new", params),
        "warnings": unset_to_none(preview.run.warnings) or [],
        "seen": seen_text(preview.run),
    }


def seen_text(run: PaymentRun) -> str:
    """What a person has seen before making the run: the number of payments and their sum."""
    return f"{run.payments} {run.total:.2f}"


def read_run(form: Form) -> NewPaymentRun:
    """All invoices on the form's day. Raises ValidationError."""
    day = read_date(form, "process_date")
    values = {"all": True, "process_date": day.isoformat(), "group_by": form.text("group_by")}
    return validate_struct(NewPaymentRun, values)


def read_date(form: Form, name: str) -> date:
    """Raises ValidationError for an empty field and for a text that isn't a date."""
    text = form.text(name)
    if not text:
        raise ValidationError(**{name: "is required"})
    try:
        return parse_date(text)
    except DateError as error:
        raise ValidationError(**{name: str(error)}) from None


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
