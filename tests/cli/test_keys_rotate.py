"""`plankeeper keys rotate`, quotas of keys, and what `keys list` says of their use."""

import asyncio
import re
from datetime import UTC, datetime, timedelta
from typing import Any

import asyncpg
import pytest

from plankeeper.api_keys.format import is_well_formed
from plankeeper.database import schema
from plankeeper.embedded_postgres.cluster import Cluster
from support.program import plankeeper
from support.server import wait_until

NOBODY = "00000000-0000-0000-0000-000000000001"


def asked(dsn: str, statement: str, *values: object) -> list[Any]:
    """The rows of a statement."""

    async def work() -> list[Any]:
        connection = await asyncpg.connect(dsn)
        try:
            return await connection.fetch(statement, *values)
        finally:
            await connection.close()

    return asyncio.run(work())


@pytest.fixture(scope="module")
def env(cluster: Cluster) -> dict[str, str]:
    """The settings of a database of this module."""
    asked(cluster.dsn, "create database rotating")
    dsn = cluster.dsn.replace("/plankeeper?", "/rotating?")
    schema.migrate(dsn)
    return {"PLANKEEPER_DATABASE_URL": dsn}


@pytest.fixture(scope="module")
def plan_manager(env: dict[str, str]) -> str:
    return plankeeper("plan-managers", "create", "--name", "Rotating", **env).stdout.strip()


def created(env: dict[str, str], plan_manager: str, name: str, *more: str) -> tuple[str, str]:
    """A new key, and its id."""
    done = plankeeper("keys", "create", "--name", name, "--plan-manager", plan_manager, *more, **env)
    assert done.returncode == 0, done
    return done.stdout.removesuffix("\n"), line_of(env, name).split()[0]


def line_of(env: dict[str, str], name: str) -> str:
    """The line of `keys list` about the first key of a name."""
    lines = plankeeper("keys", "list", **env).stdout.splitlines()
    return next(each for each in lines if each.endswith(f"  {name}"))


def test_a_rotated_key_has_a_successor_and_ends_after_the_overlap(env: dict[str, str], plan_manager: str) -> None:
    old, old_id = created(env, plan_manager, "report", "--scope", "read", "--rate-limit", "77/minute")
    begun = datetime.now(UTC)
    done = plankeeper("keys", "rotate", old_id, "--overlap", "90s", "--expires-in", "30d", **env)
    new = done.stdout.removesuffix("\n")
    assert (done.returncode, done.stderr, is_well_formed(new), new == old) == (0, "", True, False)
    before, after = asked(
        env["PLANKEEPER_DATABASE_URL"],
        "select id, name, last_four, scopes, rate_limit, created_by, original_id, expires_at, revoked_at"
        " from api_keys where name = 'report' order by id",
    )
    assert (str(before["id"]), before["revoked_at"], after["last_four"]) == (old_id, None, new[-4:])
    assert (after["scopes"], after["rate_limit"], after["original_id"]) == (["read"], 77, before["id"])
    assert after["created_by"] == "plankeeper keys rotate"
    ended = datetime.now(UTC)
    assert begun <= before["expires_at"] - timedelta(seconds=90) <= ended
    assert begun <= after["expires_at"] - timedelta(days=30) <= ended
    lines = [each for each in plankeeper("keys", "list", **env).stdout.splitlines() if each.endswith("  report")]
    ends = [f"  until {each['expires_at']:%Y-%m-%dT%H:%M:%SZ}  " for each in (before, after)]
    assert [end in line for end, line in zip(ends, lines, strict=True)] == [True, True]
    assert all(" active " in line and "  read  " in line for line in lines)
    assert not [key for key in (old, new) if key in "".join(lines)]


def test_without_options_the_overlap_is_a_day_and_the_new_key_lasts(env: dict[str, str], plan_manager: str) -> None:
    _, old_id = created(env, plan_manager, "usual")
    begun = datetime.now(UTC)
    assert plankeeper("keys", "rotate", old_id, **env).returncode == 0
    before, after = asked(
        env["PLANKEEPER_DATABASE_URL"], "select expires_at from api_keys where name = 'usual' order by id"
    )
    assert begun <= before["expires_at"] - timedelta(days=1) <= datetime.now(UTC)
    assert after["expires_at"] is None


def test_a_key_that_is_not_in_use_cannot_be_rotated(env: dict[str, str], plan_manager: str) -> None:
    _, revoked = created(env, plan_manager, "revoked")
    assert plankeeper("keys", "revoke", revoked, **env).returncode == 0
    _, expired = created(env, plan_manager, "brief", "--expires-in", "1s")
    wait_until(lambda: "  expired  " in line_of(env, "brief"), 20)
    count = "select count(*) from api_keys"
    before = asked(env["PLANKEEPER_DATABASE_URL"], count)
    for ident in (revoked, expired, NOBODY):
        done = plankeeper("keys", "rotate", ident, **env)
        assert (done.returncode, done.stdout) == (1, "")
        assert done.stderr == f"Error: There is no key {ident} in use. See `plankeeper keys list`.\n"
    assert asked(env["PLANKEEPER_DATABASE_URL"], count) == before


@pytest.mark.parametrize(
    "arguments, sentence",
    [
        (["rotate", "1"], "'1' is no UUID with its hyphens"),
        (["rotate", NOBODY, "--overlap", "0s"], "'0s' is no duration; write 30s, 15m, 12h or 90d"),
        (["rotate", NOBODY, "--overlap", "-1h"], "'-1h' is no duration; write 30s, 15m, 12h or 90d"),
        (["rotate", NOBODY, "--expires-in", "soon"], "'soon' is no duration; write 30s, 15m, 12h or 90d"),
        (["rotate"], "Missing argument 'KEY_ID'"),
        *(
            (
                ["create", "--name", "x", "--plan-manager", NOBODY, "--rate-limit", limit],
                f"'{limit}' is none; it takes requests a minute, such as 600/minute, or off",
            )
            for limit in ("600", "0/minute", "-1/minute", "1.5/minute", "10/second", "OFF", "", "9" * 13 + "/minute")
        ),
    ],
)
def test_what_cannot_be_used_is_refused_in_a_sentence(arguments: list[str], sentence: str) -> None:
    done = plankeeper("keys", *arguments)
    assert (done.returncode, done.stdout) == (2, "")
    assert sentence in done.stderr


def test_a_key_has_the_quota_that_it_was_made_with(env: dict[str, str], plan_manager: str) -> None:
    limits = {"usual quota": [], "more": ["--rate-limit", "1200/minute"], "no limit": ["--rate-limit", "off"]}
    for name, more in limits.items():
        created(env, plan_manager, name, *more)
    found = asked(
        env["PLANKEEPER_DATABASE_URL"], "select rate_limit from api_keys where name = any ($1) order by id", [*limits]
    )
    assert [each["rate_limit"] for each in found] == [None, 1200, 0]


def test_the_list_says_when_a_key_was_last_used(env: dict[str, str], plan_manager: str) -> None:
    _, ident = created(env, plan_manager, "used")
    assert "  no expiry  never used  " in line_of(env, "used")
    asked(
        env["PLANKEEPER_DATABASE_URL"],
        "update api_keys set last_used_at = '2026-07-01T23:59:00Z' where id = $1::text::uuid", ident,
    )  # fmt: skip
    line = line_of(env, "used")
    assert re.fullmatch(
        rf"{ident}  active   ….{{4}}  read\+write  no expiry  used 2026-07-01T23:59Z  {plan_manager}  used", line
    )
