"""`plankeeper keys rotate`, quotas of keys, and what `keys list` says of their use."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from plankeeper.access.api_keys.format import is_well_formed
from support.cluster import SharedCluster
from support.program import run_plankeeper
from support.server import wait_until

UNKNOWN_ID = "00000000-0000-0000-0000-000000000001"


def query(dsn: str, statement: str, *values: object) -> list[Any]:
    """The rows of a statement."""

    async def work() -> list[Any]:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()

    return asyncio.run(work())


@pytest.fixture(scope="module")
def settings(cluster: SharedCluster) -> dict[str, str]:
    """The settings of a database of this module."""
    return {"PLANKEEPER_DATABASE_URL": cluster.new_database()}


@pytest.fixture(scope="module")
def plan_manager(settings: dict[str, str]) -> str:
    return run_plankeeper("plan-managers", "create", "--name", "Rotating", **settings).stdout.strip()


def create_key(settings: dict[str, str], plan_manager: str, name: str, *more: str) -> tuple[str, str]:
    """A new key, and its id."""
    done = run_plankeeper("keys", "create", "--name", name, "--plan-manager", plan_manager, *more, **settings)
    assert done.returncode == 0, done
    return done.stdout.removesuffix("\n"), key_line(settings, name).split()[0]


def key_line(settings: dict[str, str], name: str) -> str:
    """The line of `keys list` about the first key of a name."""
    lines = run_plankeeper("keys", "list", **settings).stdout.splitlines()
    return next(each for each in lines if each.endswith(f"  {name}"))


def test_a_rotated_key_has_a_successor_and_expires_after_the_overlap(
    settings: dict[str, str], plan_manager: str
) -> None:
    old, old_id = create_key(settings, plan_manager, "report", "--scope", "read", "--rate-limit", "77/minute")
    begun = datetime.now(UTC)
    done = run_plankeeper("keys", "rotate", old_id, "--overlap", "90s", "--expires-in", "30d", **settings)
    new = done.stdout.removesuffix("\n")
    assert (done.returncode, done.stderr, is_well_formed(new), new == old) == (0, "", True, False)
    before, after = query(
        settings["PLANKEEPER_DATABASE_URL"],
        "select id, name, last_four, scopes, rate_limit, created_by, original_id, expires_at, revoked_at"
        " from api_keys where name = 'report' order by id",
    )
    assert (str(before["id"]), before["revoked_at"], after["last_four"]) == (old_id, None, new[-4:])
    assert (after["scopes"], after["rate_limit"], after["original_id"]) == (["read"], 77, before["id"])
    assert after["created_by"] == "plankeeper keys rotate"
    ended = datetime.now(UTC)
    assert begun <= before["expires_at"] - timedelta(seconds=90) <= ended
    assert begun <= after["expires_at"] - timedelta(days=30) <= ended
    lines = [
        each for each in run_plankeeper("keys", "list", **settings).stdout.splitlines() if each.endswith("  report")
    ]
    ends = [f"  until {each['expires_at']:%Y-%m-%dT%H:%M:%SZ}  " for each in (before, after)]
    assert [end in line for end, line in zip(ends, lines, strict=True)] == [True, True]
    assert all(" active " in line and "  read  " in line for line in lines)
    assert not [key for key in (old, new) if key in "".join(lines)]


def test_by_default_the_overlap_is_a_day_and_the_new_key_does_not_expire(
    settings: dict[str, str], plan_manager: str
) -> None:
    _, old_id = create_key(settings, plan_manager, "usual")
    begun = datetime.now(UTC)
    assert run_plankeeper("keys", "rotate", old_id, **settings).returncode == 0
    before, after = query(
        settings["PLANKEEPER_DATABASE_URL"], "select expires_at from api_keys where name = 'usual' order by id"
    )
    assert begun <= before["expires_at"] - timedelta(days=1) <= datetime.now(UTC)
    assert after["expires_at"] is None


def test_by_default_the_new_key_expires_when_the_old_one_would_have(
    settings: dict[str, str], plan_manager: str
) -> None:
    done = run_plankeeper(
        "keys", "create", "--name", "limited", "--plan-manager", plan_manager, "--expires-in", "90d", **settings
    )
    assert done.returncode == 0, done
    statement = "select id, expires_at from api_keys where name = 'limited' order by id"
    [old] = query(settings["PLANKEEPER_DATABASE_URL"], statement)
    assert run_plankeeper("keys", "rotate", str(old["id"]), **settings).returncode == 0
    [replaced, new] = query(settings["PLANKEEPER_DATABASE_URL"], statement)
    assert new["expires_at"] == old["expires_at"] > replaced["expires_at"]


def test_an_inactive_key_cannot_be_rotated(settings: dict[str, str], plan_manager: str) -> None:
    _, revoked = create_key(settings, plan_manager, "revoked")
    assert run_plankeeper("keys", "revoke", revoked, **settings).returncode == 0
    _, expired = create_key(settings, plan_manager, "brief", "--expires-in", "1s")
    wait_until(lambda: "  expired  " in key_line(settings, "brief"))
    count = "select count(*) from api_keys"
    before = query(settings["PLANKEEPER_DATABASE_URL"], count)
    for ident in (revoked, expired, UNKNOWN_ID):
        done = run_plankeeper("keys", "rotate", ident, **settings)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"Error: There is no active key {ident}. See `plankeeper keys list`.\n"
    assert query(settings["PLANKEEPER_DATABASE_URL"], count) == before


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["rotate", "1"], "'1' is not a UUID"),
        (["rotate", UNKNOWN_ID, "--overlap", "0s"], "'0s' is not a duration, such as 30s, 15m, 12h or 90d"),
        (["rotate", UNKNOWN_ID, "--overlap", "-1h"], "'-1h' is not a duration, such as 30s, 15m, 12h or 90d"),
        (["rotate", UNKNOWN_ID, "--expires-in", "soon"], "'soon' is not a duration, such as 30s, 15m, 12h or 90d"),
        (["rotate"], "Missing argument 'KEY_ID'"),
        *(
            (
                ["create", "--name", "x", "--plan-manager", UNKNOWN_ID, "--rate-limit", limit],
                f"'{limit}' is not a rate limit; must be requests per minute, such as 600/minute, or off",
            )
            for limit in ("600", "0/minute", "-1/minute", "1.5/minute", "10/second", "OFF", "", "9" * 13 + "/minute")
        ),
    ],
)
def test_invalid_arguments_are_rejected_with_a_message(arguments: list[str], sentence: str) -> None:
    done = run_plankeeper("keys", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_a_key_has_the_rate_limit_it_was_created_with(settings: dict[str, str], plan_manager: str) -> None:
    limits = {"usual quota": [], "more": ["--rate-limit", "1200/minute"], "no limit": ["--rate-limit", "off"]}
    for name, more in limits.items():
        create_key(settings, plan_manager, name, *more)
    found = query(
        settings["PLANKEEPER_DATABASE_URL"],
        "select rate_limit from api_keys where name = any ($1) order by id",
        [*limits],
    )
    assert [each["rate_limit"] for each in found] == [None, 1200, 0]


def test_the_list_says_when_a_key_was_last_used(settings: dict[str, str], plan_manager: str) -> None:
    _, ident = create_key(settings, plan_manager, "used")
    assert "  no expiry  never used  " in key_line(settings, "used")
    query(
        settings["PLANKEEPER_DATABASE_URL"],
        "update api_keys set last_used_at = '2026-07-01T23:59:00Z' where id = $1::text::uuid", ident,
    )  # fmt: skip
    line = key_line(settings, "used")
    assert re.fullmatch(
        rf"{ident}  active   ….{{4}}  read\+write  no expiry  used 2026-07-01T23:59Z  {plan_manager}  used", line
    )
