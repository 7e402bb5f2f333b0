"""The facts of warnings: what is wrong with an invoice, as values and as a sentence.

`line` is the number of a line, from 1, with deleted lines. `expected` is the value or the limit that would be right,
and `found` what the invoice says; each is null if there is none. Amounts are in dollars.
"""

from datetime import date
from decimal import Decimal
from typing import Any, ClassVar, Literal
from uuid import UUID

from msgspec import Struct

from plankeeper.core.formatting import format_date, format_decimal, format_money

ITEM_CODE_EXAMPLE = "01_011_0107_1_1"


class Fact(Struct, frozen=True, kw_only=True):
    """What is wrong. Each fact of a line has its number. `EXPECTED` and `FOUND` name the fields with these values."""

    EXPECTED: ClassVar[str] = ""
    FOUND: ClassVar[str] = ""

    line: int | None = None

    @property
    def expected(self) -> Any:
        return getattr(self, self.EXPECTED) if self.EXPECTED else None

    @property
    def found(self) -> Any:
        return getattr(self, self.FOUND) if self.FOUND else None

    @property
    def sentence(self) -> str:
        """One sentence with the actual and the expected value."""
        raise NotImplementedError


class MissingNumber(Fact, frozen=True, kw_only=True):
    """The invoice has no number; `number` is null, or a text of nothing but spaces."""

    FOUND = "number"

    number: str | None

    @property
    def sentence(self) -> str:
        return "The invoice has no number."


class MissingRecord(Fact, frozen=True, kw_only=True):
    """The participant or provider that the invoice names doesn't exist; `id` is null if it names none."""

    FOUND = "id"

    kind: Literal["participant", "provider"]
    id: UUID | None

    @property
    def sentence(self) -> str:
        if self.id is None:
            return f"No {self.kind} on this invoice."
        return f"The {self.kind} of this invoice, {self.id}, wasn’t found."


class SeveralRecords(Fact, frozen=True, kw_only=True):
    """Several participants have the participant number that was sent, or several providers the ABN."""

    FOUND = "number"

    kind: Literal["participant", "provider"]
    number: str

    @property
    def sentence(self) -> str:
        label = "number" if self.kind == "participant" else "ABN"
        return f"Several {self.kind}s have the {label} {self.number}, so the invoice has no {self.kind}."


class InactiveParticipant(Fact, frozen=True, kw_only=True):
    """The participant is inactive, since `exit_date` if it is known."""

    FOUND = "exit_date"

    exit_date: date | None

    @property
    def sentence(self) -> str:
        if self.exit_date is None:
            return "The participant is inactive. No exit date is recorded."
        return f"The participant is inactive, with the exit date {format_date(self.exit_date)}."


class InactiveProvider(Fact, frozen=True, kw_only=True):
    """The provider is inactive."""

    @property
    def sentence(self) -> str:
        return "The provider is marked as inactive."


class FirstInvoice(Fact, frozen=True, kw_only=True):
    """There is no earlier invoice from the provider."""

    @property
    def sentence(self) -> str:
        return "This is the first invoice from this provider: check who it is."


MAX_NOTE_LENGTH = 100  # of the text of a note in a fact


class AlertNote(Fact, frozen=True, kw_only=True):
    """The participant or the provider has a note that is an alert. `found` is the beginning of its text."""

    kind: Literal["participant", "provider"]
    text: str

    @property
    def found(self) -> str:
        text = " ".join(self.text.split())
        return text if len(text) <= MAX_NOTE_LENGTH else f"{text[: MAX_NOTE_LENGTH - 1].rstrip()}…"

    @property
    def sentence(self) -> str:
        return f"The {self.kind} has an alert: “{self.found}”."


class WrongAbn(Fact, frozen=True, kw_only=True):
    """The provider's ABN is missing or invalid."""

    FOUND = "abn"

    abn: str | None

    @property
    def sentence(self) -> str:
        if not (self.abn or "").strip():
            return "The provider has no ABN."
        return f"The provider’s ABN, {self.abn}, isn’t 11 digits with a valid check digit."


