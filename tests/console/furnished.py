"""A plan manager that has one of everything the console shows, and every page of it."""

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import count
from typing import Any, get_type_hints
from uuid import UUID

from uuid_utils.compat import uuid7

from console.people import Browser, Person, made
from plankeeper.accounts import sessions
from plankeeper.api_keys import service
from plankeeper.console.application import page_routes
from plankeeper.console.routing import Download, PageRoute
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.http.schemas import to_json
from plankeeper.plan_managers import store as plan_managers
from support.client import Client
from support.importing import import_all
from support.server import RunningServer, wait_until

Text = Callable[[str], str]  # what stands in the field of a name


def is_file(entry: PageRoute) -> bool:
    return get_type_hints(entry.handler)["return"] is Download


PAGES = [each for each in page_routes() if each.method == "GET"]
FILES = [each for each in PAGES if is_file(each)]
FORMS = [each for each in page_routes() if each.method == "POST"]


_numbers = count(101)
REQUESTS = 4  # that _asked_for makes


def name_of(entry: PageRoute) -> str:
    return f"{entry.method} {entry.path}"


@dataclass(frozen=True)
class Furnished:
    """`ids` has what each name in a page's path stands for; `texts` every text that was kept, by where it is."""

    server: RunningServer
    plan_manager_id: UUID
    client: Client
    owner: Person
    ids: dict[str, str]
    texts: dict[str, str]
    preview: str = ""  # the page that tells what an import would do

    def path(self, entry: PageRoute) -> str:
        return entry.path.format(**self.ids)

    def browser(self) -> Browser:
        found = Browser(self.server.url)
        assert found.sign_in(self.owner).status_code == 303
        return found

    def every_event(self) -> list[UUID]:
        statement = "select id from events where plan_manager_id = $1"
        return self.server.run(self.server.db.rows(UUID, statement, self.plan_manager_id))

    def events(self) -> int:
        """How much was written: every write makes an event."""
        statement = "select count(*) from events where plan_manager_id = $1 and resource_kind <> 'account'"
        return self.server.run(self.server.db.one(int, statement, self.plan_manager_id))


class _Texts:
    def __init__(self, text: Text) -> None:
        self.text, self.kept = text, dict[str, str]()

    def fields(self, kind: str, *names: str) -> dict[str, str]:
        found = {name: self.text(f"{kind}.{name}") for name in names}
        self.kept |= {f"{kind}.{name}": value for name, value in found.items()}
        return found


def furnished(server: RunningServer, text: Text = lambda name: name) -> Furnished:
    """Fill a new plan manager; `text` says what stands in each field that takes any text."""
    texts = _Texts(text)
    plan_manager_id, key_id, key, owner = server.run(_begun(server, texts))
    client = Client(server.url, key, plan_manager_id)
    ids = _imported(server, plan_manager_id, texts) | _asked_for(client, texts)
    ids |= server.run(_people(server, plan_manager_id, owner, texts))
    ids |= {"key_id": str(key_id), "name": "participants.csv", "code": "check_dates"}
    found = Furnished(server, plan_manager_id, client, owner, ids, texts.kept)
    wait_until(lambda: server.run(_logged(server, plan_manager_id)), 20)
    event = "select id from events where plan_manager_id = $1 and type = 'participant.created'"
    ids["event_id"] = str(server.run(server.db.one(UUID, event, plan_manager_id)))
    preview = _uploaded(found, texts)
    ids["file_id"] = re.findall(r"/console/import/files/([0-9a-f-]{36})", preview)[0]
    return replace(found, preview=preview)


async def _begun(server: RunningServer, texts: _Texts) -> tuple[UUID, UUID, str, Person]:
    named = texts.fields("plan_manager", "name") | texts.fields("api_key", "key_name")
    async with server.db.transaction() as tx:
        begun = await plan_managers.insert(tx, uuid7(), named["name"])
        assert begun is not None
        key = await service.create(
            WriteContext(tx, begun.id, server.settings, SYSTEM), named["key_name"], [begun.id], ["read", "write"], None
        )  # fmt: skip
        key_id = await tx.one(UUID, "select api_key_id from api_key_plan_managers where plan_manager_id = $1", begun.id)
    owner = await made(server, begun.id, "owner", texts.fields("account", "owner_name")["owner_name"])
    return begun.id, key_id, key, owner


def _imported(server: RunningServer, plan_manager_id: UUID, texts: _Texts) -> dict[str, str]:
    """What comes by import; the invoice has every kind of fault that is worth a warning."""
    ids = {name: str(uuid7()) for name in ("category", "account_manager_id", "provider_id", "participant_id")}
    ids |= {name: str(uuid7()) for name in ("invoice_id", "session_id", "team_member_id")}
    ids["note_type_id"] = str(next(_numbers))  # each plan manager has one of its own
    rows = _people_rows(ids, texts) | _work_rows(ids, texts)
    for resource, row in rows.items():
        report = server.run(import_all(server, plan_manager_id, resource, [row]))
        assert not report.errors, (resource, report.errors)
    return ids


