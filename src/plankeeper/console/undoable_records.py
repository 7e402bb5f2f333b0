"""The kinds of records whose changes can be undone, with the functions that read, lock and update each."""

from collections.abc import Awaitable, Callable, Mapping
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import UNSET, Struct

from plankeeper.console.routing import FormRequest, PageRequest
from plankeeper.core.context import ConstraintErrorHandler
from plankeeper.core.ids import parse_uuid
from plankeeper.database.client import Executor
from plankeeper.events.schemas import Event
from plankeeper.resources.account_managers import service as account_manager_service
from plankeeper.resources.account_managers import store as account_manager_store
from plankeeper.resources.account_managers.schemas import AccountManagerUpdate
from plankeeper.resources.note_types import service as note_type_service
from plankeeper.resources.note_types import store as note_type_store
from plankeeper.resources.note_types.schemas import NoteTypeUpdate
from plankeeper.resources.participants import service as participant_service
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.participants.schemas import ParticipantUpdate
from plankeeper.resources.providers import service as provider_service
from plankeeper.resources.providers import store as provider_store
from plankeeper.resources.providers.schemas import ProviderUpdate
from plankeeper.resources.team_members import service as team_service
from plankeeper.resources.team_members import store as team_store
from plankeeper.resources.team_members.schemas import TeamMemberChange


class UndoableRecord(NamedTuple):
    """`get` returns the record of an event, or null; `update` locks it first and returns it afterwards."""

    update_type: type[Struct]
    get: Callable[[PageRequest, Event], Awaitable[Struct | None]]
    lock: Callable[[FormRequest, Event], Awaitable[object]]
    update: Callable[[FormRequest, Event, Any], Awaitable[Struct]]
    constraint_errors: Mapping[str, ConstraintErrorHandler]


def executor(request: PageRequest) -> Executor:
    """The transaction of a form; otherwise the database."""
    return request.tx if isinstance(request, FormRequest) else request.db


def participant_id_of(event: Event) -> UUID | None:
    """The participant that the event of a participant or of a team member is about."""
    return parse_uuid(event.resource.id) if event.resource.kind == "participant" else event.resource.participant_id


def _member_key(event: Event) -> tuple[UUID, UUID]:
    participant_id, id_ = participant_id_of(event), parse_uuid(event.resource.id)
    if participant_id is None or id_ is None:
        raise LookupError("the event is not about a team member")
    return participant_id, id_


async def _get_participant(request: PageRequest, event: Event) -> Struct | None:
    return await participant_store.get(executor(request), request.plan_manager_id, UUID(event.resource.id))


async def _get_team_member(request: PageRequest, event: Event) -> Struct | None:
    return await team_store.get(executor(request), request.plan_manager_id, *_member_key(event))


async def _get_provider(request: PageRequest, event: Event) -> Struct | None:
    return await provider_store.get(executor(request), request.plan_manager_id, UUID(event.resource.id))


async def _get_note_type(request: PageRequest, event: Event) -> Struct | None:
    return await note_type_store.get(executor(request), request.plan_manager_id, int(event.resource.id))


async def _get_account_manager(request: PageRequest, event: Event) -> Struct | None:
    operator = request.settings.operator_name
    return await account_manager_store.get_visible(
        executor(request), request.plan_manager_id, UUID(event.resource.id), operator
    )


async def _update_team_member(request: FormRequest, event: Event, change: TeamMemberChange) -> Struct:
    """Another holder of the contact priority swaps it, as in a confirmed form."""
    replaces_holder = change.contact_priority is not UNSET and change.contact_priority is not None
    return await team_service.update(
        request.write_context, *_member_key(event), change, replaces_holder=replaces_holder
    )


def _lock_participant(request: FormRequest, event: Event) -> Awaitable[object]:
    return participant_service.select_for_update(request.write_context, UUID(event.resource.id))


def _lock_team_member(request: FormRequest, event: Event) -> Awaitable[object]:
    return team_service.select_for_update(request.write_context, *_member_key(event))


def _lock_provider(request: FormRequest, event: Event) -> Awaitable[object]:
    return provider_service.select_for_update(request.write_context, UUID(event.resource.id))


def _lock_note_type(request: FormRequest, event: Event) -> Awaitable[object]:
    return note_type_service.select_for_update(request.write_context, int(event.resource.id))


def _lock_account_manager(request: FormRequest, event: Event) -> Awaitable[object]:
    return account_manager_service.select_for_update(request.write_context, UUID(event.resource.id))


async def _update_participant(request: FormRequest, event: Event, change: ParticipantUpdate) -> Struct:
    return await participant_service.update(request.write_context, UUID(event.resource.id), change)


async def _update_provider(request: FormRequest, event: Event, change: ProviderUpdate) -> Struct:
    return await provider_service.update(request.write_context, UUID(event.resource.id), change)


async def _update_note_type(request: FormRequest, event: Event, change: NoteTypeUpdate) -> Struct:
    return await note_type_service.update(request.write_context, int(event.resource.id), change)


async def _update_account_manager(request: FormRequest, event: Event, change: AccountManagerUpdate) -> Struct:
    return await account_manager_service.update(request.write_context, UUID(event.resource.id), change)


UNDOABLE_RECORDS: Mapping[str, UndoableRecord] = {
    "participant": UndoableRecord(
        ParticipantUpdate,
        _get_participant,
        _lock_participant,
        _update_participant,
        participant_service.CONSTRAINT_ERRORS,
    ),
    "team_member": UndoableRecord(
        TeamMemberChange, _get_team_member, _lock_team_member, _update_team_member, team_service.CONSTRAINT_ERRORS
    ),
    "provider": UndoableRecord(ProviderUpdate, _get_provider, _lock_provider, _update_provider, {}),
    "note_type": UndoableRecord(NoteTypeUpdate, _get_note_type, _lock_note_type, _update_note_type, {}),
    "account_manager": UndoableRecord(
        AccountManagerUpdate, _get_account_manager, _lock_account_manager, _update_account_manager, {}
    ),
}
