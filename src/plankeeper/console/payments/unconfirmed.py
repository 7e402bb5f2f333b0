"""Lines whose amounts were imported and that nobody has confirmed: a person who hasn't imported them confirms them."""

from collections.abc import Iterable, Sequence
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.claims.line_groups import ShownLine, load_lines
from plankeeper.console.claims.paging import key_links, key_text, parse_key
from plankeeper.console.components.pagination import PAGE_SIZE
from plankeeper.console.payments.left_out import UNCONFIRMED_URL
from plankeeper.console.payments.pages import PERMISSION
from plankeeper.console.shell.routing import FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.errors import DomainError, NotFound, ValidationError
from plankeeper.resources.claims import line_claims
from plankeeper.resources.claims.eligibility import LineKey
from plankeeper.resources.payments import store
from plankeeper.resources.payments.rules import READY

pages = Pages()

MAX_NAMED = 5  # lines that can't be confirmed, in a message
_FIRST = (UUID(int=0), UUID(int=0))


class UnconfirmedRow(NamedTuple):
    """A line, and what names it in the form."""

    key: str
    line: ShownLine


@pages.get("/payments/unconfirmed", role="manager", permission=PERMISSION)
async def list_(request: PageRequest) -> HtmlPage:
    after = parse_key(request.query.text("after"))
    found = await store.list_unconfirmed(request.db, request.plan_manager_id, READY, after or _FIRST, PAGE_SIZE + 1)
    shown = found[:PAGE_SIZE]
    amounts = {(each.invoice_id, each.line_id): each.paid_amount for each in shown}
    lines = await load_lines(request, [*amounts], {"page": "payments"})
    rows = [
        UnconfirmedRow(key_text(key), lines[key]._replace(amount=amount))
        for key, amount in amounts.items()
        if key in lines
    ]
    last = [*amounts][-1] if len(found) > PAGE_SIZE else None
    context = {
        "rows": rows,
        "url": UNCONFIRMED_URL,
        "pages": key_links(UNCONFIRMED_URL, {}, last, after),
    }
    return HtmlPage("payments/unconfirmed.html", context)


@pages.post("/payments/unconfirmed", role="manager", permission=PERMISSION, on_error=list_)
async def confirm(request: FormRequest) -> Redirect:
    """Confirm the selected lines, or all of the page, each as by itself. Those that can't be are named."""
    keys = _read_keys(request.form.getlist("shown" if request.form.text("all") else "line"))
    if not keys:
        raise ValidationError(lines="Select the lines whose amounts you have compared")
    failed = list[str]()
    for invoice_id, line_id in keys:
        try:
            await line_claims.confirm_result(request.write_context, invoice_id, line_id)
        except NotFound:  # deleted since
            failed.append("A line doesn’t exist any more.")
        except DomainError as error:  # raised before the line is written
            failed.append(error.detail)
    count = len(keys) - len(failed)
    text = f"{count:,} {'amount' if count == 1 else 'amounts'} confirmed."
    if failed:
        text += f" {len(failed):,} not confirmed: {_join(failed)}"
    return Redirect(UNCONFIRMED_URL, text)


def _read_keys(texts: Iterable[str]) -> Sequence[LineKey]:
    """The lines of a form in the order in which invoices are locked."""
    return sorted({key for key in map(parse_key, [*texts][:PAGE_SIZE]) if key})


def _join(messages: Sequence[str]) -> str:
    different = list(dict.fromkeys(messages))
    more = f" and {len(different) - MAX_NAMED:,} more" if len(different) > MAX_NAMED else ""
    return " ".join(different[:MAX_NAMED]) + more
