"""The reckoning after a fault: what is in the database beside what was acknowledged."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx

from faults.access import ask
from faults.load import STATES, Happened, Load
from support.client import NO_TLS, PREFIX


@dataclass
class Reckoning:
    """Differences, all of which must be nought."""

    acknowledged: int
    again: int
    lost: int  # acknowledged, and not there, or not as acknowledged
    doubled: int  # there, and never acknowledged: for every write was sent until it was
    events_wrong: int  # resources whose events are not what happened to them
    feed_wrong: int  # places at which the feed as it was followed is not the feed as it is
    totals_wrong: int

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} writes acknowledged ({self.again} sent again), {self.lost} lost, "
            f"{self.doubled} doubled, {self.events_wrong} with wrong events, {self.feed_wrong} out of place in the feed"
        )

    @property
    def clean(self) -> bool:
        return not (self.lost or self.doubled or self.events_wrong or self.feed_wrong or self.totals_wrong)


def settle(load: Load, dsn: str, figures: str) -> None:
    """End the load, compare everything, print the figures; fails where anything is not as it must be."""
    load.finish(lambda: ask(dsn, "select count(*) from events where position is null") == [(0,)])
    with closing(httpx.Client(base_url=load.address() + PREFIX, headers=load.access.headers, verify=NO_TLS)) as http:
        found = _reckon(load, dsn, http)
    sys.stdout.write(f"{figures}: {found}\n")
    assert found.clean, found


def _reckon(load: Load, dsn: str, http: httpx.Client) -> Reckoning:
    rows, members, happened = load.rows(), load.members(), load.happened()
    kept = {each["id"]: {name: each[name] for name in _BASIC} for each in walked(http, "/participants")}
    statement = "select id::text, first_name from team_members where plan_manager_id = $1"
    kept_members = dict(ask(dsn, statement, load.access.plan_manager_id))
    feed = [*walked(http, "/events")]
    told: dict[str, list[Happened]] = defaultdict(list)
    for event in feed:
        if event["resource"]["kind"] in ("participant", "team_member"):
            told[event["resource"]["id"]].append((event["type"], (event["data"] or {}).get("first_name")))
    order = [event["id"] for event in feed]
    return Reckoning(
        acknowledged=load.acknowledged,
        again=load.again,
        lost=_missing(rows, kept) + _missing(members, kept_members),
        doubled=len(kept.keys() - rows.keys()) + len(kept_members.keys() - members.keys()),
        events_wrong=_differing(happened, told),
        feed_wrong=_unlike(order, load.follower.seen),
        totals_wrong=_wrong_totals(http, rows),
    )


_BASIC = ("id", "first_name", "last_name", "participant_number", "email", "state")


def walked(http: httpx.Client, path: str) -> Iterator[dict[str, Any]]:
    after: str | None = "0"
    while after:
        page = http.get(path, params={"limit": 1000, "after": after}).json()
        yield from page["data"]
        after = page["pagination"]["next_cursor"]


def _missing(wanted: dict[str, Any], kept: dict[str, Any]) -> int:
    return sum(kept.get(ident) != row for ident, row in wanted.items())


def _differing(happened: dict[str, list[Happened]], told: dict[str, list[Happened]]) -> int:
    return sum(happened.get(ident) != told.get(ident) for ident in happened.keys() | told.keys())


def _unlike(order: list[str], seen: list[str]) -> int:
    return sum(one != other for one, other in zip(order, seen, strict=False)) + abs(len(order) - len(seen))


def _wrong_totals(http: httpx.Client, rows: dict[str, Any]) -> int:
    counted = Counter(row["state"] for row in rows.values())
    totals = {state: _total(http, state=state) for state in STATES}
    wrong = sum(totals[state] != counted[state] for state in STATES)
    return wrong + (_total(http) != len(rows))


def _total(http: httpx.Client, **filters: str) -> int:
    return http.get("/participants", params={"limit": 1, **filters}).json()["pagination"]["total"]
