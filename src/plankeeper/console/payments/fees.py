"""The office's own fees: those of a month, and what the office takes of them."""

from collections import defaultdict
from collections.abc import Sequence
from datetime import date, timedelta
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.claims.list import CLAIMS_URL
from plankeeper.console.components.labels import field_label
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links, with_query
from plankeeper.console.components.record_picker import load_record_names
from plankeeper.console.payments.left_out import left_out_groups
from plankeeper.console.payments.list import PAYMENTS_URL
from plankeeper.console.payments.pages import PERMISSION
from plankeeper.console.shell.cookies import FlashLink
from plankeeper.console.shell.form_reader import read_date
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.dates import last_months
from plankeeper.core.errors import DomainError, ValidationError
from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import format_money
from plankeeper.core.ids import parse_uuid
from plankeeper.core.validation import validate_struct
from plankeeper.resources.fees import service, store, takings
from plankeeper.resources.fees.monthly import SENTENCES
from plankeeper.resources.fees.schemas import (
    FeeReason,
    FeeTaking,
    LeftOutParticipant,
    MonthFees,
    NewFees,
    NewFeeTaking,
    TakenLine,
    TakenLineListQuery,
)
from plankeeper.resources.invoices import store as invoice_store

pages = Pages()

URL = f"{PAYMENTS_URL}/fees"
MONTHS = 12  # that can be chosen
MAX_FEES_SHOWN = 50
MAX_NAMES = 50  # of participants with a reason
MAX_TAKINGS = 24  # on the page
CHANGED = "What can be taken has changed in the meantime. Look at the amount again, and then take the fees."


class LeftOutGroup(NamedTuple):
    """The participants without a fee for one reason, some of whom are named with their pages."""

    reason: FeeReason
    sentence: str
    person_count: int
    people: Sequence[tuple[str, str]]

    @property
    def more(self) -> int:
        return self.person_count - len(self.people)


class ShownFee(NamedTuple):
    """A fee that would be made."""

    name: str
    url: str
    service_date: date
    amount: Any


class ShownLine(NamedTuple):
    """What a taking takes of a line. The number is null if the invoice doesn't exist any more."""

    taken: TakenLine
    number: str | None
    participant: str


@pages.get("/payments/fees", role="manager", permission=PERMISSION)
async def get(request: PageRequest) -> HtmlPage:
    """The fees of a month, by default of the last one, what can be taken, and what was taken."""
    months = list_months(request.today)
    chosen = (request.form or request.query).text("month")
    month = chosen if chosen in months else next(iter(months))
    place = (request.db, request.plan_manager_id)
    context: dict[str, Any] = {
        "month": month,
        "months": months,
        "made_months": await store.list_months(*place, min(months)),
        "latest": await store.list_latest_takings(*place, MAX_TAKINGS),
        "form": request.form or Form([("taken_on", request.today.isoformat())]),
        "settings_url": service.SETTINGS_PAGE,
        **await _preview(request, month),
        **await _taking_preview(request, month),
    }
    return HtmlPage("payments/fees.html", context)


def list_months(today: date) -> dict[str, str]:
    """The months that have ended, the latest first, with their names."""
    return {each.text: each.title for each in last_months(today + timedelta(days=1), MONTHS + 1)[1:]}


async def _preview(request: PageRequest, month: str) -> dict[str, Any]:
    """Who would get a fee, or the settings that are missing or wrong."""
    nothing = {"preview": None, "fees": (), "groups": (), "problems": ()}
    try:
        async with request.db.transaction() as tx:
            ctx = request.with_transaction(tx).write_context
            found = await service.create(ctx, month, is_dry_run=True)
    except ValidationError as error:
        return nothing | {"problems": [_problem(each.field, each.code) for each in error.errors]}
    shown = [each.participant_id for each in found.fees[:MAX_FEES_SHOWN]]
    by_reason = defaultdict[FeeReason, list[LeftOutParticipant]](list)
    for each in found.left_out:
        by_reason[each.reason].append(each)
    named = [each.participant_id for group in by_reason.values() for each in group[:MAX_NAMES]]
    request.record_list("participant", [*shown, *named], {"page": "fees"})
    names = await load_record_names(request, [*shown, *named], [])
    return nothing | {
        "preview": found,
        "fees": [_shown_fee(found, index, names) for index in range(len(shown))],
        "groups": [_group(reason, group, names) for reason, group in by_reason.items()],
    }


def _problem(field: str, code: str | None) -> str:
    if field == "fee_provider_id" and code != "required":
        return "The provider record of your office must have your ABN."
    return f"{field_label(field)} isn’t set."


