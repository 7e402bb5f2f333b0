"""The session of test_generated_clients.py with the Python client of openapi-generator."""

import json
import os
import sys
import time
from collections.abc import Callable
from datetime import date

from openapi_client import ApiClient, Configuration
from openapi_client.api.account_managers_api import AccountManagersApi
from openapi_client.api.events_api import EventsApi
from openapi_client.api.participants_api import ParticipantsApi
from openapi_client.api.team_members_api import TeamMembersApi
from openapi_client.exceptions import ApiException
from openapi_client.models.contact_priority import ContactPriority
from openapi_client.models.participant_create import ParticipantCreate
from openapi_client.models.participant_update import ParticipantUpdate
from openapi_client.models.team_member_create import TeamMemberCreate
from openapi_client.models.team_member_update import TeamMemberUpdate


def new_client(key: str) -> ApiClient:
    api_key = {"plan_manager": os.environ["PLAN_MANAGER_ID"]}
    # With retries, urllib3 waits until the end of a 429's minute, and sends the request again.
    return ApiClient(Configuration(host=os.environ["BASE_URL"], access_token=key, api_key=api_key, retries=0))


def expect_error(send: Callable[[], object]) -> tuple[int | None, str, str | None]:
    """The status and the code of an error, and Retry-After."""
    try:
        send()
    except ApiException as error:
        if error.body is None or error.headers is None:
            raise
        return error.status, json.loads(error.body)["error"], error.headers.get("retry-after")
    raise AssertionError("the request succeeded")


client = new_client(os.environ["API_KEY"])
participants, team_members, feed = ParticipantsApi(client), TeamMembersApi(client), EventsApi(client)

pages: list[list[str | None]] = []
after: str | None = "0"
while after is not None:
    page = participants.participants_list(limit=2, after=after)
    pages.append([each.first_name for each in page.data])
    after = page.pagination.next_cursor
found = participants.participants_list(account_manager=os.environ["ACCOUNT_MANAGER_IDS"])

body = ParticipantCreate(first_name="Nora", last_name="Whitlock", plan_start_date=date(2026, 7, 1))
created = participants.participants_create(body)
participant_id = created.id
full = participants.participants_get(participant_id)
assert full.plan_start_date is not None

headers = participants.participants_get_with_http_info(participant_id).headers
assert headers is not None
etag = headers["etag"]
change = ParticipantUpdate(last_name="Marsh")
updated = participants.participants_update(participant_id, change, if_match=etag)
stale = expect_error(lambda: participants.participants_update(participant_id, change, if_match=etag))

team_members.team_members_create(
    participant_id, TeamMemberCreate(first_name="Isla", contact_priority=ContactPriority.NUMBER_1)
)
second = team_members.team_members_create(participant_id, TeamMemberCreate(first_name="Ravi"))
primary = TeamMemberUpdate(contact_priority=ContactPriority.NUMBER_1)
conflict = expect_error(lambda: team_members.team_members_update(participant_id, second.id, primary))

limited_client = AccountManagersApi(new_client(os.environ["LIMITED_API_KEY"]))


def list_account_managers_until_limited() -> None:
    while True:
        limited_client.account_managers_list()


limited = expect_error(list_account_managers_until_limited)

participants.participants_delete(participant_id)
deleted = expect_error(lambda: participants.participants_get(participant_id))

events: list[str] = []
while "participant.deleted" not in events:
    time.sleep(0.1)
    events = [each.type for each in feed.events_list(resource_id=str(participant_id)).data]

summary = {
    "pages": pages,
    "filtered": [each.first_name for each in found.data],
    "full": [full.first_name, full.plan_start_date.isoformat()],
    "updated": [updated.first_name, updated.last_name],
    "stale": stale[:2],
    "conflict": conflict[:2],
    "limited": [*limited[:2], int(limited[2] or 0) > 0],
    "deleted": deleted[:2],
    "events": events,
}
sys.stdout.write(json.dumps(summary))
