"""`plankeeper participants`: erased after a preview, held and released."""

import re

import pytest
from uuid_utils.compat import uuid7

from support.factories import SeededPlanManager
from support.program import run_plankeeper


def run(world: SeededPlanManager, command: str, *more: str, participant_id: str = "") -> tuple[int, list[str], str]:
    done = run_plankeeper(
        "participants",
        command,
        participant_id or world.ids["participant_id"],
        "--plan-manager",
        str(world.plan_manager_id),
        *more,
        PLANKEEPER_DATABASE_URL=world.server.dsn,
    )
    return done.returncode, done.stdout.splitlines(), done.stderr


def test_an_erasure_is_shown_first_and_done_with_yes(world: SeededPlanManager) -> None:
    first = world.texts["participant.first_name"]
    text = f"lives with {first} now" + "." * 300
    other = world.client.create("/participants", {"reason_for_leaving": text.replace(" now", "\n now")})["id"]
    code, shown, err = run(world, "erase")
    assert (code, err) == (0, "")
    assert shown[:6] == [
        "1 participant deleted",
        "1 team member deleted",
        "1 plan deleted",
        "1 user deleted who is on no other team",
        "1 document of an invoice deleted",
        "3 statements deleted",
    ]
    assert re.fullmatch(r"\d+ events de-identified", shown[6])
    assert shown[-4] == "2 texts in other records contain a name or another text of these people. Read them:"
    assert shown[-3] == f"  participants {other} reason_for_leaving: {text[:200]}…"
    assert shown[-1] == "Nothing has been changed. To erase this permanently, repeat the command with --yes."
    assert world.client.get(f"/participants/{world.ids['participant_id']}").status_code == 200
    assert run(world, "erase", "--yes") == (0, shown[:-1], "")
    assert world.client.get(f"/participants/{world.ids['participant_id']}").status_code == 404
    assert run(world, "erase", "--yes") == (0, ["Nothing is left to erase."], "")


def test_a_hold_prevents_an_erasure_until_it_is_released(small_world: SeededPlanManager) -> None:
    participant_id = small_world.ids["participant_id"]
    assert run(small_world, "hold", "--reason", "Tribunal 2026/77") == (0, [f"Held: {participant_id}"], "")
    for command, *more in (("erase",), ("erase", "--yes"), ("hold", "--reason", "again")):
        code, out, err = run(small_world, command, *more)
        assert (code, out) == (1, [])
        assert err.startswith(
            f"Error: A legal hold keeps the data of participant {participant_id}: Tribunal 2026/77"
            " (plankeeper participants hold, 20"
        )
        assert err.endswith("To end it, run `plankeeper participants release-hold`.\n")
    assert run(small_world, "release-hold") == (0, [f"Released: {participant_id}"], "")
    assert run(small_world, "release-hold") == (
        1,
        [],
        f"Error: There is no legal hold on participant {participant_id}.\n",
    )
    code, out, _ = run(small_world, "erase", "--yes")
    assert (code, out[0]) == (0, "1 participant deleted")


@pytest.mark.parametrize("arguments", [("erase",), ("hold", "--reason", "none")], ids=lambda each: each[0])
def test_an_unknown_participant_is_an_error(small_world: SeededPlanManager, arguments: tuple[str, ...]) -> None:
    unknown = str(uuid7())
    command, *more = arguments
    assert run(small_world, command, *more, participant_id=unknown) == (
        1,
        [],
        f"Error: There is no participant {unknown} with this plan manager, and no event of one.\n",
    )
