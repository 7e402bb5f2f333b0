"""Lines of claim batches and payment runs in groups with one reason or warning, some of which a page shows.

The groups of a page are counted and added up from ids and amounts. Only the invoices of the shown lines are read.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.bank_details.section import payee_url
from plankeeper.console.claims.paging import PagePart, select_part
from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.claims.eligibility import LineKey
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.changes import to_line_rows
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.invoices.schemas import Invoice

MAX_SHOWN = 10  # lines or payees of a group


class ShownLine(NamedTuple):
    """A line with its invoice. `message` is null where the group says it already; `warnings` are titles."""

    url: str
    line_url: str
    number: str
    position: int
    participant: str
    provider: str
    item: str | None
    amount: Decimal | None = None
    message: str | None = None
    warnings: Sequence[str] = ()


class PayeeLines(NamedTuple):
    """The lines of a payee whose bank details are the reason, with the amount of all of them."""

    url: str
    name: str
    line_count: int
    amount: Decimal


class GroupWords(NamedTuple):
    """The title of a reason or warning, a text about it, and a page that helps with all of its lines.

    `is_of_payees`: the payee is the reason, so its lines are one row.
    """

    title: str
    text: str = ""
    link: tuple[str, str] | None = None
    is_of_payees: bool = False


class GroupedLine(NamedTuple):
    """A line in the group `name`. The amount is null without a price."""

    name: str
    key: LineKey
    amount: Decimal | None
    message: str = ""
    payee: Payee | None = None


class LineGroup(NamedTuple):
    """The lines with one reason or warning, or their payees, some of which are shown. `amount` is that of all of them.

    `url` is the page with all of its lines; `part` is what such a page shows, and null on another one. `more` is
    whether not all of them are shown.
    """

    name: str
    words: GroupWords
    line_count: int
    amount: Decimal
    lines: Sequence[ShownLine]
    payees: Sequence[PayeeLines]
    url: str
    part: PagePart | None
    more: bool


class GroupPlace(NamedTuple):
    """The address of a page of groups, and the filters that the access log gets.

    All lines of a group are on the page with its name as `reason`, or on another one that `list_url` returns.
    """

    url: str
    params: Mapping[str, str]
    access: Mapping[str, str]
    list_url: Callable[[str], str] | None = None

    def params_of(self, name: str) -> dict[str, str]:
        return {**self.params, "reason": name}

    def url_of(self, name: str) -> str:
        return self.list_url(name) if self.list_url else with_query(self.url, self.params_of(name))


class _Selected(NamedTuple):
    """The lines of a group that a page shows: each by itself, or those of a payee together."""

    lines: Sequence[GroupedLine]
    shown: Sequence[Sequence[GroupedLine]]
    part: PagePart | None
    more: bool


async def load_groups(
    request: PageRequest,
    lines: Iterable[GroupedLine],
    words: Callable[[str], GroupWords],
    place: GroupPlace,
) -> dict[str, LineGroup]:
    """The groups by their names, in the order of their first lines, or the one that the address names.

    The shown invoices and participants are recorded in the access log.
    """
    by_name = dict[str, list[GroupedLine]]()
    for each in lines:
        by_name.setdefault(each.name, []).append(each)
    selected = {
        name: _select(request, found, place, is_of_payees=words(name).is_of_payees) for name, found in by_name.items()
    }
    single = [each for each in by_name if selected[each].part]
    read = [selected[each] for each in single or by_name]
    of_lines = [entry[0].key for each in read for entry in each.shown if len(entry) == 1 and not entry[0].payee]
    payees = {entry[0].payee for each in read for entry in each.shown if entry[0].payee}
    shown = await load_lines(request, of_lines, place.access)
    names = await _load_payees(request, payees, place.access)
    return {
        name: _group(name, selected[name], words(name), place.url_of(name), shown, names) for name in single or by_name
    }


def _select(request: PageRequest, lines: Sequence[GroupedLine], place: GroupPlace, *, is_of_payees: bool) -> _Selected:
    entries = dict[object, list[GroupedLine]]()
    for each in lines:
        entries.setdefault((is_of_payees and each.payee) or each.key, []).append(
            each if is_of_payees else each._replace(payee=None)
        )
    found, name = [*entries.values()], lines[0].name
    if request.query.text("reason") != name:
        return _Selected(lines, found[:MAX_SHOWN], None, len(found) > MAX_SHOWN)
    part = select_part(request, len(found), place.url, place.params_of(name))
    return _Selected(lines, found[part.first : part.end], part, more=False)


def _group(
    name: str,
    selected: _Selected,
    words: GroupWords,
    url: str,
    lines: Mapping[LineKey, ShownLine],
    payees: Mapping[Payee, str],
) -> LineGroup:
    shown_lines, shown_payees = list[ShownLine](), list[PayeeLines]()
    for entry in selected.shown:
        first = entry[0]
        if first.payee:
            amount = sum((each.amount or Decimal(0) for each in entry), Decimal(0))
            shown_payees.append(PayeeLines(payee_url(first.payee), payees[first.payee], len(entry), amount))
        elif line := lines.get(first.key):
            message = first.message if first.message != words.text else None
            shown_lines.append(line._replace(amount=first.amount, message=message))
    amount = sum((each.amount or Decimal(0) for each in selected.lines), Decimal(0))
    return LineGroup(
        name, words, len(selected.lines), amount, shown_lines, shown_payees, url, selected.part, selected.more
    )


async def _load_payees(request: PageRequest, payees: Iterable[Payee], access: Mapping[str, str]) -> dict[Payee, str]:
    ids: dict[str, list[UUID]] = {"participant": [], "provider": []}
    found = [*payees]
    for each in found:
        ids[each.kind].append(each.id)
    request.record_list("participant", sorted(ids["participant"]), access)
    place = (request.executor, request.plan_manager_id)
    names = {each.id: each.name for each in await get_display_names(*place, ids["participant"], ids["provider"])}
    return {each: names.get(each.id) or "No name" for each in found}


async def load_lines(
    request: PageRequest, keys: Sequence[LineKey], access: Mapping[str, str]
) -> dict[LineKey, ShownLine]:
    """Lines by their keys, without their amounts; those of deleted invoices are missing. The access log gets them."""
    ids = sorted({key[0] for key in keys})
    invoices = {each.id: each for each in await invoice_store.get_many(request.executor, request.plan_manager_id, ids)}
    request.record_list("invoice", sorted(invoices), access)
    names = await load_names(request, invoices.values())
    return {key: describe_line(invoices[key[0]], key[1], names) for key in keys if key[0] in invoices}


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
        line_url(invoice.id, line_id),
        invoice.invoice_number or "No number",
        line.position + 1 if line else 0,
        (names.get(invoice.participant_id) or "No name") if invoice.participant_id else "No participant",
        (names.get(invoice.pm_provider_id) or "No name") if invoice.pm_provider_id else "No provider",
        line.service_item_number if line else None,
    )


def line_url(invoice_id: UUID, line_id: UUID) -> str:
    """The page about the claims and the money of a line."""
    return f"{PREFIX}/invoices/{invoice_id}/lines/{line_id}/claim"
