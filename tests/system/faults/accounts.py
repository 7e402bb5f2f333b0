"""Compares the database with the acknowledged writes after a fault."""

import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import httpx

from support.client import NO_TLS, PREFIX
from support.resources import without_updated_at
from system.faults.access import query
from system.faults.load import STATES, ExpectedEvent, Load


@dataclass
class Reconciliation:
    """Differences, all of which must be 0."""

    acknowledged: int
    retried: int
    lost: int  # acknowledged, and not there, or not as acknowledged
    duplicated: int  # there, and never acknowledged: for every write was sent until it was
    events_wrong: int  # resources whose events are not what happened to them
    feed_wrong: int  # places at which the feed as it was followed is not the feed as it is
    totals_wrong: int

    def __str__(self) -> str:
        return (
            f"{self.acknowledged} writes acknowledged ({self.retried} sent again), {self.lost} lost, "
            f"{self.duplicated} doubled, {self.events_wrong} with wrong events, "
            f"{self.feed_wrong} in the wrong order"
        )

    @property
    def is_clean(self) -> bool:
        return not (self.lost or self.duplicated or self.events_wrong or self.feed_wrong or self.totals_wrong)


def assert_consistent(load: Load, dsn: str, label: str) -> None:
    """End the load, compare everything, print the numbers; fails if there is a difference."""
    load.finish(lambda: query(dsn, "select count(*) from event_queue") == [(0,)])
    with closing(httpx.Client(base_url=load.address() + PREFIX, headers=load.access.headers, verify=NO_TLS)) as http:
        result = _reconcile(load, dsn, http)
    sys.stdout.write(f"{label}: {result}\n")
    assert result.is_clean, result


def _reconcile(load: Load, dsn: str, http: httpx.Client) -> Reconciliation:
    rows = {id_: without_updated_at(each) for id_, each in load.rows().items()}
    members, expected = load.members(), load.expected_events()
    # A statement that waited for long sets a later time than the response has: `plankeeper.database.versions`.
    stored = {each["id"]: without_updated_at(each) for each in list_all(http, "/participants")}
    statement = "select id::text, first_name from team_members where plan_manager_id = $1"
    stored_members = dict(query(dsn, statement, load.access.plan_manager_id))
    feed = [*list_all(http, "/events")]
    recorded: dict[str, list[ExpectedEvent]] = defaultdict(list)
    for event in feed:
        if event["resource"]["kind"] in ("participant", "team_member"):
            recorded[event["resource"]["id"]].append((event["type"], (event["data"] or {}).get("first_name")))
    order = [event["id"] for event in feed]
    return Reconciliation(
        acknowledged=load.acknowledged,
        retried=load.retries,
        lost=_count_missing(rows, stored) + _count_missing(members, stored_members),
        duplicated=len(stored.keys() - rows.keys()) + len(stored_members.keys() - members.keys()),
        events_wrong=_count_differing(expected, recorded),
        feed_wrong=_count_misplaced(order, load.follower.seen),
        totals_wrong=_count_wrong_totals(http, rows),
    )


def list_all(http: httpx.Client, path: str, **filters: str) -> Iterator[dict[str, Any]]:
    after: str | None = "0"
    while after:
        page = http.get(path, params={"limit": 1000, "after": after, **filters}).json()
        yield from page["data"]
        after = page["pagination"]["next_cursor"]


def _count_missing(expected: dict[str, Any], stored: dict[str, Any]) -> int:
    return sum(stored.get(ident) != row for ident, row in expected.items())


def _count_differing(expected: dict[str, list[ExpectedEvent]], recorded: dict[str, list[ExpectedEvent]]) -> int:
    return sum(expected.get(ident) != recorded.get(ident) for ident in expected.keys() | recorded.keys())


def _count_misplaced(order: list[str], followed: list[str]) -> int:
    return sum(one != other for one, other in zip(order, followed, strict=False)) + abs(len(order) - len(followed))


def _count_wrong_totals(http: httpx.Client, rows: dict[str, Any]) -> int:
    counted = Counter(row["state"] for row in rows.values())
    totals = {state: _total(http, state=state) for state in STATES}
    wrong = sum(totals[state] != counted[state] for state in STATES)
    return wrong + (_total(http) != len(rows))


def _total(http: httpx.Client, **filters: str) -> int:
    return http.get("/participants", params={"limit": 1, **filters}).json()["pagination"]["total"]
