"""The checks of an invoice, computed from its own values and those of its participant, provider and items."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import date, datetime
from decimal import Decimal
from functools import partial
from typing import Literal
from uuid import UUID

from msgspec import Struct
from stdnum.au import abn

from plankeeper.core.formatting import plain_number, to_cents
from plankeeper.resources.invoices.facts import (
    AlertNote,
    DuplicateLine,
    EarlierDuplicate,
    Fact,
    FirstInvoice,
    HighPrice,
    InactiveParticipant,
    InactiveProvider,
    MissingNumber,
    MissingRecord,
    NegativeAmount,
    OldService,
    OverBudget,
    SameDocument,
    ServiceAfterDeath,
    ServiceInFuture,
    SeveralRecords,
    SplitService,
    UnknownItem,
    UnmanagedService,
    WrongAbn,
    WrongDate,
    WrongItemCode,
    WrongLine,
    WrongSubtotal,
    WrongTax,
    WrongTotal,
)
from plankeeper.resources.invoices.schemas import GstCode, InvoiceLineRow, InvoiceRow
from plankeeper.resources.invoices.warnings import WARNINGS, CodeLevel
from plankeeper.resources.plans import rules as plan_rules
from plankeeper.resources.plans.budget_checks import Available
from plankeeper.resources.plans.schemas import FundingPeriod, PlanRow
from plankeeper.resources.support_items.rules import Remoteness, category_of_item, price_limit
from plankeeper.resources.support_items.schemas import PricedItem

_ITEM_CODE = re.compile(r"[0-9]{2}_[0-9]{3,9}_[0-9]{4}_[0-9]_[0-9]")
_ROUNDING_TOLERANCE = Decimal("0.005")
_ZERO = Decimal(0)
YEARS_TO_CLAIM = 2


class CheckLine(Struct, frozen=True):
    """The values of an invoice line that the checks use. Amounts are in dollars.

    `item` is the support item in force on the day of the service; `is_known_item`: the catalogue has it for any day.
    `has_duplicate`: another invoice has a line with the same participant, item, dates and quantity. `pending` and
    `is_rest_waiting` are as in LineSum.
    """

    quantity: Decimal | None
    unit_price: Decimal | None
    total_price: Decimal | None
    service_item_number: str | None
    is_deleted: bool
    id: UUID | None = None
    service_date_from: date | None = None
    service_date_to: date | None = None
    gst_code: GstCode = "P2"
    amount: Decimal | None = None
    component_id: UUID | None = None
    claim_status: str = "new"
    paid_amount: Decimal | None = None
    pending: Decimal | None = None
    is_rest_waiting: bool = False
    item: PricedItem | None = None
    is_known_item: bool = False
    has_duplicate: bool = False

    @property
    def days(self) -> tuple[date, date] | None:
        """The first and the last day of the service."""
        first = self.service_date_from or self.service_date_to
        last = self.service_date_to or self.service_date_from
        return (first, last) if first and last else None


class CheckInput(Struct, frozen=True):
    """The values that the checks use: of an invoice, its participant and its provider. Amounts are in dollars.

    `participant_status` is null if the participant doesn't exist. `plans` are all of the participant's.
    `ambiguous_participant_number` and `ambiguous_provider_abn` are those that several records have.
    `participant_alerts` and `provider_alerts` are the texts of notes with an alert.
    `has_same_document`: another invoice, which is neither cancelled nor deleted, has a document with the same bytes.
    `has_earlier_duplicate`: an earlier invoice that isn't deleted has the same provider and number.
    `has_earlier_invoice`: there is an earlier invoice from the provider.
    `levels` are those of the plan manager that differ from the usual ones. `prices_include_gst`: unit prices in claim
    files include the tax of taxable lines.
    """

    invoice_number: str | None
    invoice_date: date | None
    total: Decimal | None
    tax: Decimal | None
    subtotal: Decimal | None
    received_at: datetime
    is_deleted: bool
    wont_claim: bool
    participant_id: UUID | None
    participant_status: str | None
    date_ceased: date | None
    participant_state: str | None
    remoteness: Remoteness | None
    managed_from: date | None
    managed_until: date | None
    deceased_on: date | None
    plans: list[PlanRow]
    pm_provider_id: UUID | None
    provider_exists: bool
    provider_abn: str | None
    provider_active: bool
    ambiguous_participant_number: str | None
    ambiguous_provider_abn: str | None
    has_catalogue: bool
    prices_include_gst: bool | None
    levels: list[CodeLevel]
    participant_alerts: list[str]
    provider_alerts: list[str]
    has_same_document: bool
    has_earlier_duplicate: bool
    has_earlier_invoice: bool
    lines: list[CheckLine]


Facts = dict[str, list[Fact]]
NumberedLine = tuple[int, CheckLine]


def find_facts(invoice: CheckInput, today: date, budget: Mapping[UUID, Available] | None = None) -> Facts:
    """Return the facts of each warning of an invoice, by the warning's code, in the order of `WARNINGS`.

    `today` is the date in the plan manager's time zone. `budget` says what is available for each of its lines whose
    component is known. Deleted lines don't count. A blank invoice number counts as missing. A participant with status
    Lead causes no warning: the first invoices often arrive before the agreement.
    """
    found: dict[str, Iterable[Fact]] = {
        "missing_invoice_number": _number_facts(invoice),
        "missing_participant": _participant_facts(invoice),
        "missing_provider": _provider_facts(invoice),
        "several_participants": _several_facts("participant", _sent_participant(invoice)),
        "several_providers": _several_facts("provider", _sent_provider(invoice)),
        "inactive_participant": _status_facts(invoice),
        "inactive_provider": [InactiveProvider()] if invoice.provider_exists and not invoice.provider_active else [],
        "flagged_participant": [AlertNote(kind="participant", text=each) for each in invoice.participant_alerts],
        "flagged_provider": [AlertNote(kind="provider", text=each) for each in invoice.provider_alerts],
        "first_time_provider": [FirstInvoice()] if invoice.provider_exists and not invoice.has_earlier_invoice else [],
        "check_abn": _abn_facts(invoice),
        "check_total": _amount_facts(invoice, _counted_lines(invoice)),
        "check_gst": _tax_facts(invoice),
        "check_dates": _date_facts(invoice, today),
        "possible_duplicate": _duplicate_facts(invoice),
        "same_document": [SameDocument()] if invoice.has_same_document else [],
    }
    found |= _find_line_facts(invoice, today, budget or {})
    lists = {code: list(facts) for code, facts in found.items()}
    return {code: facts for code in WARNINGS if (facts := lists[code])}


def _find_line_facts(invoice: CheckInput, today: date, budget: Mapping[UUID, Available]) -> dict[str, Iterable[Fact]]:
    lines = _counted_lines(invoice)
    dated = [(number, line, *line.days) for number, line in lines if line.days]
    limit = _years_before(today)
    return {
        "not_managed": [
            fact for number, _, first, last in dated for fact in _management_facts(invoice, number, first, last)
        ],
        "after_death": [
            ServiceAfterDeath(line=number, day=last, deceased_on=invoice.deceased_on)
            for number, _, _, last in dated
            if invoice.deceased_on and last > invoice.deceased_on
        ],
        "negative_line": [*_negative_facts(invoice, lines)],
        "service_in_future": [
            ServiceInFuture(line=number, day=last, today=today) for number, _, _, last in dated if last > today
        ],
        "too_old": [OldService(line=number, day=first, limit=limit) for number, _, first, _ in dated if first < limit],
        "check_item_code": [
            WrongItemCode(line=number, number=line.service_item_number)
            for number, line in lines
            if not line.is_known_item and not is_item_code(line.service_item_number)
        ],
        "unknown_item": [*_unknown_item_facts(invoice, lines)],
        "item_not_in_force": [*_item_date_facts(invoice, lines)],
        "price_above_limit": [*_price_facts(invoice, lines)],
        "check_funding_period": [*_period_facts(invoice, lines, today)],
        "check_budget": [*_budget_facts(lines, budget)],
        "line_duplicate": [
            DuplicateLine(line=number, number=line.service_item_number or "", day=line.service_date_from)
            for number, line in lines
            if line.has_duplicate and line.service_date_from
        ],
    }


def is_item_code(text: str | None) -> bool:
    """Whether a text is a support item number, `CC_SSS_RRRR_D_P`: 2, 3 to 9, 4, 1 and 1 ASCII digits."""
    return text is not None and _ITEM_CODE.fullmatch(text) is not None


# Records


def _number_facts(invoice: CheckInput) -> Iterator[Fact]:
    if not (invoice.invoice_number or "").strip():
        yield MissingNumber(number=invoice.invoice_number)


def _participant_facts(invoice: CheckInput) -> Iterator[Fact]:
    if invoice.participant_status is None and _sent_participant(invoice) is None:
        yield MissingRecord(kind="participant", id=invoice.participant_id)


def _provider_facts(invoice: CheckInput) -> Iterator[Fact]:
    if not invoice.provider_exists and _sent_provider(invoice) is None:
        yield MissingRecord(kind="provider", id=invoice.pm_provider_id)


def _sent_participant(invoice: CheckInput) -> str | None:
    """The number that several participants have, if the invoice has no participant."""
    return invoice.ambiguous_participant_number if invoice.participant_id is None else None


def _sent_provider(invoice: CheckInput) -> str | None:
    """The ABN that several providers have, if the invoice has no provider."""
    return invoice.ambiguous_provider_abn if invoice.pm_provider_id is None else None


def _several_facts(kind: Literal["participant", "provider"], number: str | None) -> Iterator[Fact]:
    if number is not None:
        yield SeveralRecords(kind=kind, number=number)


def _status_facts(invoice: CheckInput) -> Iterator[Fact]:
    if invoice.participant_status == "Inactive":
        yield InactiveParticipant(exit_date=invoice.date_ceased)


def _abn_facts(invoice: CheckInput) -> Iterator[Fact]:
    if invoice.provider_exists and not abn.is_valid(plain_number(invoice.provider_abn or "")):
        yield WrongAbn(abn=invoice.provider_abn)


def _duplicate_facts(invoice: CheckInput) -> Iterator[Fact]:
    if invoice.has_earlier_duplicate:
        yield EarlierDuplicate(number=invoice.invoice_number or "")


# Dates


def _date_facts(invoice: CheckInput, today: date) -> Iterator[Fact]:
    """The invoice's date, and the days of its services that are outside all plans.

    The invoice's date stands for the day of a service where a line has none. A plan that lacks a date is open on that
    side. Without any plan, nothing is compared.
    """
    day = invoice.invoice_date
    if day is None:
        yield WrongDate(problem="missing")
    elif day > today:
        yield WrongDate(problem="in_future", day=day, limit=today, days=(day - today).days)
    lines = _counted_lines(invoice)
    if day is not None and (not lines or any(line.days is None for _, line in lines)):
        yield from _plan_facts(invoice, None, day)
    for number, line in lines:
        for each in sorted({*(line.days or ())}):
            yield from _plan_facts(invoice, number, each)


def _plan_facts(invoice: CheckInput, line: int | None, day: date) -> Iterator[Fact]:
    ranges = [
        (each.start_date or date.min, each.end_date or date.max)
        for each in invoice.plans
        if each.start_date or each.end_date
    ]
    if not ranges or any(start <= day <= end for start, end in ranges):
        return
    ended = [end for _, end in ranges if end < day]
    if ended:
        yield WrongDate(line=line, problem="after_plan", day=day, limit=max(ended), days=(day - max(ended)).days)
    else:
        start = min(start for start, _ in ranges)
        yield WrongDate(line=line, problem="before_plan", day=day, limit=start, days=(start - day).days)


def _management_facts(invoice: CheckInput, line: int, first: date, last: date) -> Iterator[Fact]:
    if invoice.managed_from and first < invoice.managed_from:
        yield UnmanagedService(line=line, day=first, limit=invoice.managed_from, side="before")
    if invoice.managed_until and last > invoice.managed_until:
        yield UnmanagedService(line=line, day=last, limit=invoice.managed_until, side="after")


def _years_before(day: date) -> date:
    try:
        return day.replace(year=max(date.min.year, day.year - YEARS_TO_CLAIM))
    except ValueError:  # 29 February
        return day.replace(year=day.year - YEARS_TO_CLAIM, day=28)


def _period_facts(invoice: CheckInput, lines: Sequence[NumberedLine], today: date) -> Iterator[Fact]:
    for number, line in lines:
        first, last = line.days or (None, None)
        if first is None or last is None:
            continue
        plan, last_plan = plan_rules.plan_on(invoice.plans, first), plan_rules.plan_on(invoice.plans, last)
        if plan is None or last_plan is None or plan.end_date is None:
            continue  # a service outside all plans is `check_dates`
        split = partial(SplitService, line=number, day=first, last_day=last)
        if plan is not last_plan:
            yield split(unit="plan", limit=plan.end_date)
            continue
        component = plan_rules.component_for(plan, line.component_id, category_of(line, plan))
        period = _period_on(component.periods if component else [], first)
        if period and last > period.end_date:
            yield split(unit="funding period", limit=period.end_date)
        elif period and period.start_date > today:
            yield split(unit="funding period", limit=period.start_date, has_begun=False)


def _period_on(periods: Sequence[FundingPeriod], day: date) -> FundingPeriod | None:
    return next((each for each in periods if each.start_date <= day <= each.end_date), None)


def category_of(line: CheckLine, plan: PlanRow) -> int | None:
    """The support category of a line: the catalogue's, else the number before the first underscore."""
    if line.item is None:
        return plan_rules.category_in(line.service_item_number)
    return category_of_item(line.item, plan.is_pace_plan)


