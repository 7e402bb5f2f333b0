#!/usr/bin/env python3
"""Keep a copy of participants, their teams and providers in SQLite. It can be killed at any time, and continues.

Set BASE (http://127.0.0.1:8000), KEY and PLAN_MANAGER, and run `python keep_copy.py copy.sqlite`.
"""

import json
import os
import sqlite3
import sys
import time
from collections.abc import Iterator
from typing import Any

import httpx

LISTS = {"participant": "/participants", "provider": "/providers"}
VERBS = ("created", "updated", "deleted", "restored")
TYPES = ",".join([*(f"{kind}.{verb}" for kind in LISTS for verb in VERBS), "team_member.*", "participant.erased"])
POLL_INTERVAL = 1.0  # seconds between two requests of an idle feed
RETRY_INTERVAL = 1.0  # seconds until a request is sent again


class CursorExpiredError(Exception):
    """The feed no longer has the event at which the copy is."""


def open_copy(path: str) -> sqlite3.Connection:
    copy = sqlite3.connect(path)
    copy.execute("create table if not exists resources (kind text, id text, data text, primary key (kind, id))")
    copy.execute("create table if not exists cursors (name text primary key, value text)")
    return copy


def get(client: httpx.Client, path: str, **query: Any) -> Any:
    """The JSON of a response, or None if the resource doesn't exist. Waits while the server is away or busy."""
    while True:
        try:
            response = client.get(path, params=query)
        except httpx.TransportError:
            time.sleep(RETRY_INTERVAL)
            continue
        if response.status_code == 429 or response.status_code >= 500:
            time.sleep(float(response.headers.get("retry-after", RETRY_INTERVAL)))
            continue
        if response.status_code == 400 and response.json()["error"] == "cursor_expired":
            raise CursorExpiredError
        if response.status_code == 404:
            return None
        if response.is_error:  # such as a wrong key: sending it again doesn't help
            sys.exit(f"{response.request.method} {response.url}: {response.status_code} {response.text}")
        return response.json()


def save(copy: sqlite3.Connection, kind: str, id_: str, data: Any) -> None:
    """Save a resource, or delete it if there is no data."""
    if data is None:
        copy.execute("delete from resources where kind = ? and id = ?", (kind, id_))
    else:
        copy.execute("insert or replace into resources values (?, ?, ?)", (kind, id_, json.dumps(data)))


def save_member(copy: sqlite3.Connection, member: Any, data: Any) -> None:
    """Save a team member. One person has the same id on several teams, so the key has the participant, too."""
    save(copy, "team_member", f"{member['participant_id']}/{member['id']}", data)


def delete_team(copy: sqlite3.Connection, participant_id: str) -> None:
    copy.execute("delete from resources where kind = 'team_member' and id like ?", (f"{participant_id}/%",))


def cursor(copy: sqlite3.Connection, name: str) -> str | None:
    row = copy.execute("select value from cursors where name = ?", (name,)).fetchone()
    return row and row[0]


def set_cursor(copy: sqlite3.Connection, name: str, value: str) -> None:
    copy.execute("insert or replace into cursors values (?, ?)", (name, value))


def load(client: httpx.Client, copy: sqlite3.Connection) -> None:
    """Read all lists, unless that has been done. The feed, from the event that is saved first, has later changes."""
    if cursor(copy, "events") is None:
        newest = get(client, "/events", after="now")["pagination"]["next_cursor"]
        with copy:
            copy.execute("delete from resources")
            copy.execute("delete from cursors")
            set_cursor(copy, "events", newest)
    for kind, path in LISTS.items():
        while (after := cursor(copy, path) or "0") != "end":
            page = get(client, path, after=after, limit=100)
            ids = [each["id"] for each in page["data"]]
            teams = [member for id_ in ids if kind == "participant" for member in get_team(client, id_)]
            with copy:  # the page and its cursor together
                for each in page["data"]:
                    save(copy, kind, each["id"], each)
                for member in teams:
                    save_member(copy, member, member)
                set_cursor(copy, path, page["pagination"]["next_cursor"] or "end")


def get_team(client: httpx.Client, participant_id: str) -> Iterator[Any]:
    """The members of a participant's team; none if the participant has been deleted since."""
    after: str | None = "0"
    path = f"/participants/{participant_id}/team-members"
    while after and (page := get(client, path, after=after, limit=1000)):
        yield from page["data"]
        after = page["pagination"]["next_cursor"]


def apply(copy: sqlite3.Connection, event: Any) -> None:
    """Apply an event. Applying it again does no harm."""
    kind, id_, data = event["resource"]["kind"], event["resource"]["id"], event["data"]
    if kind == "team_member":
        if member := data or event["previous"]:
            save_member(copy, member, data)
    elif event["type"].endswith(".erased"):
        save(copy, kind, id_, None)
        delete_team(copy, id_)
    else:
        save(copy, kind, id_, data)


def follow(client: httpx.Client, copy: sqlite3.Connection) -> Iterator[int]:
    """Apply the events of the feed for ever. Yields how many there were after each page."""
    while True:
        page = get(client, "/events", after=cursor(copy, "events"), type=TYPES, limit=1000)
        with copy:  # the changes and their cursor together
            for event in page["data"]:
                apply(copy, event)
                set_cursor(copy, "events", event["id"])
        yield len(page["data"])
        if not page["pagination"]["has_more"]:
            time.sleep(POLL_INTERVAL)


def main() -> None:
    headers = {"Authorization": f"Bearer {os.environ['KEY']}", "X-Plan-Manager-Id": os.environ["PLAN_MANAGER"]}
    copy = open_copy(sys.argv[1])
    with httpx.Client(base_url=f"{os.environ['BASE']}/api/public/v1", headers=headers, timeout=30) as client:
        while True:
            try:
                load(client, copy)
                for count in follow(client, copy):
                    sys.stdout.write(f"{count} events\n")
                    sys.stdout.flush()
            except CursorExpiredError:
                with copy:
                    copy.execute("delete from cursors")  # and load everything again


main()
