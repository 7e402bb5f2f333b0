"""The session of test_generated_clients.py with the models of datamodel-code-generator, and httpx for the requests."""

import json
import os
import sys
import time
from typing import Any, TypeVar

import httpx
from models import (
    Error,
    EventPage,
    Participant,
    ParticipantCreate,
    ParticipantPage,
    ParticipantUpdate,
    TeamMember,
    TeamMemberCreate,
    TeamMemberUpdate,
)
from pydantic import BaseModel

Model = TypeVar("Model", bound=BaseModel)


def new_client(key: str) -> httpx.Client:
    headers = {"Authorization": f"Bearer {key}", "X-Plan-Manager-Id": os.environ["PLAN_MANAGER_ID"]}
    return httpx.Client(base_url=f"{os.environ['BASE_URL']}/api/public/v1", headers=headers)


client = new_client(os.environ["API_KEY"])


def parse(model: type[Model], response: httpx.Response) -> Model:
    assert response.is_success, response.text
    return model.model_validate_json(response.content)


def get(model: type[Model], path: str, **params: str) -> Model:
    return parse(model, client.get(path, params=params))


def send(method: str, path: str, body: BaseModel, **headers: str) -> httpx.Response:
    fields: dict[str, Any] = body.model_dump(mode="json", exclude_unset=True)
    return client.request(method, path, json=fields, headers=headers)


def error_code(response: httpx.Response) -> tuple[int, str]:
    return response.status_code, Error.model_validate_json(response.content).error


pages: list[list[str | None]] = []
after: str | None = "0"
while after is not None:
    page = get(ParticipantPage, "/participants", limit="2", after=after)
    pages.append([each.first_name for each in page.data])
    after = page.pagination.next_cursor
found = get(ParticipantPage, "/participants", account_manager=os.environ["ACCOUNT_MANAGER_IDS"])

body = ParticipantCreate.model_validate(
    {"first_name": "Nora", "last_name": "Whitlock", "plan_start_date": "2026-07-01"}
)
created = parse(Participant, send("POST", "/participants", body))
path = f"/participants/{created.id}"
full = get(Participant, path)
assert full.plan_start_date is not None

etag = client.get(path).headers["ETag"]
change = ParticipantUpdate.model_validate({"last_name": "Marsh"})
updated = parse(Participant, send("PUT", path, change, **{"If-Match": etag}))
stale = send("PUT", path, change, **{"If-Match": etag})

team = f"{path}/team-members"
first = TeamMemberCreate.model_validate({"first_name": "Isla", "contact_priority": 1})
parse(TeamMember, send("POST", team, first))
second = parse(TeamMember, send("POST", team, TeamMemberCreate.model_validate({"first_name": "Ravi"})))
conflict = send("PUT", f"{team}/{second.id}", TeamMemberUpdate.model_validate({"contact_priority": 1}))

limited_client = new_client(os.environ["LIMITED_API_KEY"])
limited = limited_client.get("/account-managers")
while limited.is_success:
    limited = limited_client.get("/account-managers")

assert client.delete(path).is_success
deleted = client.get(path)

events: list[str] = []
while "participant.deleted" not in events:
    time.sleep(0.1)
    events = [each.type for each in get(EventPage, "/events", resource_id=str(created.id)).data]

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