# Items


def _unknown_item_facts(invoice: CheckInput, lines: Sequence[NumberedLine]) -> Iterator[Fact]:
    for number, line in lines:
        item_number = (line.service_item_number or "").strip()
        if invoice.has_catalogue and item_number and not line.is_known_item:
            yield UnknownItem(line=number, number=item_number)


def _item_date_facts(invoice: CheckInput, lines: Sequence[NumberedLine]) -> Iterator[Fact]:
    for number, line in lines:
        day = line.service_date_from or line.service_date_to or invoice.invoice_date
        if day and line.is_known_item and line.item is None:
            yield UnknownItem(line=number, number=line.service_item_number or "", day=day)


def _price_facts(invoice: CheckInput, lines: Sequence[NumberedLine]) -> Iterator[Fact]:
    for number, line in lines:
        price = line.unit_price
        if price is None and line.quantity and line.total_price is not None:
            price = to_cents(line.total_price / line.quantity)
        if price is not None and line.gst_code == "P1" and invoice.prices_include_gst:
            price = to_cents(price * 11 / 10)
        limit = price_limit(line.item, invoice.participant_state, invoice.remoteness) if line.item else None
        if price is not None and limit is not None and price > limit:
            yield HighPrice(line=number, price=price, limit=limit)


def _budget_facts(lines: Sequence[NumberedLine], budget: Mapping[UUID, Available]) -> Iterator[Fact]:
    for number, line in lines:
        found = budget.get(line.id) if line.id else None
        if found and found.amount > found.available:
            yield OverBudget(line=number, component=found.component, amount=found.amount, available=found.available)


