"""Team members as a resource. The key of one is the participant's id and its own, with a slash."""

from collections.abc import Sequence
from uuid import UUID

from msgspec import UNSET

from plankeeper.core.context import WriteContext
from plankeeper.resources.parents import select_participant_for_share
from plankeeper.resources.resource import Dependents, Resource, Restored, Snapshot, by_uuid, invalid, uuids
from plankeeper.resources.team_members import imports, service, store
from plankeeper.resources.team_members.schemas import TeamMember, TeamMemberChange, TeamMemberImport, TeamMemberRow


def _ids(keys: Sequence[str]) -> tuple[list[UUID], list[UUID]]:
    """The ids of the participants, and those of the members."""
    return uuids([each.partition("/")[0] for each in keys]), uuids([each.partition("/")[2] for each in keys])


async def _update(ctx: WriteContext, key: str, change: TeamMemberChange) -> TeamMember:
    """Another holder of the contact priority swaps it, as in a confirmed form."""
    [participant_id], [member_id] = _ids([key])
    replaces_holder = change.contact_priority is not UNSET and change.contact_priority is not None
    return await service.update(ctx, participant_id, member_id, change, replaces_holder=replaces_holder)


async def _delete_many(ctx: WriteContext, keys: Sequence[str]) -> None:
    for participant_id, member_id in zip(*_ids(keys), strict=True):
        await service.delete(ctx, participant_id, member_id)


async def _restore(ctx: WriteContext, snapshot: Snapshot) -> Restored:
    """Nothing if the participant no longer exists."""
    participant_id = UUID(snapshot.record["participant_id"])
    participant = await select_participant_for_share(ctx.tx, ctx.plan_manager_id, participant_id)
    if participant is None:
        return Restored([], [])
    return await service.restore(ctx, participant, [snapshot.record])


RESOURCE = Resource(
    kind="team_member",
    import_schema=TeamMemberImport,
    upsert=imports.upsert,
    export_schema=TeamMemberRow,
    export=store.export,
    tables=("team_members", "team_member_permissions", "users"),
    import_errors={
        "team_members_participant_id_fkey": invalid(
            participant_id="must be the id of a participant of this plan manager"
        )
    },
    get_many=lambda db, plan_manager_id, keys: store.get_many(db, plan_manager_id, *_ids(keys)),
    lock=lambda tx, plan_manager_id, keys: store.select_for_update(tx, plan_manager_id, *_ids(keys)),
    update_schema=TeamMemberChange,
    update=_update,
    delete_many=_delete_many,
    constraint_errors=service.CONSTRAINT_ERRORS,
    dependents=(Dependents("participant", "has_team", by_uuid(store.list_participants_with_team)),),
    restore=_restore,
)