class WrongLine(Fact, frozen=True, kw_only=True):
    """A line whose total isn't its quantity times its unit price. Without `total`, the line has no amount."""

    EXPECTED = "computed"
    FOUND = "total"

    quantity: Decimal | None
    unit_price: Decimal | None
    computed: Decimal | None
    total: Decimal | None

    @property
    def sentence(self) -> str:
        if self.total is None:
            return f"Line {self.line} has no amount."
        if self.quantity is None or self.unit_price is None or self.computed is None:
            raise ValueError("a line without quantity or unit price has no expected total")
        product = f"{format_decimal(self.quantity)} × {format_money(self.unit_price)} is {format_money(self.computed)}"
        return f"Line {self.line}: {product}, the invoice says {format_money(self.total)}."


class WrongSubtotal(Fact, frozen=True, kw_only=True):
    """The lines don't add up to the subtotal, or to the total less tax if the invoice states no subtotal."""

    EXPECTED = "sum"
    FOUND = "subtotal"

    sum: Decimal
    subtotal: Decimal
    is_stated: bool

    @property
    def sentence(self) -> str:
        found = "the invoice says" if self.is_stated else "but the total less tax is"
        return f"The lines add up to {format_money(self.sum)}, {found} {format_money(self.subtotal)}."


class WrongTotal(Fact, frozen=True, kw_only=True):
    """The total isn't the subtotal plus tax. Without `total`, the invoice states amounts, but no total.

    `subtotal` is that of the lines if the invoice states none, and null if a line has no amount.
    """

    FOUND = "total"

    subtotal: Decimal | None
    tax: Decimal
    total: Decimal | None

    @property
    def expected(self) -> Decimal | None:
        return None if self.subtotal is None else self.subtotal + self.tax

    @property
    def sentence(self) -> str:
        if self.subtotal is None or self.expected is None:
            return "The invoice has no total."
        amounts = f"subtotal {format_money(self.subtotal)} plus tax {format_money(self.tax)}"
        if self.total is None:
            return f"The invoice has no total. Its {amounts} is {format_money(self.expected)}."
        return f"{amounts.capitalize()} is {format_money(self.expected)}, the invoice says {format_money(self.total)}."


class WrongTax(Fact, frozen=True, kw_only=True):
    """The tax isn't a tenth of the lines with the GST code P1."""

    EXPECTED = "tenth"
    FOUND = "tax"

    taxable: Decimal
    tenth: Decimal
    tax: Decimal

    @property
    def sentence(self) -> str:
        tax = format_money(self.tax)
        if not self.taxable:
            return f"No line has the GST code P1, but the invoice has a tax of {tax}."
        return f"A tenth of the P1 lines is {format_money(self.tenth)}, the invoice says {tax}."


class NegativeAmount(Fact, frozen=True, kw_only=True):
    """A line, or without `line` the total, is negative."""

    FOUND = "amount"

    amount: Decimal

    @property
    def sentence(self) -> str:
        subject = f"Line {self.line}" if self.line else "The total"
        return f"{subject} is negative: {format_decimal(self.amount)}. Record a credit as a refund."


class WrongDate(Fact, frozen=True, kw_only=True):
    """An invalid date of the invoice or of a service: it exceeds the day `limit` by `days`."""

    EXPECTED = "limit"
    FOUND = "day"

    problem: Literal["missing", "in_future", "before_plan", "after_plan"]
    day: date | None = None
    limit: date | None = None
    days: int = 0

    @property
    def sentence(self) -> str:
        if self.day is None or self.limit is None:
            return "The invoice has no date."
        days = "1 day" if self.days == 1 else f"{self.days:,} days"
        subject = f"Line {self.line} has a service on" if self.line else "The invoice is dated"
        dated, limit = f"{subject} {format_date(self.day)}", format_date(self.limit)
        if self.problem == "in_future":
            return f"{dated}, which is {days} in the future."
        side = "before the plan starts" if self.problem == "before_plan" else "after the plan ends"
        return f"{dated}, {days} {side} ({limit})."


class ServiceInFuture(Fact, frozen=True, kw_only=True):
    """A service is after today."""

    EXPECTED = "today"
    FOUND = "day"

    day: date
    today: date

    @property
    def sentence(self) -> str:
        return f"Line {self.line} has a service on {format_date(self.day)}, which is in the future."


class OldService(Fact, frozen=True, kw_only=True):
    """A service was before `limit`, the first day that can still be claimed."""

    EXPECTED = "limit"
    FOUND = "day"

    day: date
    limit: date

    @property
    def sentence(self) -> str:
        day, limit = format_date(self.day), format_date(self.limit)
        return f"Line {self.line} has a service on {day}. The first day that can be claimed is {limit}."


