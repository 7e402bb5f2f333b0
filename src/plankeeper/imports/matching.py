"""Matches rows without an id to participants by their number, and to providers by their ABN."""

from collections import defaultdict, deque
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass, field
from datetime import date
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.core.formatting import comparable_number, fold_name, format_date, plain_number
from plankeeper.imports import store
from plankeeper.imports.cells import clean
from plankeeper.imports.schemas import ImportOptions, NumberHolder, Problem
from plankeeper.resources.upsert import ImportRow

MAX_NAMES = 3


class Numbered(NamedTuple):
    """A resource whose records have a number: the field, its digits, its name in messages, its holders."""

    field: str
    digit_count: int
    label: str
    list_holders: Callable[[Any, UUID, Sequence[str]], Awaitable[list[NumberHolder]]]

    def normalize(self, text: str) -> str:
        return comparable_number(plain_number(text), self.digit_count)


NUMBERED = {
    "participants": Numbered("participant_number", 9, "NDIS number", store.list_participants_by_number),
    "providers": Numbered("abn", 11, "ABN", store.list_providers_by_abn),
}


@dataclass(slots=True)
class MatchResult:
    """The rows to write, the errors and warnings by line, and the ids of the records of skipped lines.

    An unconfirmed line has the id of the record with its number, and the difference between the two.
    """

    rows: list[ImportRow[Any]] = field(default_factory=list[ImportRow[Any]])
    errors: dict[int, Problem] = field(default_factory=dict[int, Problem])
    warnings: dict[int, Problem] = field(default_factory=dict[int, Problem])
    skipped: dict[int, str] = field(default_factory=dict[int, str])
    unconfirmed: dict[int, tuple[str, Problem]] = field(default_factory=dict[int, tuple[str, Problem]])


