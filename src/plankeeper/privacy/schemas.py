"""Schemas of legal holds and of erasures."""

from collections.abc import Mapping
from typing import Any
from uuid import UUID

from msgspec import Raw, Struct

from plankeeper.core.fields import AwareDatetime
from plankeeper.core.formatting import format_date


class LegalHold(Struct):
    """A reason why a participant's data must not be erased."""

    participant_id: UUID
    reason: str
    created_at: AwareDatetime
    created_by: str  # the name of the person, or of the command


class HeldParticipant(LegalHold):
    """A legal hold with the participant's name; null for a deleted participant."""

    name: str | None


class ParticipantReference(Struct):
    """The content of events about an erasure or a legal hold."""

    id: UUID


class PersonEvent(Struct):
    """An event of a participant, of its team or of its invoices."""

    id: UUID
    resource_kind: str
    data: Raw | None
    previous: Raw | None


class ExportEvent(Struct):
    """An event of an export, with the encoded query that selected its records."""

    id: UUID
    filter: str


class ResponseRecord(Struct):
    """A stored response of an idempotent request, with its key."""

    original_key_id: UUID
    path: str
    idempotency_key: str
    body: bytes | None


class FileContent(Struct):
    """An uploaded file that waits for its import."""

    id: UUID
    name: str
    created_at: AwareDatetime
    created_by: UUID
    content: bytes


class ImportRowReference(Struct):
    """A row of an import."""

    import_id: UUID
    line_number: int


class ImportTexts(Struct):
    """Whether the names of an import's file and columns contain texts of a person."""

    id: UUID
    in_name: bool
    in_columns: bool


class Mention(Struct, frozen=True):
    """A text in another record that contains one of the erased person's texts."""

    table: str
    record_id: str
    column: str
    text: str


# The kinds of records in the counts of a report: singular, plural.
COUNT_LABELS = {
    "participants": ("participant deleted", "participants deleted"),
    "team_members": ("team member deleted", "team members deleted"),
    "plans": ("plan deleted", "plans deleted"),
    "notes": ("note deleted", "notes deleted"),
    "bank_details": ("bank account deleted", "bank accounts deleted"),
    "trash": ("deletion removed from the trash", "deletions removed from the trash"),
    "users": ("user deleted who is on no other team", "users deleted who are on no other team"),
    "invoice_texts": ("invoice text de-identified", "invoice texts de-identified"),
    "documents": ("document of an invoice deleted", "documents of invoices deleted"),
    "statements": ("statement deleted", "statements deleted"),
    "financial_records": ("claim or payment de-identified", "claims or payments de-identified"),
    "access_records": ("query of an access record erased", "queries of access records erased"),
    "saved_views": ("saved view of a list deleted", "saved views of lists deleted"),
    "events": ("event de-identified", "events de-identified"),
    "responses": ("stored response de-identified or deleted", "stored responses de-identified or deleted"),
    "attempt_details": (
        "webhook delivery without headers and responses any more",
        "webhook deliveries without headers and responses any more",
    ),
    "import_files": ("uploaded file deleted", "uploaded files deleted"),
    "import_rows": ("rejected row or check of an import deleted", "rejected rows or checks of imports deleted"),
    "import_texts": ("name of a file or column erased", "names of files or columns erased"),
}


class KeptRecords(Struct):
    """What an erasure keeps: the claims, payments, documents, approvals and sent statements of claimed invoices.

    `until` is null if they are kept without an end.
    """

    until: AwareDatetime | None
    invoices: int

    @property
    def text(self) -> str:
        """The sentence for people."""
        end = f"until {format_date(self.until.date())}" if self.until else "without an end"
        number = "1 claimed invoice" if self.invoices == 1 else f"{self.invoices:,} claimed invoices"
        return f"The claims, payments, document, approval and sent statements of {number} are kept {end}."


class ErasureReport(Struct):
    """The result of an erasure, or of its preview: the number of records of each kind of `COUNT_LABELS`.

    `mentions` are texts in other records, which people have to review. `kept` is null if nothing has to be kept.
    """

    counts: Mapping[str, int]
    mentions: list[Mention]
    more_mentions: bool  # whether there are more than those
    kept: KeptRecords | None = None

    @property
    def is_empty(self) -> bool:
        """Whether nothing was left to erase."""
        return not any(self.counts.values())


JsonObject = dict[str, Any]