# Amounts


def _negative_facts(invoice: CheckInput, lines: Sequence[NumberedLine]) -> Iterator[Fact]:
    if invoice.total is not None and invoice.total < 0:
        yield NegativeAmount(amount=invoice.total)
    for number, line in lines:
        values = (line.total_price, line.quantity, line.unit_price)
        if negative := [each for each in values if each is not None and each < 0]:
            yield NegativeAmount(line=number, amount=negative[0])


def _tax_facts(invoice: CheckInput) -> Iterator[Fact]:
    """Compare the tax with the P1 lines: rounded once, or line by line. A missing tax counts as zero."""
    lines = _counted_lines(invoice)
    amounts = [_amount(line) for _, line in lines if line.gst_code == "P1"]
    if not lines or None in amounts:
        return
    stated = [each for each in amounts if each is not None]
    taxable, tax = sum(stated, _ZERO), invoice.tax or _ZERO
    by_line = sum((to_cents(each / 10) for each in stated), _ZERO)
    if not _is_close(tax, taxable / 10) and tax != by_line:
        yield WrongTax(taxable=taxable, tenth=to_cents(taxable / 10), tax=tax)


def has_wrong_total(invoice: InvoiceRow, lines: Sequence[InvoiceLineRow]) -> bool:
    """Whether the check `check_total` finds anything, whatever the level of the warning is."""
    counted = [(number, line) for number, line in enumerate(lines, start=1) if not line.is_deleted]
    return any(True for _ in _amount_facts(invoice, counted))


