#!/usr/bin/env python3
"""Keep a copy of participants, teams, providers and invoices in SQLite. It can be killed at any time, and continues.

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

LISTS: dict[str, tuple[str, dict[str, str]]] = {
    "participant": ("/participants", {}),
    "team_member": ("/team-members", {}),
    "provider": ("/providers", {}),
    "invoice": ("/invoices", {"include": "line_items"}),
}
TYPES = ",".join(f"{kind}.*" for kind in LISTS)
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
    """The JSON of a response. Waits while the server is away or busy."""
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
        if response.is_error:  # such as a wrong key: sending it again doesn't help
            sys.exit(f"{response.request.method} {response.url}: {response.status_code} {response.text}")
        return response.json()


def save(copy: sqlite3.Connection, kind: str, id_: str, data: Any) -> None:
    """Save a resource, or delete it if there is no data."""
    if data is None:
        copy.execute("delete from resources where kind = ? and id = ?", (kind, id_))
    else:
        copy.execute("insert or replace into resources values (?, ?, ?)", (kind, id_, json.dumps(data)))


def key_of(resource: Any) -> str:
    """One person has the same id on several teams, so the key of a team member has the participant, too."""
    participant_id = resource.get("participant_id") if resource["kind"] == "team_member" else None
    return f"{participant_id}/{resource['id']}" if participant_id else str(resource["id"])


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
    for kind, (path, query) in LISTS.items():
        while (after := cursor(copy, kind) or "0") != "end":
            page = get(client, path, after=after, limit=1000, **query)
            with copy:  # the page and its cursor together
                for each in page["data"]:
                    save(copy, kind, key_of(each | {"kind": kind}), each)
                set_cursor(copy, kind, page["pagination"]["next_cursor"] or "end")


def apply(copy: sqlite3.Connection, event: Any) -> None:
    """Apply an event. Applying it again does no harm."""
    resource = event["resource"]
    if event["type"].endswith(".erased"):
        save(copy, "participant", resource["id"], None)
        delete_team(copy, resource["id"])
    elif resource["kind"] == "invoice" or event["type"].endswith((".created", ".updated", ".deleted", ".restored")):
        save(copy, resource["kind"], key_of(resource), event["data"])


def follow(client: httpx.Client, copy: sqlite3.Connection) -> Iterator[int]:
    """Apply the events of the feed for ever. Yields how many there were after each page."""
    while True:
        page = get(client, "/events", after=cursor(copy, "events"), type=TYPES, limit=1000)
        with copy:  # the changes and their cursor together
            for event in page["data"]:
                apply(copy, event)
            if page["data"]:
                set_cursor(copy, "events", page["pagination"]["next_cursor"])
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
