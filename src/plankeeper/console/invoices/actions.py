"""What people do with invoices and their lines, and the pages of actions on the selected invoices of the list.

Each action is an event; those of several invoices are undone together.
"""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.components.record_picker import account_choices
from plankeeper.console.invoices.list import INVOICES
from plankeeper.console.invoices.pages import INVOICES_URL, read_reason
from plankeeper.console.lists.selection import (
    Outcome,
    confirm_selection,
    outcome_page,
    read_selection,
)
from plankeeper.console.shell.form_reader import read_date
from plankeeper.console.shell.forms import parse_amount
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages
from plankeeper.core.context import WriteContext, or_404
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.resources.invoices import actions, service, store
from plankeeper.resources.invoices.action_schemas import MAX_REASON_LENGTH, LineSplit
from plankeeper.resources.invoices.schemas import Invoice, InvoiceUpdate

pages = Pages()


class Action(NamedTuple):
    """An action: `run` takes an invoice's id and what the form says, the reason or the id of an account.

    `title` is the heading for several invoices, `verb` its button, and `done` the result.
    """

    run: Callable[[WriteContext, UUID, str], Awaitable[object]]
    title: str
    verb: str
    done: str
    field: str = ""  # `reason` or `assigned_to`, or nothing
    hint: str = ""


async def _release(ctx: WriteContext, invoice_id: UUID, _text: str) -> object:
    return await actions.release(ctx, invoice_id)


async def _reopen(ctx: WriteContext, invoice_id: UUID, _text: str) -> object:
    return await actions.reopen(ctx, invoice_id)


async def _assign(ctx: WriteContext, invoice_id: UUID, account_id: str) -> object:
    return await service.update(ctx, invoice_id, InvoiceUpdate(assigned_to=account_id or None))


ACTIONS: Mapping[str, Action] = {
    "hold": Action(actions.hold, "Hold", "Hold", "held", "reason", "Invoices on hold are neither claimed nor paid."),
    "release": Action(_release, "Release", "Release", "released"),
    "cancel": Action(
        actions.cancel,
        "Cancel",
        "Cancel invoices",
        "cancelled",
        "reason",
        "All lines are cancelled. You can reopen them.",
    ),
    "wont-claim": Action(
        actions.wont_claim,
        "Exclude from claims:",
        "Exclude from claims",
        "excluded from claims",
        "reason",
        "Claims leave these invoices out until you reopen them.",
    ),
    "reopen": Action(_reopen, "Reopen", "Reopen", "reopened"),
    "assign": Action(_assign, "Assign", "Assign", "assigned", "assigned_to"),
}


class LineAction(NamedTuple):
    """An action on a line: `run` takes the form, and the ids of the invoice and of the line."""

    run: Callable[[FormRequest, UUID, UUID], Awaitable[object]]
    done: str
    can_be_undone: bool = True


async def _cancel_line(request: FormRequest, invoice_id: UUID, line_id: UUID) -> object:
    return await actions.cancel_line(request.write_context, invoice_id, line_id, read_text(request, "reason"))


async def _reopen_line(request: FormRequest, invoice_id: UUID, line_id: UUID) -> object:
    return await actions.reopen_line(request.write_context, invoice_id, line_id)


async def _retry_line(request: FormRequest, invoice_id: UUID, line_id: UUID) -> object:
    return await actions.retry_line(request.write_context, invoice_id, line_id)


async def _split_line(request: FormRequest, invoice_id: UUID, line_id: UUID) -> object:
    """The form has the quantity of the first part: the second one gets the rest."""
    invoice = or_404(await store.get_for_update(request.tx, request.plan_manager_id, invoice_id))
    line = or_404(next((each for each in unset_to_none(invoice.line_items) or [] if each.id == line_id), None))
    quantity = parse_amount(request.form.text("quantity"))
    if line.quantity is None or quantity is None or not 0 < quantity < line.quantity:
        raise ValidationError(quantity=f"must be a number above 0 and below {line.quantity}")
    split = LineSplit(date=read_date(request.form, "date"), quantities=[quantity, line.quantity - quantity])
    return await actions.split_line(request.write_context, invoice_id, line_id, split)


LINE_ACTIONS: Mapping[str, LineAction] = {
    "cancel": LineAction(_cancel_line, "cancelled"),
    "reopen": LineAction(_reopen_line, "reopened"),
    "retry": LineAction(_retry_line, "put up for the next claim", can_be_undone=False),
    "split": LineAction(_split_line, "split"),
}


def read_text(request: PageRequest, field: str) -> str:
    """The reason of the form, or the id of an account. Raises ValidationError for a reason that is missing."""
    if field == "reason":
        return read_reason(request.form)
    return request.form.text(field) if field else ""


def select_form(name: str) -> Callable[[PageRequest], Awaitable[HtmlPage]]:
    """The handler of the page that confirms an action on the selected invoices."""
    action = ACTIONS[name]

    async def handle(request: PageRequest) -> HtmlPage:
        selection = await read_selection(request, INVOICES, request.form or request.query, _describe)
        context: dict[str, Any] = {
            "selection": selection,
            "rows": [(each, selection.names) for each in selection.shown],
            "action": action,
            "path": f"{INVOICES_URL}/selected/{name}",
            "text": request.form.text(action.field) if action.field else "",
            "accounts": await account_choices(request) if action.field == "assigned_to" else {},
            "max_length": MAX_REASON_LENGTH,
        }
        return HtmlPage("invoices/selected_action.html", context)

    return handle


def act_on_selected(name: str) -> Callable[[FormRequest], Awaitable[HtmlPage]]:
    """The handler of an action on the selected invoices. Those that don't allow it are left out, with the reason."""
    action = ACTIONS[name]

    async def handle(request: FormRequest) -> HtmlPage:
        text = read_text(request, action.field)
        selection = await confirm_selection(request, INVOICES, _describe)
        await store.select_for_update(request.tx, request.plan_manager_id, [each.id for each in selection.rows])
        outcomes = [await _act_on_one(request, each, action, text) for each in selection.rows]
        return outcome_page(request, action.done.capitalize(), selection, outcomes)

    return handle


async def _act_on_one(request: FormRequest, invoice: Invoice, action: Action, text: str) -> Outcome:
    name, url, count = invoice.invoice_number or "No number", f"{INVOICES_URL}/{invoice.id}", len(request.recorded)
    try:
        async with request.tx.savepoint():
            await action.run(request.write_context, invoice.id, text)
    except DomainError as error:
        return Outcome(name, url, error.detail, is_changed=False)
    if len(request.recorded) == count:
        return Outcome(name, url, f"is already {action.done}", is_changed=False)
    return Outcome(name, url, action.done, is_changed=True, undo_path=f"{PREFIX}/activity/{request.recorded[-1]}/undo")


def _describe(invoice: Invoice) -> str:
    """The status and the account, which the page shows."""
    return f"{invoice.claim_status} {invoice.assigned_to}"


for _name in ACTIONS:
    _form = pages.get(f"/invoices/selected/{_name}", role="manager")(select_form(_name))
    pages.post(f"/invoices/selected/{_name}", role="manager", on_error=_form)(act_on_selected(_name))
