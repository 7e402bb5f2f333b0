"""What a claim batch contains and leaves out, grouped by the reason, as its pages show it."""

from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from msgspec import UNSET

from plankeeper.console.claims.paging import PagePart, select_part
from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.claims.eligibility import REASONS, LineKey
from plankeeper.resources.claims.line_claims import claim_amounts
from plankeeper.resources.claims.schemas import ClaimBatch
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.changes import to_line_rows
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.invoices.schemas import Invoice
from plankeeper.resources.invoices.warnings import WARNINGS

MAX_SHOWN = 10  # lines of a group
_SETTINGS = f"{PREFIX}/settings/claims-and-payments"
_TITLES: Mapping[str, str] = {
    "state": "Claimed already, or closed",
    "wont_claim": "Excluded from claims",
    "held": "On hold",
    "approval_pending": "Waiting for approval",
    "approval_rejected": "Approval rejected",
    "blocking_warning": "With a warning that blocks claims",
    "missing_registration_number": "Your registration number is missing",
    "missing_ndis_number": "NDIS number missing or wrong",
    "missing_item": "Without a support item",
    "invalid_item": "Support item not allowed in the file",
    "missing_service_date": "Service dates missing or wrong",
    "future_service": "Service in the future",
    "across_plans": "Service in two plans",
    "across_funding_periods": "Service in two funding periods",
    "inexpressible_quantity": "Quantity not allowed in the file",
    "inexpressible_total": "Amount not allowed in the file",
    "zero_or_less": "Amount of zero or less",
    "missing_abn": "ABN missing or wrong",
    "p1_undecided": "GST of unit prices undecided",
    "batch_full": "For the next batch",
}
_TEXTS: Mapping[str, str] = {**REASONS}
# Pages that help with all lines of a reason.
_LINKS: Mapping[str, tuple[str, str]] = {
    "held": (f"{PREFIX}/review?queue=held", "Review the held invoices"),
    "approval_pending": (f"{PREFIX}/review?queue=approval", "Show what waits for approval"),
    "blocking_warning": (f"{PREFIX}/review", "Review the invoices"),
    "missing_registration_number": (_SETTINGS, "Enter it in the settings"),
    "p1_undecided": (_SETTINGS, "Decide it in the settings"),
}


class ShownLine(NamedTuple):
    """A line with its invoice. `message` is null where the group says it already."""

    url: str
    number: str
    position: int
    participant: str
    provider: str
    amount: Decimal | None
    message: str | None


class LineGroup(NamedTuple):
    """The lines with one reason or warning, some of which are shown. `amount` is that of all of them.

    `url` is the page with all of its lines; `part` is what such a page shows, and null on another one.
    """

    name: str
    title: str
    text: str
    line_count: int
    amount: Decimal
    lines: Sequence[ShownLine]
    url: str
    part: PagePart | None = None
    link: tuple[str, str] | None = None

    @property
    def more(self) -> int:
        """The number of lines that aren't shown."""
        return 0 if self.part else self.line_count - len(self.lines)


class BatchContent(NamedTuple):
    """The groups of a batch: with a warning, left out, and left out because the batch is full.

    `single` is the group that the address names.
    """

    warned: Sequence[LineGroup]
    left_out: Sequence[LineGroup]
    full: LineGroup | None
    left_out_count: int  # without those of the next batch
    is_cut: bool  # whether more lines are left out than the groups count
    single: LineGroup | None


class _Keys(NamedTuple):
    """The keys of the lines of a group with their messages, and those of the lines that are shown."""

    name: str
    lines: Sequence[tuple[LineKey, str]]
    shown: Sequence[tuple[LineKey, str]]
    part: PagePart | None


