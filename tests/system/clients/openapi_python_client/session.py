"""The session of test_generated_clients.py with the client of openapi-python-client."""

import json
import os
import sys
import time
from datetime import date
from typing import Any

from plankeeper_public_api_client import AuthenticatedClient
from plankeeper_public_api_client.api.account_managers import account_managers_list
from plankeeper_public_api_client.api.events import events_list
from plankeeper_public_api_client.api.participants import (
    participants_create,
    participants_delete,
    participants_get,
    participants_list,
    participants_update,
)
from plankeeper_public_api_client.api.team_members import team_members_create, team_members_update
from plankeeper_public_api_client.models import (
    ContactPriority,
    EventPage,
    Participant,
    ParticipantPage,
    ParticipantUpdate,
    TeamMember,
    TeamMemberUpdate,
)
from plankeeper_public_api_client.types import Response


def new_client(key: str) -> AuthenticatedClient:
    headers = {"X-Plan-Manager-Id": os.environ["PLAN_MANAGER_ID"]}
    return AuthenticatedClient(base_url=os.environ["BASE_URL"], token=key, headers=headers)


client = new_client(os.environ["API_KEY"])


def error_code(response: Response[Any]) -> tuple[int, str]:
    assert response.parsed is not None
    return response.status_code, response.parsed.error


pages: list[list[str | None]] = []
after: str | None = "0"
while after is not None:
    page = participants_list.sync(client=client, limit=2, after=after)
    assert isinstance(page, ParticipantPage)
    pages.append([each.first_name for each in page.data])
    after = page.pagination.next_cursor
found = participants_list.sync(client=client, account_manager=os.environ["ACCOUNT_MANAGER_IDS"])
assert isinstance(found, ParticipantPage)

body = ParticipantUpdate(first_name="Nora", last_name="Whitlock", plan_start_date=date(2026, 7, 1))
created = participants_create.sync(client=client, body=body)
assert isinstance(created, Participant)
full = participants_get.sync(created.id, client=client)
assert isinstance(full, Participant)
assert full.plan_start_date is not None

etag = participants_get.sync_detailed(created.id, client=client).headers["ETag"]
change = ParticipantUpdate(last_name="Marsh")
updated = participants_update.sync(created.id, client=client, body=change, if_match=etag)
assert isinstance(updated, Participant)
stale = participants_update.sync_detailed(created.id, client=client, body=change, if_match=etag)

first = TeamMemberUpdate(first_name="Isla", contact_priority=ContactPriority.VALUE_1)
assert isinstance(team_members_create.sync(created.id, client=client, body=first), TeamMember)
second = team_members_create.sync(created.id, client=client, body=TeamMemberUpdate(first_name="Ravi"))
assert isinstance(second, TeamMember)
primary = TeamMemberUpdate(contact_priority=ContactPriority.VALUE_1)
conflict = team_members_update.sync_detailed(created.id, second.id, client=client, body=primary)

limited_client = new_client(os.environ["LIMITED_API_KEY"])
limited = account_managers_list.sync_detailed(client=limited_client)
while limited.status_code == 200:
    limited = account_managers_list.sync_detailed(client=limited_client)

participants_delete.sync(created.id, client=client)
deleted = participants_get.sync_detailed(created.id, client=client)

events: list[str] = []
while "participant.deleted" not in events:
    time.sleep(0.1)
    feed = events_list.sync(client=client, resource_id=str(created.id))
    assert isinstance(feed, EventPage)
    events = [each.type_ for each in feed.data]

summary = {
    "pages": pages,
    "filtered": [each.first_name for each in found.data],
    "full": [full.first_name, full.plan_start_date.isoformat()],
    "updated": [updated.first_name, updated.last_name],
    "stale": error_code(stale),
    "conflict": error_code(conflict),
    "limited": [*error_code(limited), int(limited.headers["Retry-After"]) > 0],
    "deleted": error_code(deleted),
    "events": events,
}
sys.stdout.write(json.dumps(summary))