class Matcher:
    """Matches the rows of one file, batch by batch. It keeps the first line of each number and of each id."""

    def __init__(self, options: ImportOptions) -> None:
        self._numbered = NUMBERED.get(options.resource)
        self._existing = options.existing
        self._included = frozenset(options.included_lines)
        self._lines_by_number: dict[str, int] = {}
        self._lines_by_id: dict[str, int] = {}

    async def match(
        self, ctx: WriteContext, rows: Sequence[ImportRow[Any]], rejected_numbers: Sequence[tuple[int, str]] = ()
    ) -> MatchResult:
        """Give each row of a known number the id of its record, as the import's option says.

        `rejected_numbers` are the lines of rejected rows with their numbers, which count as numbers of the file.
        """
        result, rejected = MatchResult(), deque(rejected_numbers)
        holders = await self._list_holders(ctx, rows)
        for row in rows:
            while rejected and rejected[0][0] < row.line_number:
                self._add_number(*rejected.popleft(), result)
            number = self._number(row)
            if number and self._numbered:
                self._match_row(row, number, holders[number], self._numbered, result)
            if self._is_left_out(row, result) or self._repeats_id(row, result):
                continue
            result.rows.append(row)
        for line_number, number in rejected:
            self._add_number(line_number, number, result)
        return result

    def _add_number(self, line_number: int, text: str, result: MatchResult) -> None:
        """Keep the number of a rejected row. A repeated number is a warning beside the row's errors."""
        if not self._numbered or not text.strip():
            return
        number = self._numbered.normalize(clean(text))
        first = self._lines_by_number.setdefault(number, line_number)
        if first != line_number:
            result.warnings[line_number] = self._repeats(first, number, self._numbered)

    def _repeats(self, first: int, number: str, numbered: Numbered) -> Problem:
        return Problem(numbered.field, number, f"line {first:,} has the same {numbered.label}")

    def _is_left_out(self, row: ImportRow[Any], result: MatchResult) -> bool:
        return any(row.line_number in lines for lines in (result.errors, result.skipped, result.unconfirmed))

    def _repeats_id(self, row: ImportRow[Any], result: MatchResult) -> bool:
        id_ = row.values.id
        if id_ is UNSET or id_ is None or hasattr(row.values, "permissions"):  # a person can be on several teams
            return False
        first = self._lines_by_id.setdefault(str(id_).lower(), row.line_number)
        if first != row.line_number:
            message = f"line {first:,} is about the same record: keep one of the lines"
            result.errors[row.line_number] = Problem("id", str(id_), message)
        return first != row.line_number

    def _number(self, row: ImportRow[Any]) -> str | None:
        if self._numbered is None:
            return None
        value = getattr(row.values, self._numbered.field)
        return self._numbered.normalize(value) if isinstance(value, str) and value.strip() else None

    async def _list_holders(
        self, ctx: WriteContext, rows: Sequence[ImportRow[Any]]
    ) -> defaultdict[str, list[NumberHolder]]:
        """The records of each number in the rows. Stored numbers may contain spaces and hyphens."""
        numbers = {number for row in rows if (number := self._number(row))}
        holders = defaultdict[str, list[NumberHolder]](list)
        if numbers and self._numbered:
            for each in await self._numbered.list_holders(ctx.tx, ctx.plan_manager_id, sorted(numbers)):
                holders[self._numbered.normalize(each.number)].append(each)
        return holders

    def _match_row(
        self,
        row: ImportRow[Any],
        number: str,
        holders: Sequence[NumberHolder],
        numbered: Numbered,
        result: MatchResult,
    ) -> None:
        first = self._lines_by_number.setdefault(number, row.line_number)
        own_id = None if row.values.id is UNSET else str(row.values.id).lower()
        others = [each for each in holders if str(each.id) != own_id]
        matches = own_id is None and self._existing != "create"
        if first != row.line_number:
            problem = self._repeats(first, number, numbered)
            (result.errors if matches else result.warnings)[row.line_number] = problem
        elif len(others) > 1 and matches:
            message = f"{_names(others)} have this {numbered.label}: add the ID of one of them"
            result.errors[row.line_number] = Problem(numbered.field, number, message)
        elif others and not matches:
            verb = "has" if len(others) == 1 else "have"
            message = f"{_names(others)} {verb} this {numbered.label} already"
            result.warnings[row.line_number] = Problem(numbered.field, number, message)
        elif others and self._existing == "skip":
            result.skipped[row.line_number] = str(others[0].id)
        elif others:
            self._match_record(row, others[0], numbered, result)

    def _match_record(self, row: ImportRow[Any], holder: NumberHolder, numbered: Numbered, result: MatchResult) -> None:
        """Give the row the id of its record; a row about another person only if it is included."""
        if _is_somebody_else(row.values, holder):
            born = f" (born {format_date(holder.date_of_birth)})" if holder.date_of_birth else ""
            problem = Problem("", "", f"This {numbered.label} is {holder.name}’s{born}.", is_warning=True)
            if row.line_number not in self._included:
                result.unconfirmed[row.line_number] = str(holder.id), problem
                return
            result.warnings[row.line_number] = problem
        row.values.id = str(holder.id)


def _is_somebody_else(values: Any, holder: NumberHolder) -> bool:
    """Whether a row has another name and date of birth than the participant with its number.

    Of a provider, the names have no word in common. A name with fewer or more words is the same one.
    """
    own = _words(*(getattr(values, name, None) for name in ("first_name", "last_name", "entity_name")))
    known = _words(holder.name)
    if not hasattr(values, "date_of_birth"):
        return bool(own and known) and own.isdisjoint(known)
    born = values.date_of_birth
    return isinstance(born, date) and born != holder.date_of_birth and not (own <= known or known <= own)


def _words(*names: object) -> set[str]:
    return {word for name in names if isinstance(name, str) for word in fold_name(name).split()}


def assign_ids(resource: str, rows: Sequence[ImportRow[Any]]) -> None:
    """Give new records their ids, except those whose ids depend on other records or come from a sequence.

    A plan without an id can be an existing one with its dates.
    """
    if resource in ("note-types", "team-members", "account-managers", "plans"):
        return
    for row in rows:
        if row.values.id is UNSET:
            row.values.id = str(uuid7())


def _names(holders: Sequence[NumberHolder]) -> str:
    names = [each.name or str(each.id) for each in holders]
    if len(names) > MAX_NAMES:
        return f"{', '.join(names[:MAX_NAMES])} and {len(names) - MAX_NAMES} more"
    return " and ".join(filter(None, (", ".join(names[:-1]), names[-1])))