async def load_content(request: PageRequest, batch: ClaimBatch, url: str) -> BatchContent:
    """The groups of a batch, or of a dry run, on the page at `url`.

    The shown invoices are recorded in the access log.
    """
    warned = dict[str, list[tuple[LineKey, str]]]()
    for each in batch.warned or ():
        for code in each.codes:
            warned.setdefault(code, []).append(((each.invoice_id, each.line_id), ""))
    left_out = dict[str, list[tuple[LineKey, str]]]()
    for each in batch.left_out or ():
        left_out.setdefault(each.reason, []).append(((each.invoice_id, each.line_id), each.message))
    all_keys = [_select(request, name, keys, url) for name, keys in (*warned.items(), *left_out.items())]
    lines = await _load_lines(request, all_keys)
    groups = {each.name: _group(each, lines, url) for each in all_keys}
    full = groups.get("batch_full")
    listed = len(batch.left_out) if batch.left_out is not UNSET else 0
    return BatchContent(
        [groups[code] for code in warned],
        [groups[reason] for reason in REASONS if reason in left_out and reason != "batch_full"],
        full,
        batch.left_out_count - (full.line_count if full else 0),
        batch.left_out is not UNSET and batch.left_out_count > listed,
        next((each for each in groups.values() if each.part), None),
    )


def _select(request: PageRequest, name: str, keys: Sequence[tuple[LineKey, str]], url: str) -> _Keys:
    if request.query.text("reason") != name:
        return _Keys(name, keys, keys[:MAX_SHOWN], None)
    part = select_part(request, len(keys), url, {"reason": name})
    return _Keys(name, keys, keys[part.first : part.end], part)


class _Lines(NamedTuple):
    """The amounts of all lines, and the lines that are shown."""

    amounts: Mapping[LineKey, Decimal]
    shown: Mapping[LineKey, ShownLine]


async def _load_lines(request: PageRequest, groups: Sequence[_Keys]) -> _Lines:
    place = (request.executor, request.plan_manager_id)
    ids = sorted({key[0] for group in groups for key, _ in group.lines})
    invoices = {each.id: each for each in await invoice_store.get_many(*place, ids)}
    amounts = dict[LineKey, Decimal]()
    for each in invoices.values():
        amounts |= {(each.id, line_id): amount for line_id, amount in claim_amounts(each).items() if amount}
    shown = {key for group in groups for key, _ in group.shown if key[0] in invoices}
    request.record_list("invoice", sorted({key[0] for key in shown}), {})
    names = await load_names(request, [invoices[key[0]] for key in shown])
    found = [(key, describe_line(invoices[key[0]], key[1], names)) for key in shown]
    return _Lines(amounts, {key: each._replace(amount=amounts.get(key)) for key, each in found})


def _group(keys: _Keys, lines: _Lines, url: str) -> LineGroup:
    """A group with its words: those of a reason or of a warning."""
    title = _TITLES.get(keys.name) or (WARNINGS[keys.name].title if keys.name in WARNINGS else keys.name)
    text = _TEXTS.get(keys.name, "")
    shown = [
        lines.shown[key]._replace(message=message if message != text else None)
        for key, message in keys.shown
        if key in lines.shown
    ]
    amount = sum((lines.amounts.get(key, Decimal(0)) for key, _ in keys.lines), Decimal(0))
    own_url, link = with_query(url, {"reason": keys.name}), _LINKS.get(keys.name)
    return LineGroup(keys.name, title, text, len(keys.lines), amount, shown, own_url, keys.part, link)


async def load_names(request: PageRequest, invoices: Iterable[Invoice]) -> Mapping[UUID, str | None]:
    """The names of the participants and providers of invoices."""
    shown = [*invoices]
    participants = {each.participant_id for each in shown if each.participant_id}
    providers = {each.pm_provider_id for each in shown if each.pm_provider_id}
    found = await get_display_names(request.executor, request.plan_manager_id, [*participants], [*providers])
    return {each.id: each.name for each in found}


def describe_line(invoice: Invoice, line_id: UUID, names: Mapping[UUID, str | None]) -> ShownLine:
    """A line of an invoice, without its amount."""
    line = next((each for each in to_line_rows(invoice) if each.id == line_id), None)
    return ShownLine(
        f"{PREFIX}/invoices/{invoice.id}",
        invoice.invoice_number or "No number",
        line.position + 1 if line else 0,
        (names.get(invoice.participant_id) or "No name") if invoice.participant_id else "No participant",
        (names.get(invoice.pm_provider_id) or "No name") if invoice.pm_provider_id else "No provider",
        None,
        None,
    )
