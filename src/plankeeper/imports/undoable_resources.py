"""How the imports of each resource are undone."""

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeVar
from uuid import UUID

from msgspec import Struct

from plankeeper.core.context import WriteContext
from plankeeper.database.client import Executor, Transaction
from plankeeper.imports import store
from plankeeper.resources.account_managers import store as account_manager_store
from plankeeper.resources.exit_reasons import store as exit_reason_store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.schemas import InvoiceImport
from plankeeper.resources.note_types import service as note_type_service
from plankeeper.resources.note_types import store as note_type_store
from plankeeper.resources.participants import service as participant_service
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.providers import service as provider_service
from plankeeper.resources.providers import store as provider_store
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.team_members import service as team_service
from plankeeper.resources.team_members import store as team_store
from plankeeper.resources.upsert import ImportRow

C = TypeVar("C", bound=Executor)
R = TypeVar("R")


@dataclass(frozen=True, slots=True)
class UndoableResource:
    """How the import of a resource is undone. Ids are those of `import_rows`.

    Without `delete_many`, records can't be deleted: only imports that created none can be undone.
    """

    kind: str  # of its events
    lock: Callable[[Transaction, UUID, Sequence[str]], Awaitable[object]]
    get_many: Callable[[Executor, UUID, Sequence[str]], Awaitable[Sequence[Struct]]]
    delete_many: Callable[[WriteContext, Sequence[str]], Awaitable[None]] | None
    has_team: Callable[[Executor, UUID, Sequence[str]], Awaitable[Sequence[str]]] | None = None
    has_invoices: Callable[[Executor, UUID, Sequence[str]], Awaitable[Sequence[str]]] | None = None


def _uuids(ids: Sequence[str]) -> list[UUID]:
    return [UUID(each) for each in ids]


def _by_uuid(run: Callable[[C, UUID, list[UUID]], Awaitable[R]]) -> Callable[[C, UUID, Sequence[str]], Awaitable[R]]:
    """The function of a store, with ids as text."""
    return lambda db, plan_manager_id, ids: run(db, plan_manager_id, _uuids(ids))


def _member_keys(ids: Sequence[str]) -> tuple[list[UUID], list[UUID]]:
    """The ids of the participants, and those of the members."""
    return _uuids([each.partition("/")[0] for each in ids]), _uuids([each.partition("/")[2] for each in ids])


async def _mark_invoices_deleted(ctx: WriteContext, ids: Sequence[str]) -> None:
    rows = [ImportRow(line_number, InvoiceImport(id=each, is_deleted=True)) for line_number, each in enumerate(ids, 1)]
    await RESOURCES["invoices"].upsert(ctx, rows)


async def _delete_note_types(ctx: WriteContext, ids: Sequence[str]) -> None:
    for each in ids:
        await note_type_service.delete(ctx, int(each))


async def _delete_team_members(ctx: WriteContext, ids: Sequence[str]) -> None:
    for participant_id, member_id in zip(*_member_keys(ids), strict=True):
        await team_service.delete(ctx, participant_id, member_id)


UNDOABLE: Mapping[str, UndoableResource] = {
    "exit-reasons": UndoableResource(
        "exit_reason",
        _by_uuid(exit_reason_store.select_for_update),
        _by_uuid(exit_reason_store.get_many),
        None,
    ),
    "account-managers": UndoableResource(
        "account_manager",
        _by_uuid(account_manager_store.select_for_update),
        _by_uuid(account_manager_store.get_rows),
        None,
    ),
    "invoices": UndoableResource(
        "invoice",
        _by_uuid(invoice_store.select_for_update),
        _by_uuid(invoice_store.get_many),
        _mark_invoices_deleted,
    ),
    "participants": UndoableResource(
        "participant",
        _by_uuid(participant_store.select_for_import),
        _by_uuid(participant_store.get_many),
        lambda ctx, ids: participant_service.delete_many(ctx, _uuids(ids)),
        store.list_participants_with_team,
        store.list_participants_with_invoices,
    ),
    "providers": UndoableResource(
        "provider",
        _by_uuid(provider_store.select_for_update),
        _by_uuid(provider_store.get_many),
        lambda ctx, ids: provider_service.delete_many(ctx, _uuids(ids)),
        has_invoices=store.list_providers_with_invoices,
    ),
    "team-members": UndoableResource(
        "team_member",
        lambda tx, plan_manager_id, ids: team_store.select_for_update(tx, plan_manager_id, *_member_keys(ids)),
        lambda db, plan_manager_id, ids: team_store.get_many(db, plan_manager_id, *_member_keys(ids)),
        _delete_team_members,
    ),
    "note-types": UndoableResource(
        "note_type",
        lambda tx, plan_manager_id, ids: note_type_store.select_for_update(tx, plan_manager_id, [*map(int, ids)]),
        lambda db, plan_manager_id, ids: note_type_store.get_many(db, plan_manager_id, [*map(int, ids)]),
        _delete_note_types,
    ),
}