class UnmanagedService(Fact, frozen=True, kw_only=True):
    """A service is before the office manages the plan (`side`), or after it; `limit` is the first or the last day."""

    EXPECTED = "limit"
    FOUND = "day"

    day: date
    limit: date
    side: Literal["before", "after"]

    @property
    def sentence(self) -> str:
        since = "from" if self.side == "before" else "until"
        day, limit = format_date(self.day), format_date(self.limit)
        return f"Line {self.line} has a service on {day}. We manage the participant’s plan {since} {limit}."


class ServiceAfterDeath(Fact, frozen=True, kw_only=True):
    """A service is after the participant's date of death."""

    EXPECTED = "deceased_on"
    FOUND = "day"

    day: date
    deceased_on: date

    @property
    def sentence(self) -> str:
        day, death = format_date(self.day), format_date(self.deceased_on)
        return f"Line {self.line} has a service on {day}. The participant died on {death}."


class WrongItemCode(Fact, frozen=True, kw_only=True):
    """A line without a support item number, or with one of another form."""

    FOUND = "number"

    number: str | None

    @property
    def sentence(self) -> str:
        if not (self.number or "").strip():
            return f"Line {self.line} has no support item number."
        return f"Line {self.line}: “{self.number}” isn’t a valid number, such as {ITEM_CODE_EXAMPLE}."


class UnknownItem(Fact, frozen=True, kw_only=True):
    """The support catalogue doesn't have the item of a line; `day`: it has it, but not for this day of the service."""

    FOUND = "number"

    number: str
    day: date | None = None

    @property
    def sentence(self) -> str:
        if self.day is None:
            return f"Line {self.line}: the support catalogue has no item {self.number}."
        return f"Line {self.line}: the item {self.number} isn’t in force on {format_date(self.day)}."


class HighPrice(Fact, frozen=True, kw_only=True):
    """The unit price of a line is above the limit of its item."""

    EXPECTED = "limit"
    FOUND = "price"

    price: Decimal
    limit: Decimal

    @property
    def sentence(self) -> str:
        return f"Line {self.line}: the unit price is {format_money(self.price)}, the limit {format_money(self.limit)}."


class SplitService(Fact, frozen=True, kw_only=True):
    """A service from `day` to `last_day` that ends after the plan or the funding period of its first day, on `limit`.

    `unit` is what it is split by. `has_begun` is false for a service in a funding period that begins later, on `limit`.
    """

    EXPECTED = "limit"
    FOUND = "last_day"

    unit: Literal["plan", "funding period"]
    day: date
    last_day: date
    limit: date
    has_begun: bool = True

    @property
    def sentence(self) -> str:
        first, limit = format_date(self.day), format_date(self.limit)
        if not self.has_begun:
            return f"Line {self.line}: the funding period of the service on {first} begins on {limit}."
        dates = f"{first} to {format_date(self.last_day)}"
        return f"Line {self.line}: the service of {dates} goes on after the {self.unit} that ends on {limit}. Split it."


class OverBudget(Fact, frozen=True, kw_only=True):
    """A line costs more than its component has available."""

    EXPECTED = "available"
    FOUND = "amount"

    component: str
    amount: Decimal
    available: Decimal

    @property
    def sentence(self) -> str:
        available = format_money(self.available)
        return f"Line {self.line} costs {format_money(self.amount)}, and {self.component} has {available} available."


class EarlierDuplicate(Fact, frozen=True, kw_only=True):
    """An earlier invoice of the same provider has this number."""

    FOUND = "number"

    number: str

    @property
    def sentence(self) -> str:
        return "An earlier invoice from this provider has the same number."


class DuplicateLine(Fact, frozen=True, kw_only=True):
    """Another invoice has a line with the same participant, item, dates and quantity."""

    FOUND = "number"

    number: str
    day: date

    @property
    def sentence(self) -> str:
        return f"Line {self.line}: another invoice has {self.number} on {format_date(self.day)} in the same quantity."


class SameDocument(Fact, frozen=True, kw_only=True):
    """Another invoice has the same document."""

    @property
    def sentence(self) -> str:
        return "Another invoice has the same document."
