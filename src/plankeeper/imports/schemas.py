"""Schemas of imports and their rows."""

from collections.abc import Sequence
from datetime import date, datetime
from typing import Annotated, Literal, NamedTuple
from uuid import UUID

from msgspec import Meta, Raw, Struct

ImportState = Literal["uploaded", "checked", "imported", "undone"]
# The treatment of rows without an id whose number belongs to an existing record.
ExistingRecords = Literal["update", "skip", "create"]
# A row is unconfirmed if its number is that of a record with another name and date of birth, and it isn't included.
Outcome = Literal["created", "changed", "unchanged", "skipped", "rejected", "unconfirmed"]


class OutcomeCounts(Struct):
    """The number of rows of each outcome, and of the rows with warnings among them."""

    created_count: int = 0
    changed_count: int = 0
    unchanged_count: int = 0
    skipped_count: int = 0
    rejected_count: int = 0
    unconfirmed_count: int = 0
    warning_count: int = 0

    @property
    def row_count(self) -> int:
        return self.written_count + self.unchanged_count + self.skipped_count + self.left_out_count

    @property
    def written_count(self) -> int:
        """The rows that write a record."""
        return self.created_count + self.changed_count

    @property
    def left_out_count(self) -> int:
        """The rows that aren't imported, because of their errors or because nobody confirmed them."""
        return self.rejected_count + self.unconfirmed_count


class ImportOptions(Struct):
    """How a file is read. `mapping` has the field of each column, or an empty string; it is null for JSON Lines."""

    resource: str
    mapping: list[str] | None
    existing: ExistingRecords = "update"
    included_lines: list[int] = []  # of rows that are imported although they seem to be about another person
    clears_empty: bool = False  # a blank cell clears the value; otherwise, it doesn't change anything
    sets_states: bool = False  # the claim and approval states of existing invoices are those of the file


class Import(OutcomeCounts, kw_only=True):
    """An import of the console. `columns` are those of the file; null for JSON Lines, and after the retention."""

    id: UUID
    resource: str
    file_name: str
    digest: str
    existing: ExistingRecords
    clears_empty: bool
    sets_states: bool = False
    included_lines: list[int] = []
    notify: bool
    state: ImportState
    created_by: UUID  # the account
    created_by_name: str
    created_at: datetime
    imported_at: datetime | None
    undone_at: datetime | None
    undone_by_name: str | None
    columns: list[str] | None
    mapping: list[str] | None

    @property
    def is_finished(self) -> bool:
        return self.state in ("imported", "undone")


class Problem(Struct):
    """An error or a warning of a row: the field (empty for the whole row), the value in the file, the message."""

    field: str
    value: str
    message: Annotated[str, Meta(description="What is wrong, and what is right.")]
    is_warning: bool = False


class ImportedRow(Struct):
    """The result of a row, or of its check.

    A check keeps the record before and after, an import the id of the event. A rejected or unconfirmed row keeps its
    cells.
    """

    line_number: int
    outcome: Outcome
    has_warnings: bool
    record_id: str | None
    event_id: UUID | None
    cells: list[str] | None
    before: Raw | None
    after: Raw | None
    problems: Raw | None


class CheckedRow(Struct):
    """What a check has stored of a row, with JSON as text."""

    line_number: int
    outcome: Outcome
    record_id: str | None
    before: str | None
    after: str | None
    problems: str | None


class ImportRowFilter(NamedTuple):
    """Rows of one outcome or of all, with some other lines, or only those with warnings."""

    outcome: str | None = None
    lines: Sequence[int] = ()
    with_warnings: bool = False


class ImportRowRecord(Struct):
    """A row as it is inserted."""

    plan_manager_id: UUID
    import_id: UUID
    line_number: int
    outcome: Outcome
    has_warnings: bool
    record_id: str | None
    event_id: UUID | None
    cells: list[str] | None
    before: str | None
    after: str | None
    problems: str | None


class ColumnMapping(Struct):
    """The field that people of a plan manager chose for a column; empty if they don't import it."""

    resource: str
    column_name: str
    field: str


class NumberHolder(Struct):
    """A participant or provider on record: its participant number or ABN, its id, its name, and its date of birth."""

    number: str
    id: UUID
    name: str
    date_of_birth: date | None


class ImportFile(Struct):
    """An uploaded file; its id is that of its import. `created_by` is the account, which alone may import it."""

    id: UUID
    resource: str
    name: str
    content: bytes
    created_by: UUID
    created_at: datetime
