"""Converts cells that people type to the format of an import file: dates, yes and no, states, amounts, numbers."""

import re
from collections.abc import Iterable, Mapping
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Literal, get_args, get_origin
from uuid import UUID

from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.formatting import plain_number
from plankeeper.core.validation import unwrap_type
from plankeeper.database.client import Transaction
from plankeeper.imports.columns import fold
from plankeeper.resources.account_managers import store as account_managers
from plankeeper.resources.account_managers.schemas import AccountManagerRow
from plankeeper.resources.exit_reasons import store as exit_reasons
from plankeeper.resources.exit_reasons.schemas import ExitReasonRow

_MIDNIGHT = re.compile(r"[ T](0?0:00(:00(\.0+)?)?|12:00(:00)? ?am)Z?$", re.ASCII | re.IGNORECASE)
_BOOLEANS = {
    **dict.fromkeys(("true", "yes", "y", "1", "active", "on", "x", "✓"), "true"),
    **dict.fromkeys(("false", "no", "n", "0", "inactive", "off"), "false"),
}
_STATES = {
    "australiancapitalterritory": "ACT",
    "newsouthwales": "NSW",
    "northernterritory": "NT",
    "queensland": "QLD",
    "southaustralia": "SA",
    "tasmania": "TAS",
    "victoria": "VIC",
    "westernaustralia": "WA",
}
_PRIORITIES = {"primary": "1", "yes": "1", "secondary": "2", "first": "1", "second": "2", "no": "", "none": ""}
# Fields whose value consists of digits, which people group with spaces.
NUMBER_FIELDS = frozenset({"participant_number", "abn"})
# The beginnings of cells that spreadsheets run as formulas, also in full width.
FORMULA_PREFIXES = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")


class CellError(Exception):
    """An unreadable cell; the message describes valid values."""


def clean(cell: str) -> str:
    """A cell without surrounding spaces, and without the apostrophe that keeps a spreadsheet from running it."""
    text = cell.replace("\u00a0", " ").strip()
    return text[1:] if text.startswith("'") and text.startswith(FORMULA_PREFIXES, 1) else text


def normalize(field: str, annotation: Any, text: str) -> str:
    """A cell's text in the form of an import file. Raises CellError for a date or an amount that can't be read.

    Other texts that aren't values of the field stay as they are, for the errors of the validation.
    """
    if field in NUMBER_FIELDS:
        normalized = plain_number(text)
    elif field == "contact_priority":
        normalized = _PRIORITIES.get(text.casefold(), text)
    elif field == "state":
        normalized = _STATES.get(fold(text), text.upper())
    elif "phone" in field:
        normalized = " ".join(text.split())
    else:
        normalized = _normalize_kind(annotation, text)
    return normalized


def _normalize_kind(annotation: Any, text: str) -> str:
    kind = unwrap_type(annotation)
    if kind is date:
        return _parse_date(text)
    if kind is bool:
        return _BOOLEANS.get(text.casefold(), text)
    if kind is Decimal:
        return _plain_amount(text)
    return _code_of(annotation, text)


def _parse_date(text: str) -> str:
    """A date in ISO 8601; spreadsheets may add midnight. Raises CellError."""
    try:
        return parse_date(_MIDNIGHT.sub("", text)).isoformat()
    except DateError as error:
        raise CellError(str(error)) from None


def _plain_amount(text: str) -> str:
    amount = text.replace("$", "").replace(",", "").replace(" ", "")
    if re.fullmatch(r"\([0-9.]+\)", amount):
        amount = f"-{amount[1:-1]}"
    return amount


def _code_of(annotation: Any, text: str) -> str:
    """The code for a text, in any case and with spaces for underscores: `on hold` is `on_hold`."""
    codes = _codes(annotation)
    if not codes or text.startswith("["):  # a list may be JSON
        return text
    folded = {fold(each): each for each in codes}
    if unwrap_type(annotation) is list:
        return ";".join(folded.get(fold(each), each.strip()) for each in re.split("[;,]", text))
    return folded.get(fold(text), text)


def _codes(annotation: Any) -> list[str]:
    """The texts that a field accepts; none if it accepts any text."""
    if get_origin(annotation) is Literal:
        return [each for each in get_args(annotation) if isinstance(each, str)]
    if get_origin(annotation) is Annotated:
        return _codes(annotation.__origin__)
    return [code for part in get_args(annotation) for code in _codes(part)]


MAX_CANDIDATES = 3
_EXIT_REASON_FIELDS = ("exit_reason_category_id", "exit_reason_subcategory_id")
_KINDS = {"account_manager_id": "an account manager", **dict.fromkeys(_EXIT_REASON_FIELDS, "an exit reason")}


class References:
    """The account managers and exit reasons of a plan manager, by id, name and email."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, list[tuple[str, str]]]] = {name: {} for name in _KINDS}

    def add(self, fields: Iterable[str], id_: str, label: str, texts: Iterable[str | None]) -> None:
        """Add a record that each of the texts identifies. `label` describes it among several candidates."""
        for field in fields:
            for text in {_fold_spaces(each) for each in texts if each and each.strip()} | {id_}:
                self._names[field].setdefault(text, []).append((id_, label))

    def resolve(self, field: str, text: str) -> str:
        """The id of the record that a cell identifies; the text itself for other fields. Raises CellError."""
        if field not in self._names:
            return text
        found = self._names[field].get(_fold_spaces(text), [])
        if len(found) == 1:
            return found[0][0]
        kind = _KINDS[field]
        if not found:
            raise CellError(f"must be the name or id of {kind} of this plan manager{_examples(self._names[field])}")
        labels = ", ".join(label for _, label in found[:MAX_CANDIDATES])
        more = f" and {len(found) - MAX_CANDIDATES} more" if len(found) > MAX_CANDIDATES else ""
        raise CellError(f"must name one record, but {len(found)} have this name: {labels}{more}")


def _examples(names: Mapping[str, list[tuple[str, str]]]) -> str:
    labels = sorted({label for each in names.values() for _, label in each})
    if not labels:
        return ", which has none"
    return f": {', '.join(labels)}" if len(labels) <= MAX_CANDIDATES else f", such as {labels[0]}"


def _fold_spaces(text: str) -> str:
    return " ".join(text.casefold().split())


async def load_references(tx: Transaction, plan_manager_id: UUID) -> References:
    """All account managers that aren't deleted, and all exit reasons."""
    references = References()
    async for managers in account_managers.export(tx, plan_manager_id):
        for manager in managers:
            _add_account_manager(references, manager)
    async for reasons in exit_reasons.export(tx, plan_manager_id):
        for reason in reasons:
            _add_exit_reason(references, reason)
    return references


def _add_account_manager(references: References, manager: AccountManagerRow) -> None:
    first, last = manager.first_name or "", manager.last_name or ""
    names = (f"{first} {last}", f"{last}, {first}" if last else None)
    label = " ".join(filter(None, (first, last))) or manager.email or str(manager.id)
    label = f"{label} ({manager.email})" if manager.email and manager.email != label else label
    texts = () if manager.deleted else (*names, manager.email)
    references.add(("account_manager_id",), str(manager.id), label, texts)


def _add_exit_reason(references: References, reason: ExitReasonRow) -> None:
    field = _EXIT_REASON_FIELDS[1 if reason.parent_id else 0]
    other = _EXIT_REASON_FIELDS[0 if reason.parent_id else 1]
    references.add((field,), str(reason.id), reason.name, (reason.name,))
    references.add((other,), str(reason.id), reason.name, ())