def _shown_fee(found: MonthFees, index: int, names: dict[UUID, str]) -> ShownFee:
    fee = found.fees[index]
    return ShownFee(
        names.get(fee.participant_id, "No name"), _participant_url(fee.participant_id), fee.service_date, fee.amount
    )


def _group(reason: FeeReason, group: Sequence[LeftOutParticipant], names: dict[UUID, str]) -> LeftOutGroup:
    people = [
        (names.get(each.participant_id, "No name"), _participant_url(each.participant_id)) for each in group[:MAX_NAMES]
    ]
    return LeftOutGroup(reason, SENTENCES[reason], len(group), people)


def _participant_url(participant_id: UUID) -> str:
    return f"{PREFIX}/participants/{participant_id}"


async def _taking_preview(request: PageRequest, month: str) -> dict[str, Any]:
    async with request.db.transaction() as tx:
        ctx = request.with_transaction(tx).write_context
        found = await takings.take(ctx, NewFeeTaking(all=True), is_dry_run=True)
    left_out = unset_to_none(found.left_out) or []
    groups = await left_out_groups(request, left_out, URL, {"month": month})
    return {"taking": found, "seen": seen_text(found), "not_taken": groups, "not_taken_count": len(left_out)}


def seen_text(taking: FeeTaking) -> str:
    """What a person has seen before taking fees: the number of lines and their sum."""
    return f"{taking.lines} {taking.total:.2f}"


@pages.post("/payments/fees", role="manager", permission=PERMISSION, on_error=get)
async def create(request: FormRequest) -> Redirect:
    """Make the fees of the month, at most 500 at a time: the page then offers the next ones."""
    new = validate_struct(NewFees, {"month": request.form.text("month")})
    made = await service.create(request.write_context, new.month)
    rest = sum(each.reason == "batch_full" for each in made.left_out)
    text = f"{made.count:,} {'fee' if made.count == 1 else 'fees'} made: {format_money(made.total)}."
    if not made.count:
        text = "Nothing was made: all fees of the month exist."
    elif rest:
        text += " More participants get one: make the next fees."
    may_claim = request.has_permission("make_claims")
    link = FlashLink("Claim them", f"{CLAIMS_URL}/new") if made.count and not rest and may_claim else None
    return Redirect(with_query(URL, {"month": new.month}), text, link=link)


@pages.post("/payments/fees/take", role="manager", permission=PERMISSION, on_error=get)
async def take(request: FormRequest) -> Redirect:
    """Take the fees that the person has seen. If they have changed since, the page shows the new amount."""
    day = read_date(request.form, "taken_on")
    try:
        taking = await takings.take(request.write_context, NewFeeTaking(all=True, taken_on=day))
    except ValidationError as error:
        if [each.field for each in error.errors] == ["all"]:
            raise DomainError("invalid_transition", CHANGED) from None
        raise
    if request.form.text("seen") != seen_text(taking):
        raise DomainError("invalid_transition", CHANGED)
    text = f"Fees taken: {format_money(taking.total)}. Transfer this amount with the reference {taking.number}."
    return Redirect(f"{URL}/{taking.id}", text)


@pages.get("/payments/fees/{fee_taking_id}", role="manager", permission=PERMISSION)
async def get_taking(request: PageRequest, fee_taking_id: UUID) -> HtmlPage:
    """A taking with its lines."""
    place = (request.db, request.plan_manager_id)
    taking = or_404(await store.get_taking(*place, fee_taking_id))
    after = parse_uuid(request.query.text("after"))
    query = TakenLineListQuery(limit=PAGE_SIZE, after=str(after) if after else "0")
    found = await store.list_lines_page(*place, fee_taking_id, query)
    context: dict[str, Any] = {
        "taking": taking,
        "lines": await _shown_lines(request, found),
        "pages": paginate_links(f"{URL}/{fee_taking_id}", {}, found, after),
    }
    return HtmlPage("payments/fee_taking.html", context)


async def _shown_lines(request: PageRequest, lines: Sequence[TakenLine]) -> list[ShownLine]:
    place = (request.db, request.plan_manager_id)
    ids = list(dict.fromkeys(each.invoice_id for each in lines))
    invoices = {each.id: each for each in await invoice_store.get_many_without_lines(*place, ids)}
    request.record_list("invoice", list(invoices), {"page": "fees"})
    people = [each.participant_id for each in invoices.values() if each.participant_id]
    names = await load_record_names(request, people, [])
    shown = list[ShownLine]()
    for each in lines:
        invoice = invoices.get(each.invoice_id)
        name = names.get(invoice.participant_id, "") if invoice and invoice.participant_id else ""
        shown.append(ShownLine(each, (invoice.invoice_number or "No number") if invoice else None, name))
    return shown
