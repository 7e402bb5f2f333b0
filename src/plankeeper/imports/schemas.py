"""Schemas of imports and their rows."""

from datetime import datetime
from typing import Annotated, Literal
from uuid import UUID

from msgspec import Meta, Raw, Struct

ImportState = Literal["uploaded", "checked", "imported", "undone"]
# What happens to rows without an id whose number is on record.
ExistingRecords = Literal["update", "skip", "create"]
Outcome = Literal["created", "changed", "unchanged", "skipped", "rejected"]


class OutcomeCounts(Struct):
    """The number of rows of each outcome, and of the rows with warnings among them."""

    created_count: int = 0
    changed_count: int = 0
    unchanged_count: int = 0
    skipped_count: int = 0
    rejected_count: int = 0
    warning_count: int = 0

    @property
    def row_count(self) -> int:
        parts = (self.created_count, self.changed_count, self.unchanged_count, self.skipped_count, self.rejected_count)
        return sum(parts)

    @property
    def written_count(self) -> int:
        """The rows that write a record."""
        return self.created_count + self.changed_count


class ImportOptions(Struct):
    """How a file is read. `mapping` has the field of each column, or an empty string; it is null for JSON Lines."""

    resource: str
    mapping: list[str] | None
    existing: ExistingRecords = "update"
    clears_empty: bool = False  # a blank cell clears the value; otherwise, it doesn't change anything


class Import(OutcomeCounts, kw_only=True):
    """An import of the console. `columns` are those of the file; null for JSON Lines, and after the retention."""

    id: UUID
    resource: str
    file_name: str
    digest: str
    existing: ExistingRecords
    clears_empty: bool
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

    A check keeps the record before and after, an import the id of the event. A rejected row keeps its cells.
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
    """A participant or provider on record: its participant number or ABN, its id and its name."""

    number: str
    id: UUID
    name: str
