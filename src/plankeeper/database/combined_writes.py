"""Writes of one transaction that are sent as one statement.

A write without a result needn't be sent before the next statement, and several of them fit into one statement as
common table expressions. All of them see the database as it was before the statement, so none may depend on another.

A queued write hasn't reached PostgreSQL when the store's function returns: a violated constraint is raised by the next
statement or by the commit. Code that catches a violation calls `Transaction.flush` inside its `try`, or uses a
savepoint, which does.

This saves a quarter of a create's processor time, because it is one round trip instead of four.
"""

from functools import lru_cache
from typing import LiteralString, NamedTuple

from plankeeper.database.connections import name_combined

MAX_COMBINED = 100  # statements that are kept
_DIGITS: tuple[LiteralString, ...] = ("0", "1", "2", "3", "4", "5", "6", "7", "8", "9")
_TENS: tuple[LiteralString, ...] = ("", "1", "2", "3", "4")
# An f-string that contains an integer isn't a LiteralString.
NUMBERS: tuple[LiteralString, ...] = tuple(tens + ones for tens in _TENS for ones in _DIGITS)
_NAMES: tuple[LiteralString, ...] = ("first_write", "second_write", "third_write", "fourth_write", "fifth_write")
MAX_WRITES = len(_NAMES)  # of one statement


class Write(NamedTuple):
    """A statement without a result. `$1` is the plan manager, and `parameters` the number of its parameters.

    `ctes` are the common table expressions before `main`, which inserts, updates or deletes. Their names differ from
    those of all writes that can wait with it. `changed` is the one that must return a row: otherwise the statement
    fails with SerializationError. With it, `main` may be empty.
    """

    ctes: LiteralString
    main: LiteralString
    parameters: int
    changed: LiteralString = ""

    @property
    def statement(self) -> LiteralString:
        """The write alone."""
        return combine((self,))

    @property
    def unchecked(self) -> LiteralString:
        """The write alone, of rows that are locked. Citus can't plan the check."""
        return f"with {self.ctes} {self.main or f'select count(*) from {self.changed}'}"


@lru_cache(MAX_COMBINED)
def combine(writes: tuple[Write, ...]) -> LiteralString:
    """One statement for several writes. Its parameters are the plan manager, and then those of each write in turn."""
    parts: list[LiteralString] = []
    mains: list[LiteralString] = []
    offset = 0
    for write in writes:
        parts.append(_renumber(write.ctes, write.parameters, offset))
        if write.main:
            mains.append(_renumber(write.main, write.parameters, offset))
        offset += write.parameters - 1
    checks: list[LiteralString] = [
        f"require_unchanged(exists (select from {each.changed}))" for each in writes if each.changed
    ]
    last: LiteralString = "select " + ", ".join(checks) if checks else mains.pop()
    named: list[LiteralString] = [name + " as (" + main + ")" for name, main in zip(_NAMES, mains, strict=False)]
    every_part: LiteralString = ", ".join([*parts, *named])
    statement: LiteralString = f"with {every_part} {last}"
    if len(writes) > 1:
        name_combined(statement, tuple(each.statement for each in writes))
    return statement


def _renumber(text: LiteralString, parameters: int, offset: int) -> LiteralString:
    """Move the parameters behind the plan manager's by `offset`, each once; first `$12`, which begins with `$1`."""
    for number in range(parameters, 1, -1):
        text = text.replace("$" + NUMBERS[number], "\0" + NUMBERS[number + offset])
    return text.replace("\0", "$")
