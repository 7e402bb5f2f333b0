"""The resources that can be imported and exported."""

from collections.abc import AsyncGenerator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from msgspec import Struct
from stdnum.au import abn

from plankeeper.core.context import WriteContext
from plankeeper.core.record_matches import MatchField
from plankeeper.database.client import Transaction
from plankeeper.resources.account_managers import imports as account_manager_import
from plankeeper.resources.account_managers import store as account_managers
from plankeeper.resources.account_managers.schemas import AccountManagerImport, AccountManagerRow
from plankeeper.resources.exit_reasons import store as exit_reasons
from plankeeper.resources.exit_reasons.schemas import ExitReasonImport, ExitReasonRow
from plankeeper.resources.invoice_view_sessions import store as invoice_view_sessions
from plankeeper.resources.invoice_view_sessions.schemas import InvoiceViewSessionImport, InvoiceViewSessionRecord
from plankeeper.resources.invoices import imports as invoice_import
from plankeeper.resources.invoices import store as invoices
from plankeeper.resources.invoices.schemas import InvoiceImport, InvoiceRecord
from plankeeper.resources.note_types import store as note_types
from plankeeper.resources.note_types.schemas import NoteTypeImport, NoteTypeRow
from plankeeper.resources.participants import bulk as participant_bulk
from plankeeper.resources.participants import store as participants
from plankeeper.resources.participants.rules import is_ndis_number
from plankeeper.resources.participants.schemas import ParticipantImport, ParticipantRow
from plankeeper.resources.providers import service as provider_service
from plankeeper.resources.providers import store as providers
from plankeeper.resources.providers.schemas import ProviderImport, ProviderRecord
from plankeeper.resources.team_members import imports as team_member_import
from plankeeper.resources.team_members import store as team_members
from plankeeper.resources.team_members.schemas import TeamMemberImport, TeamMemberRow
from plankeeper.resources.upsert import (
    ImportCounts,
    ImportRow,
    RecordUpserter,
    created_or_updated,
    default_created_at,
)


def _no_check(_values: Any) -> str | None:
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class Resource:
    """How a resource is imported and exported.

    `import_schema` is a row of an import, `export_schema` a row of an export. An import writes to `tables`.
    `check` returns a warning about a valid row, or None. `match_fields` are those by which rows can find their record.
    """

    import_schema: type[Struct]
    upsert: Callable[[WriteContext, Sequence[ImportRow[Any]]], Awaitable[ImportCounts]]
    export_schema: type[Struct]
    export: Callable[[Transaction, UUID], AsyncGenerator[Sequence[Struct]]]
    tables: tuple[str, ...]
    check: Callable[[Any], str | None] = _no_check
    match_fields: Mapping[str, MatchField] = field(default_factory=dict[str, MatchField])


def _check_participant(values: ParticipantImport) -> str | None:
    number = values.participant_number
    if not isinstance(number, str) or is_ndis_number(number):
        return None
    return f"participant_number {number!r} is not a 9-digit scheme number"


def _check_provider(values: ProviderImport) -> str | None:
    if not isinstance(values.abn, str) or abn.is_valid(values.abn):
        return None
    return f"abn {values.abn!r} is not 11 digits with a valid check digit"


def _session_defaults(values: InvoiceViewSessionImport) -> dict[str, Any]:
    return {"last_heartbeat": values.session_started, "created_at": values.session_started}


def _session_event(_before: Struct | None, after: Any) -> str:
    return f"invoice_view_session.{'started' if after.session_ended is None else 'ended'}"


async def _upsert_note_types(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    await note_types.upsert(tx, plan_manager_id, records)
    await note_types.advance_id_sequence(tx, plan_manager_id)


RESOURCES: Mapping[str, Resource] = {
    "exit-reasons": Resource(
        import_schema=ExitReasonImport,
        upsert=RecordUpserter(
            record_type=ExitReasonRow,
            select_for_update=exit_reasons.select_for_update,
            save=exit_reasons.upsert,
            event_type=created_or_updated("exit_reason"),
        ),
        export_schema=ExitReasonRow,
        export=exit_reasons.export,
        tables=("exit_reasons",),
    ),
    "account-managers": Resource(
        import_schema=AccountManagerImport,
        upsert=account_manager_import.upsert,
        export_schema=AccountManagerRow,
        export=account_managers.export,
        tables=("account_managers", "users"),
    ),
    "participants": Resource(
        import_schema=ParticipantImport,
        upsert=RecordUpserter(
            record_type=ParticipantRow,
            select_for_update=participants.select_for_import,
            save=participants.update_many,
            insert=participants.insert,
            get_many=participants.get_many,
            event_type=created_or_updated("participant"),
        ),
        export_schema=ParticipantRow,
        export=participants.export,
        tables=("participants",),
        check=_check_participant,
        match_fields=participant_bulk.MATCH_FIELDS,
    ),
    "providers": Resource(
        import_schema=ProviderImport,
        upsert=RecordUpserter(
            record_type=ProviderRecord,
            select_for_update=providers.select_for_update,
            save=providers.upsert,
            event_type=created_or_updated("provider"),
            defaults=default_created_at,
        ),
        export_schema=ProviderRecord,
        export=providers.export,
        tables=("providers",),
        check=_check_provider,
        match_fields=provider_service.MATCH_FIELDS,
    ),
    "note-types": Resource(
        import_schema=NoteTypeImport,
        upsert=RecordUpserter(
            record_type=NoteTypeRow,
            select_for_update=note_types.select_for_update,
            save=_upsert_note_types,
            get_many=note_types.get_many,
            event_type=created_or_updated("note_type"),
            new_ids=note_types.next_ids,
        ),
        export_schema=NoteTypeRow,
        export=note_types.export,
        tables=("note_types",),
    ),
    "team-members": Resource(
        import_schema=TeamMemberImport,
        upsert=team_member_import.upsert,
        export_schema=TeamMemberRow,
        export=team_members.export,
        tables=("team_members", "team_member_permissions", "users"),
    ),
    "invoices": Resource(
        import_schema=InvoiceImport,
        upsert=invoice_import.upsert,
        export_schema=InvoiceRecord,
        export=invoices.export,
        tables=("invoices", "invoice_lines"),
    ),
    "invoice-view-sessions": Resource(
        import_schema=InvoiceViewSessionImport,
        upsert=RecordUpserter(
            record_type=InvoiceViewSessionRecord,
            select_for_update=invoice_view_sessions.select_for_update,
            save=invoice_view_sessions.upsert,
            event_type=_session_event,
            defaults=_session_defaults,
        ),
        export_schema=InvoiceViewSessionRecord,
        export=invoice_view_sessions.export,
        tables=("invoice_view_sessions",),
    ),
}