def _amount_facts(
    invoice: CheckInput | InvoiceRow, lines: Sequence[tuple[int, CheckLine | InvoiceLineRow]]
) -> Iterator[Fact]:
    """Compare the stated amounts, as a person who pays the invoice would.

    Missing tax counts as zero. A missing subtotal is the total less tax, and a missing line total is quantity times
    unit price. If the invoice states any amount, it must state a total, every line must have an amount, and the lines
    must add up to the subtotal: an amount without a line cannot be claimed. An invoice without any amounts passes.
    """
    amounts = [_amount(line) for _, line in lines]
    stated = [amount for amount in amounts if amount is not None]
    tax = invoice.tax or _ZERO
    if invoice.total is None and invoice.subtotal is None and not tax and not stated:
        return
    yield from _line_amount_facts(lines)
    sum_of_lines = sum(stated, _ZERO) if len(stated) == len(amounts) else None
    if invoice.total is None:
        subtotal = sum_of_lines if invoice.subtotal is None else invoice.subtotal
        yield WrongTotal(subtotal=subtotal, tax=tax, total=None)
        return
    subtotal = invoice.total - tax if invoice.subtotal is None else invoice.subtotal
    if sum_of_lines is not None and not _is_close(subtotal, sum_of_lines):
        yield WrongSubtotal(sum=sum_of_lines, subtotal=subtotal, is_stated=invoice.subtotal is not None)
    if not _is_close(invoice.total, subtotal + tax):
        yield WrongTotal(subtotal=subtotal, tax=tax, total=invoice.total)


