"""Erasure covers the trash: the person is removed from it, and others in it keep their users."""

from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.privacy import service
from plankeeper.privacy.schemas import ErasureReport
from plankeeper.privacy.service import LegalHoldError
from plankeeper.resources.trash import service as trash_service
from support.cluster import execute
from support.factories import SeededPlanManager
from support.stored_rows import places_of


def run(world: SeededPlanManager, work: Any, *values: Any, **options: Any) -> Any:
    async def run_in_transaction() -> Any:
        async with world.server.db.transaction() as tx:
            ctx = WriteContext(tx, world.plan_manager_id, world.server.settings, SYSTEM)
            return await work(ctx, *values, **options)

    return world.server.run(run_in_transaction())


def delete_to_trash(world: SeededPlanManager, participant_id: str) -> None:
    run(world, trash_service.delete, "participant", UUID(participant_id))


def erase(world: SeededPlanManager, participant_id: str) -> ErasureReport:
    return run(world, service.erase, UUID(participant_id), search_events=False)


@pytest.mark.parametrize("has_events", [True, False])
def test_no_text_about_a_person_in_the_trash_is_left(world: SeededPlanManager, *, has_events: bool) -> None:
    id_ = world.ids["participant_id"]
    texts = [text for place, text in world.texts.items() if place.startswith(("participant.", "member."))]
    delete_to_trash(world, id_)
    assert "trash" in places_of(world, *texts)
    if not has_events:  # as after the end of their retention
        execute(world.server.dsn, f"delete from events where plan_manager_id = '{world.plan_manager_id}'")
    report = erase(world, id_)
    assert (report.counts["trash"], report.counts["participants"], report.counts["users"]) == (1, 0, 1)
    assert places_of(world, *texts, "member@example.com") == set()
    assert erase(world, id_).is_empty


def test_a_member_of_a_team_in_the_trash_stays(small_world: SeededPlanManager) -> None:
    api = small_world.client
    other = api.create("/participants", {"first_name": "Other"})["id"]
    api.create(f"/participants/{other}/team-members", {"email": "member@example.com", "first_name": "Minandrina"})
    delete_to_trash(small_world, other)
    erase(small_world, small_world.ids["participant_id"])
    assert places_of(small_world, "member@example.com") == {"users", "events", "trash"}
    assert places_of(small_world, "Minandrina") == {"events", "trash"}


def test_texts_in_the_trash_that_mention_the_person_are_listed(small_world: SeededPlanManager) -> None:
    api, first = small_world.client, small_world.texts["participant.first_name"]
    other = api.create("/participants", {"reason_for_leaving": f"moved in with {first}"})["id"]
    api.create(f"/participants/{other}/team-members", {"first_name": "A", "note": f"aunt of {first}"})
    delete_to_trash(small_world, other)
    mentions = {
        (each.table, each.column, each.text) for each in erase(small_world, small_world.ids["participant_id"]).mentions
    }
    assert mentions == {
        ("trash", "reason_for_leaving", f"moved in with {first}"),
        ("trash", "note", f"aunt of {first}"),
    }


def test_a_legal_hold_keeps_a_person_in_the_trash(small_world: SeededPlanManager) -> None:
    id_ = small_world.ids["participant_id"]
    run(small_world, service.hold, UUID(id_), "Case 12/345")
    delete_to_trash(small_world, id_)  # as the API's delete, which a hold doesn't prevent
    with pytest.raises(LegalHoldError):
        erase(small_world, id_)
    assert "trash" in places_of(small_world, id_)