def _people_rows(ids: dict[str, str], texts: _Texts) -> dict[str, dict[str, Any]]:
    return {
        "exit-reasons": {"id": ids["category"], **texts.fields("exit_reason", "name")},
        "account-managers": {
            "id": ids["account_manager_id"], "email": "manager@example.com",
            **texts.fields("account_manager", "first_name", "last_name"),
        },
        "participants": {
            "id": ids["participant_id"], "account_manager_id": ids["account_manager_id"], "email": "p@example.com",
            "exit_reason_category_id": ids["category"],
            **texts.fields(
                "participant", "first_name", "middle_name", "last_name", "preferred_name", "participant_number",
                "gender", "pronouns", "address_line_1", "address_line_2", "city", "reason_for_leaving",
            ),
        },
        "team-members": {
            "id": ids["team_member_id"], "participant_id": ids["participant_id"], "email": "member@example.com",
            "permissions": ["view_budget", "view_invoices"], "contact_priority": 1,
            **texts.fields("member", "first_name", "last_name", "role", "note", "address_line_1", "city"),
        },
    }  # fmt: skip


def _work_rows(ids: dict[str, str], texts: _Texts) -> dict[str, dict[str, Any]]:
    line = texts.fields("line", "description", "service_item_number", "claim_batch_ref", "claim_number", "payment_ref")
    return {
        "providers": {
            "id": ids["provider_id"], "email": "billing@example.com",
            **texts.fields("provider", "entity_name", "abn", "address", "city", "ndis_provider_number"),
        },
        "note-types": {
            "id": int(ids["note_type_id"]),
            **texts.fields("note_type", "note_type", "badge_color", "highlight_color"),
        },
        "invoices": {
            "id": ids["invoice_id"], "participant_id": ids["participant_id"], "pm_provider_id": ids["provider_id"],
            "invoice_date": "2099-01-01", "total": "1234.5", "line_items": [{**line, "quantity": "3"}],
            **texts.fields("invoice", "invoice_number", "s3_key", "email_message_id"),
        },
        "invoice-view-sessions": {
            "id": ids["session_id"], "invoice_id": ids["invoice_id"], "session_started": "2026-01-02T03:04:05Z",
            **texts.fields("viewer", "user_id", "user_name"),
        },
    }  # fmt: skip


def _asked_for(client: Client, texts: _Texts) -> dict[str, str]:
    """What comes through the API, with texts in headers and in paths too."""
    endpoint = {"url": "https://example.com/hooks", **texts.fields("webhook_endpoint", "description")}
    made_one = client.made("/webhook-endpoints", endpoint)
    client.post(f"/webhook-endpoints/{made_one['id']}/test", None)
    deliveries = client.get(f"/webhook-endpoints/{made_one['id']}/deliveries", after="0").json()["data"]
    # An id of a request has no spaces.
    request_id = texts.text("request.request_id").replace(" ", "")
    texts.kept["request.request_id"] = request_id
    client.request("GET", "/participants", headers={"X-Request-Id": request_id})
    return {"endpoint_id": made_one["id"], "delivery_id": deliveries[0]["id"]}


async def _logged(server: RunningServer, plan_manager_id: UUID) -> bool:
    """Whether the log of requests has those that were made."""
    statement = "select coalesce(sum(count), 0) from api_request_batches where plan_manager_id = $1"
    return await server.db.one(int, statement, plan_manager_id) == REQUESTS


def _uploaded(found: Furnished, texts: _Texts) -> str:
    """A file is sent for import, and waits: the page that answers."""
    browser = found.browser()
    named = texts.fields("file", "first_name")
    form = {"csrf": browser.csrf(), "resource": "participants"}
    content = to_json({"id": found.ids["participant_id"], **named}) + "\n"
    answer = browser.http.post(
        "/console/import", data=form, files={"file": (texts.text("file.name"), content.encode())},
        headers={"Origin": browser.url},
    )  # fmt: skip
    browser.http.close()
    return answer.text


async def _people(server: RunningServer, plan_manager_id: UUID, owner: Person, texts: _Texts) -> dict[str, str]:
    """Another person, somebody invited, and how somebody signed in."""
    named = texts.fields("account", "person_name", "invited_name", "user_agent")
    other = await made(server, plan_manager_id, "viewer", named["person_name"])
    async with server.db.transaction() as tx:
        call = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
        token = await sessions.invite(call, f"{uuid7()}@example.com", "manager", named["invited_name"])
    invited = await sessions.get_invitation(server.db, token)
    assert invited is not None
    await sessions.sign_in(server.db, server.settings, owner.email, "wrong", "192.0.2.1", named["user_agent"])
    return {"account_id": str(other.account_id), "token": token, "invitation_id": str(invited.invitation.id)}


def without_ids(found: Furnished) -> Iterator[str]:
    """The names in paths that stand for nothing yet."""
    for entry in page_routes():
        for name in entry.path_params:
            if name not in found.ids:
                yield f"{name_of(entry)}: {name}"
