"""The table of what can be imported and exported."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msgspec import Struct
from stdnum.au import abn

from plankeeper.account_managers import store as account_managers
from plankeeper.account_managers.schemas import AccountManagerImport, AccountManagerRow
from plankeeper.database.client import Transaction
from plankeeper.exit_reasons import store as exit_reasons
from plankeeper.exit_reasons.schemas import ExitReason, ExitReasonImport
from plankeeper.http.context import WriteContext
from plankeeper.import_export import account_managers as account_manager_import
from plankeeper.import_export import invoices as invoice_import
from plankeeper.import_export import team_members as team_member_import
from plankeeper.import_export.reader import ImportRow
from plankeeper.import_export.upsert import ImportCounts, RecordUpserter, created_or_updated, default_created_at
from plankeeper.invoice_view_sessions import store as invoice_view_sessions
from plankeeper.invoice_view_sessions.schemas import InvoiceViewSession, InvoiceViewSessionImport
from plankeeper.invoices import store as invoices
from plankeeper.invoices.schemas import InvoiceImport, InvoiceWithLines
from plankeeper.note_types import store as note_type_store
from plankeeper.note_types.schemas import NoteTypeImport, NoteTypeRow
from plankeeper.participants import store as participants
from plankeeper.participants.rules import is_scheme_number
from plankeeper.participants.schemas import ParticipantImport, ParticipantRow
from plankeeper.providers import store as providers
from plankeeper.providers.schemas import Provider, ProviderImport
from plankeeper.team_members import store as team_members
from plankeeper.team_members.schemas import TeamMemberImport, TeamMemberRow


def _no_check(_values: Any) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Resource:
    """How one resource goes in and out.

    `shape` is a line of an import, `record` a line of an export, `tables` are what an import writes.
    `doubt` says what is odd of a line that is taken.
    """

    import_schema: type[Struct]
    upsert: Callable[[WriteContext, Sequence[ImportRow[Any]]], Awaitable[ImportCounts]]
    export_schema: type[Struct]
    export: Callable[[Transaction, UUID], AsyncIterator[Struct]]
    tables: tuple[str, ...]
    check: Callable[[Any], str | None] = _no_check


def _check_participant(values: ParticipantImport) -> str | None:
    number = values.participant_number
    if not isinstance(number, str) or is_scheme_number(number):
        return None
    return f"participant_number {number!r} has not the 9 digits of a scheme number"


def _check_provider(values: ProviderImport) -> str | None:
    if not isinstance(values.abn, str) or abn.is_valid(values.abn):
        return None
    return f"abn {values.abn!r} has not 11 digits with a right check digit"


def _session_defaults(values: InvoiceViewSessionImport) -> dict[str, Any]:
    return {"last_heartbeat": values.session_started, "created_at": values.session_started}


def _session_event(_before: Struct | None, after: Any) -> str:
    return f"invoice_view_session.{'started' if after.session_ended is None else 'ended'}"


async def _upsert_note_types(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    await note_type_store.upsert(tx, plan_manager_id, records)
    await note_type_store.advance_id_sequence(tx, plan_manager_id)


RESOURCES: Mapping[str, Resource] = {
    "exit-reasons": Resource(
        ExitReasonImport,
        RecordUpserter(
            ExitReason,
            exit_reasons.select_for_update,
            exit_reasons.upsert,
            exit_reasons.select_for_update,
            created_or_updated("exit_reason"),
        ),
        ExitReason,
        exit_reasons.export,
        ("exit_reasons",),
    ),
    "account-managers": Resource(
        AccountManagerImport,
        account_manager_import.upsert,
        AccountManagerRow,
        account_managers.export,
        ("account_managers", "users"),
    ),
    "participants": Resource(
        ParticipantImport,
        RecordUpserter(
            ParticipantRow,
            participants.select_for_update,
            participants.update_many,
            participants.get_many,
            created_or_updated("participant"),
            default_created_at,
            insert=participants.insert,
        ),
        ParticipantRow,
        participants.export,
        ("participants",),
        _check_participant,
    ),
    "providers": Resource(
        ProviderImport,
        RecordUpserter(
            Provider,
            providers.select_for_update,
            providers.upsert,
            providers.select_for_update,
            created_or_updated("provider"),
            default_created_at,
        ),
        Provider,
        providers.export,
        ("providers",),
        _check_provider,
    ),
    "note-types": Resource(
        NoteTypeImport,
        RecordUpserter(
            NoteTypeRow,
            note_type_store.select_for_update,
            _upsert_note_types,
            note_type_store.get_many,
            created_or_updated("note_type"),
            new_ids=note_type_store.next_ids,
        ),
        NoteTypeRow,
        note_type_store.export,
        ("note_types",),
    ),
    "team-members": Resource(
        TeamMemberImport,
        team_member_import.upsert,
        TeamMemberRow,
        team_members.export,
        ("team_members", "team_member_permissions", "users"),
    ),
    "invoices": Resource(
        InvoiceImport, invoice_import.upsert, InvoiceWithLines, invoices.export, ("invoices", "invoice_lines")
    ),
    "invoice-view-sessions": Resource(
        InvoiceViewSessionImport,
        RecordUpserter(
            InvoiceViewSession,
            invoice_view_sessions.select_for_update,
            invoice_view_sessions.upsert,
            invoice_view_sessions.select_for_update,
            _session_event,
            _session_defaults,
        ),
        InvoiceViewSession,
        invoice_view_sessions.export,
        ("invoice_view_sessions",),
    ),
}