def _line_amount_facts(lines: Sequence[tuple[int, CheckLine | InvoiceLineRow]]) -> Iterator[Fact]:
    for number, line in lines:
        if _amount(line) is None or not _line_total_matches(line):
            yield WrongLine(
                line=number,
                quantity=line.quantity,
                unit_price=line.unit_price,
                computed=_computed_total(line),
                total=line.total_price,
            )


def _counted_lines(invoice: CheckInput) -> list[NumberedLine]:
    """The lines that aren't deleted, each with its number in the invoice."""
    return [(number, line) for number, line in enumerate(invoice.lines, start=1) if not line.is_deleted]


def _amount(line: CheckLine | InvoiceLineRow) -> Decimal | None:
    return _computed_total(line) if line.total_price is None else line.total_price


def _computed_total(line: CheckLine | InvoiceLineRow) -> Decimal | None:
    if line.quantity is None or line.unit_price is None:
        return None
    return to_cents(line.quantity * line.unit_price)


def _line_total_matches(line: CheckLine | InvoiceLineRow) -> bool:
    if line.quantity is None or line.unit_price is None or line.total_price is None:
        return True
    return _is_close(line.total_price, line.quantity * line.unit_price)


def _is_close(left: Decimal, right: Decimal) -> bool:
    # Issuers round half a cent either up or to the even cent: both are correct.
    return abs(left - right) <= _ROUNDING_TOLERANCE
