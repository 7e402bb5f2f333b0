"""The table of what can be imported and exported."""

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from msgspec import Struct
from stdnum.au import abn

from plankeeper.account_managers import store as account_managers
from plankeeper.account_managers.schemas import AccountManagerImport, AccountManagerRecord
from plankeeper.database.client import Transaction
from plankeeper.exit_reasons import store as exit_reasons
from plankeeper.exit_reasons.schemas import ExitReason, ExitReasonImport
from plankeeper.http.context import Write
from plankeeper.import_export import account_managers as account_manager_merge
from plankeeper.import_export import invoices as invoice_merge
from plankeeper.import_export import team_members as team_member_merge
from plankeeper.import_export.reader import Line
from plankeeper.import_export.upsert import PlainMerge, Tally, created_or_updated, now_created
from plankeeper.invoice_view_sessions import store as invoice_view_sessions
from plankeeper.invoice_view_sessions.schemas import InvoiceViewSession, InvoiceViewSessionImport
from plankeeper.invoices import store as invoices
from plankeeper.invoices.schemas import InvoiceImport, InvoiceWithLines
from plankeeper.note_types import store as note_types
from plankeeper.note_types.schemas import NoteTypeImport, NoteTypeRecord
from plankeeper.participants import store as participants
from plankeeper.participants.rules import is_scheme_number
from plankeeper.participants.schemas import ParticipantImport, ParticipantRecord
from plankeeper.providers import store as providers
from plankeeper.providers.schemas import Provider, ProviderImport
from plankeeper.team_members import store as team_members
from plankeeper.team_members.schemas import TeamMemberImport, TeamMemberRecord


def _no_doubt(_values: Any) -> str | None:
    return None


@dataclass(frozen=True, slots=True)
class Resource:
    """How one resource goes in and out.

    `shape` is a line of an import, `record` a line of an export, `tables` are what an import writes.
    `doubt` says what is odd of a line that is taken.
    """

    shape: type[Struct]
    merge: Callable[[Write, Sequence[Line[Any]]], Awaitable[Tally]]
    record: type[Struct]
    export: Callable[[Transaction, UUID], AsyncIterator[Struct]]
    tables: tuple[str, ...]
    doubt: Callable[[Any], str | None] = _no_doubt


def _participant_doubt(values: ParticipantImport) -> str | None:
    number = values.participant_number
    if not isinstance(number, str) or is_scheme_number(number):
        return None
    return f"participant_number {number!r} has not the 9 digits of a scheme number"


def _provider_doubt(values: ProviderImport) -> str | None:
    if not isinstance(values.abn, str) or abn.is_valid(values.abn):
        return None
    return f"abn {values.abn!r} has not 11 digits with a right check digit"


def _session_defaults(values: InvoiceViewSessionImport) -> dict[str, Any]:
    return {"last_heartbeat": values.session_started, "created_at": values.session_started}


def _session_event(_before: Struct | None, after: Any) -> str:
    return f"invoice_view_session.{'started' if after.session_ended is None else 'ended'}"


async def _put_note_types(tx: Transaction, plan_manager_id: UUID, records: str) -> None:
    await note_types.put(tx, plan_manager_id, records)
    await note_types.pass_over(tx, plan_manager_id)


RESOURCES: Mapping[str, Resource] = {
    "exit-reasons": Resource(
        ExitReasonImport,
        PlainMerge(
            ExitReason, exit_reasons.records_for_update, exit_reasons.put, exit_reasons.records_for_update,
            created_or_updated("exit_reason"),
        ),
        ExitReason, exit_reasons.export, ("exit_reasons",),
    ),
    "account-managers": Resource(
        AccountManagerImport, account_manager_merge.merge, AccountManagerRecord, account_managers.export,
        ("account_managers", "users"),
    ),
    "participants": Resource(
        ParticipantImport,
        PlainMerge(
            ParticipantRecord, participants.records_for_update, participants.replace, participants.fetch,
            created_or_updated("participant"), now_created, insert=participants.insert,
        ),
        ParticipantRecord, participants.export, ("participants",), _participant_doubt,
    ),
    "providers": Resource(
        ProviderImport,
        PlainMerge(
            Provider, providers.records_for_update, providers.put, providers.records_for_update,
            created_or_updated("provider"), now_created,
        ),
        Provider, providers.export, ("providers",), _provider_doubt,
    ),
    "note-types": Resource(
        NoteTypeImport,
        PlainMerge(
            NoteTypeRecord, note_types.records_for_update, _put_note_types, note_types.fetch,
            created_or_updated("note_type"), new_ids=note_types.next_ids,
        ),
        NoteTypeRecord, note_types.export, ("note_types",),
    ),
    "team-members": Resource(
        TeamMemberImport, team_member_merge.merge, TeamMemberRecord, team_members.export,
        ("team_members", "team_member_permissions", "users"),
    ),
    "invoices": Resource(
        InvoiceImport, invoice_merge.merge, InvoiceWithLines, invoices.export, ("invoices", "invoice_lines")
    ),
    "invoice-view-sessions": Resource(
        InvoiceViewSessionImport,
        PlainMerge(
            InvoiceViewSession, invoice_view_sessions.records_for_update, invoice_view_sessions.put,
            invoice_view_sessions.records_for_update, _session_event, _session_defaults,
        ),
        InvoiceViewSession, invoice_view_sessions.export, ("invoice_view_sessions",),
    ),
}  # fmt: skip
