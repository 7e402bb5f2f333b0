"""The demonstration as `serve --demo` fills it in, and as the API shows it."""

import json
import stat
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from datetime import UTC, date, datetime, timedelta
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple
from uuid import UUID

import click
import pytest
from msgspec import Struct
from pypdfium2 import PdfDocument

from plankeeper.access.accounts import passwords, sessions
from plankeeper.access.accounts.schemas import LoginResult
from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store
from plankeeper.cli.demo import CREDENTIALS_FILE, DOCUMENT_COUNT, DemoCredentials, add_demo_documents, load_demo_data
from plankeeper.cli.demo_claims import add_demo_claims
from plankeeper.cli.demo_month_end import add_demo_month_end
from plankeeper.cli.sample_data import plan_managers, records
from plankeeper.cli.sample_data.dataset import LAST_MOMENT
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.errors import DomainError
from plankeeper.core.formatting import format_date, format_money
from plankeeper.core.json import to_json
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.documents.store import list_due
from plankeeper.resources.invoices.warnings import WARNINGS
from plankeeper.resources.registry import RESOURCES
from support.client import PREFIX, Client
from support.cluster import SharedCluster
from support.console import Browser
from support.sample_data import new_sample_database
from support.server import RunningServer, wait_until

WATTLEBIRD, SALTBUSH = plan_managers()


class RecordCounts(Struct):
    """The number of events and keys of a plan manager."""

    events: int
    keys: int


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server on a database of its own, with the sample data."""
    running = RunningServer(new_sample_database(cluster)).start()
    yield running
    running.stop()


class Counts(Struct):
    """The number of rows of tables."""

    plan_managers: int
    events: int
    api_keys: int
    accounts: int


class Refill(NamedTuple):
    """The records before the sample data was loaded again, and those afterwards."""

    credentials: tuple[DemoCredentials, DemoCredentials]
    counts: tuple[list[RecordCounts], list[RecordCounts]]
    first_pages: list[Any]  # of the participants


# The flaws of the sample invoices. Others follow from the providers, such as one with an invalid ABN.
PLANNED = {
    "missing_invoice_number", "missing_participant", "missing_provider", "inactive_participant", "check_total",
    "check_dates", "check_item_code", "possible_duplicate",
}  # fmt: skip


@pytest.fixture(scope="module")
def refill(server: RunningServer) -> Refill:
    """The sample data loaded again, beside a key and a plan manager that do not belong to it."""

    async def create_others() -> None:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, WATTLEBIRD.id, server.settings, SYSTEM)
            await service.create(ctx, "sample data", [WATTLEBIRD.id], ["read"], None)
            await store.insert(tx, UUID(int=7), "My trial")

    before = server.run(load_demo_data(server.db, server.settings))
    pages: list[Any] = []
    for each in plan_managers():
        client = Client(server.url, before.key, each.id)
        pages.append(client.get("/participants").json())
        client.http.close()
    server.run(create_others())
    counts = record_counts(server)
    after = server.run(load_demo_data(server.db, server.settings))
    return Refill((before, after), (counts, record_counts(server)), pages)


@pytest.fixture(scope="module")
def clients(server: RunningServer, refill: Refill) -> Iterator[list[Client]]:
    made = [Client(server.url, refill.credentials[1].key, each.id) for each in plan_managers()]
    yield made
    for each in made:
        each.http.close()


def record_counts(server: RunningServer) -> list[RecordCounts]:
    statement = """
        select count(*) filter (where resource_kind not in ('api_key', 'account')) as events,
            count(*) filter (where resource_kind = 'api_key') as keys
        from events where plan_manager_id = $1
    """
    return [server.run(server.db.one(RecordCounts, statement, each.id)) for each in plan_managers()]


async def _exported(server: RunningServer, id_: UUID, resource: str) -> list[dict[str, Any]]:
    async with server.db.transaction(snapshot=True) as tx:
        batches = RESOURCES[resource].export(tx, id_)
        return [json.loads(to_json(each)) async for batch in batches for each in batch]


def list_all(client: Client, path: str, **filters: Any) -> list[dict[str, Any]]:
    """A whole list, walked by cursor."""
    rows: list[dict[str, Any]] = []
    after: str | None = "0"
    while after:
        page = client.get(path, limit=1000, after=after, **filters).json()
        rows += page["data"]
        after = page["pagination"]["next_cursor"]
    return rows


def test_filling_again_changes_nothing_and_replaces_the_key(
    server: RunningServer, refill: Refill, clients: list[Client]
) -> None:
    first, second = refill.credentials
    assert (second.plan_manager_id, second.name) == (WATTLEBIRD.id, WATTLEBIRD.name)
    assert second.key != first.key
    before, after = refill.counts
    assert after == [RecordCounts(each.events, each.keys + 2) for each in before]  # one revoked, one created
    assert [client.get("/participants").json() for client in clients] == refill.first_pages
    for each in plan_managers():
        old = Client(server.url, first.key, each.id)
        wait_until(lambda client=old: client.get("/participants").status_code == 401)
        old.http.close()


async def test_kept_credentials_are_used_while_they_are_valid(cluster: SharedCluster, tmp_path: Path) -> None:
    dsn = new_sample_database(cluster)
    file = tmp_path / CREDENTIALS_FILE
    async with Database(dsn).open() as db:

        async def load() -> DemoCredentials:
            return await load_demo_data(db, Settings.read({"PLANKEEPER_DATABASE_URL": dsn}), tmp_path)

        first = await load()
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        assert await load() == first
        await db.execute("update api_keys set expires_at = now() + interval '1 hour' where name = 'sample data'")
        second = await load()
        assert (second.key != first.key, second.password == first.password) == (True, True)
        changed = await passwords.hash_password("another password")
        await db.execute("update accounts set password_hash = $1", changed)
        third = await load()
        assert (third.key == second.key, third.password != second.password) == (True, True)
        file.write_text("{")
        fourth = await load()
        assert (fourth.key != third.key, fourth.password != third.password) == (True, True)
        assert await load() == fourth
    assert [each.name for each in tmp_path.iterdir()] == [CREDENTIALS_FILE]


def test_filling_again_leaves_other_keys_alone(server: RunningServer, refill: Refill) -> None:
    statement = "select count(*) from api_keys where revoked_at is null"
    assert server.run(server.db.one(int, statement)) == 2  # the other key, and the last one for the sample data


def test_a_plan_manager_beside_the_sample_data_is_no_obstacle(server: RunningServer, refill: Refill) -> None:
    assert server.run(server.db.one(int, "select count(*) from plan_managers")) == 3
    assert refill.credentials[1].plan_manager_id == WATTLEBIRD.id


async def test_sample_data_is_not_added_to_other_data(dsn: str) -> None:
    async with Database(dsn).open() as db:
        async with db.transaction() as tx:
            await store.insert(tx, UUID(int=7), "Real Plans")
        with pytest.raises(click.ClickException, match=r"^The database contains plan managers, but not the sample"):
            await load_demo_data(db, Settings.read({"PLANKEEPER_DATABASE_URL": dsn}))
        statement = """
            select (select count(*) from plan_managers), (select count(*) from events),
                (select count(*) from api_keys), (select count(*) from accounts)
        """
        assert await db.one(Counts, statement) == Counts(1, 0, 0, 0)


def test_the_key_can_read_and_write_for_thirty_days(server: RunningServer, clients: list[Client]) -> None:
    for client in clients:
        made = client.create("/note-types", {"note_type": "x"})
        assert client.delete(f"/note-types/{made['id']}").json() == {}
    statement = "select min(expires_at) from api_keys where name = 'sample data' and revoked_at is null"
    expiry = server.run(server.db.one(datetime, statement))
    assert timedelta(days=29, hours=23) < expiry - datetime.now(UTC) < timedelta(days=30)


@pytest.mark.parametrize("plan_manager", plan_managers(), ids=["larger", "smaller"])
def test_the_stored_data_equals_the_seeded_data(server: RunningServer, refill: Refill, plan_manager: Any) -> None:
    for resource, rows in records(plan_manager.id, seed=1):
        stored = {_sort_key(row): row for row in server.run(_exported(server, plan_manager.id, resource))}
        expected = {_sort_key(row): row for row in (json.loads(to_json(row)) for row in rows)}
        others = [stored[each] for each in stored.keys() - expected.keys()]
        if resource == "plans":  # those without a date come from the participant's fields, and have no budget
            others = [each for each in others if each["start_date"] and each["end_date"]]
        assert (others, stored.keys() >= expected.keys()) == ([], True)
        for place, row in expected.items():
            found = stored[place]
            assert {name: found[name] for name in row if name not in RECOMPUTED} == {
                name: value for name, value in row.items() if name not in RECOMPUTED
            }


# What the checks find, parts (which have more fields when they go out), and a set, whose order says nothing.
RECOMPUTED = {"state_management", "line_items", "components", "permissions"}


def _sort_key(row: dict[str, Any]) -> tuple[Any, Any]:
    return row.get("participant_id") if "permissions" in row else None, row["id"]


def test_there_are_five_hundred_participants_with_account_managers(clients: list[Client]) -> None:
    assert [client.get("/participants").json()["pagination"]["total"] for client in clients] == [400, 100]
    for client, people in zip(clients, (400, 100), strict=True):
        rows = list_all(client, "/participants")
        assert Counter(row["status"] for row in rows) == {
            "Active": people * 85 // 100, "Inactive": people // 10, "Lead": people // 20,
        }  # fmt: skip
        managers = {row["id"]: row["name"] for row in list_all(client, "/account-managers")}
        for row in rows:
            manager = row["account_manager"]
            assert manager == {"id": None, "name": None} or managers[manager["id"]] == manager["name"]
            assert ("exit_reason_category" in row) == (row["status"] == "Inactive")
        assert {row["state"] for row in rows} == {"ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA"}
        some = rows[0]["account_manager"]["id"] or rows[1]["account_manager"]["id"] or rows[2]["account_manager"]["id"]
        mine = list_all(client, "/participants", account_manager=some)
        assert [row["id"] for row in mine] == [row["id"] for row in rows if row["account_manager"]["id"] == some]


def test_hidden_account_managers_are_hidden(clients: list[Client]) -> None:
    for client, who in zip(clients, plan_managers(), strict=True):
        rows = next(list(rows) for resource, rows in records(who.id) if resource == "account-managers")
        hidden = {row["id"] for row in rows if row["deleted"] or row["is_internal"] or "plankeeper" in row["email"]}
        assert len(hidden) == 3
        shown = list_all(client, "/account-managers")
        assert {row["id"] for row in shown} == {row["id"] for row in rows} - hidden
        assert Counter(row["active"] for row in shown) == {True: 4, False: 2}
        for id_ in hidden:
            assert client.get(f"/account-managers/{id_}").status_code == 404


def test_every_warning_occurs_and_some_are_ignored(clients: list[Client]) -> None:
    for client, count in zip(clients, (2000, 400), strict=True):
        rows = list_all(client, "/invoices")
        assert len(rows) == count
        found = Counter(code for row in rows for code in row["state_management"]["errors"])
        assert PLANNED < found.keys() < WARNINGS.keys()
        assert min(found[code] for code in PLANNED) >= 4
        for row in rows:
            codes, ignored = (set(row["state_management"][name]) for name in ("errors", "ignored_errors"))
            assert row["errors"] == bool(codes - ignored)
            assert row["is_duplicate"] == ("possible_duplicate" in codes)
        assert any(row["state_management"]["ignored_errors"] and not row["errors"] for row in rows)
        twins = Counter((row["pm_provider_id"], row["invoice_number"]) for row in rows)
        assert all(twins[row["pm_provider_id"], row["invoice_number"]] > 1 for row in rows if row["is_duplicate"])
        lines = client.get(f"/invoices/{rows[0]['id']}").json()["line_items"]
        assert {line["invoice"] for line in lines} == {rows[0]["id"]}


def test_teams_note_types_and_view_sessions_are_listed(clients: list[Client]) -> None:
    client = clients[1]
    members = [
        member
        for person in list_all(client, "/participants")
        for member in client.get(f"/participants/{person['id']}/team-members").json()["data"]
    ]
    with_email = [member for member in members if member["email"]]
    assert 0 < len(with_email) < len(members)
    assert all(member["id"] == member["user_id"] for member in with_email)
    without = [member for member in members if not member["email"]]
    assert all(member["id"] == member["pm_profile_id"] for member in without)
    assert {permission["name"] for member in without for permission in member["permissions"]} == {"no_access"}
    assert list_all(client, "/note-types")[0]["id"] == 101
    view_sessions = list_all(client, "/invoice-view-sessions")
    assert (len(view_sessions), 0 < sum(row["session_ended"] is None for row in view_sessions) < 10) == (40, True)
    invoices = {row["id"] for row in list_all(client, "/invoices")}
    assert {row["invoice_id"] for row in view_sessions} <= invoices
    assert len(list_all(client, "/providers")) == 20


def test_each_fill_creates_a_sign_in_for_both_plan_managers(server: RunningServer, refill: Refill) -> None:
    made = refill.credentials[1]
    entered = server.run(sessions.sign_in(server.db, server.settings, made.email, made.password, "", ""))
    assert isinstance(entered, LoginResult)
    session = server.run(sessions.verify_session(server.db, entered.token))
    assert session is not None
    assert session.roles == {each.id: "owner" for each in plan_managers()}


def test_the_latest_sample_invoices_have_documents(server: RunningServer, clients: list[Client]) -> None:
    def documents() -> list[dict[str, Any]]:
        return [
            {each["id"]: each["document"] for each in list_all(client, "/invoices") if each["document"]}
            for client in clients
        ]

    server.run(add_demo_documents(server.db, server.settings, LAST_MOMENT))
    found = documents()
    server.run(add_demo_documents(server.db, server.settings, LAST_MOMENT))
    assert documents() == found
    assert server.run(list_due(server.db, datetime.now(UTC) + timedelta(days=1), 1)) == []  # every object has a row
    for client, each in zip(clients, found, strict=True):
        assert 30 < len(each) < DOCUMENT_COUNT
        assert Counter(document["media_type"] for document in each.values())["image/jpeg"] == 1
        shared = Counter(document["sha256"] for document in each.values())
        assert Counter(shared.values()) == {1: len(each) - 4, 2: 2}
        newest = client.get(f"/invoices/{max(each)}").json()
        content = client.http.get(f"{PREFIX}/invoices/{newest['id']}/document", headers=client.headers()).content
        text = PdfDocument(content)[0].get_textpage().get_text_range()
        facts = (newest["invoice_number"], format_date(date.fromisoformat(newest["invoice_date"])))
        assert [fact for fact in (*facts, format_money(Decimal(str(newest["total"])))) if fact not in text] == []


def test_a_sample_invoice_shows_its_document(server: RunningServer, refill: Refill, clients: list[Client]) -> None:
    server.run(add_demo_documents(server.db, server.settings, LAST_MOMENT))
    latest = list_all(clients[0], "/invoices")[-DOCUMENT_COUNT:]
    chosen = {each["document"]["media_type"]: each["id"] for each in latest if each["document"]}
    made, browser = refill.credentials[1], Browser(server.url)
    browser.submit("/console/sign-in", {"email": made.email, "password": made.password}, "/console/sign-in")
    browser.submit("/console/plan-managers", {"plan_manager_id": str(made.plan_manager_id)}, "/console/plan-managers")
    assert chosen.keys() == {"application/pdf", "image/jpeg"}
    for invoice_id in chosen.values():
        image = f"/console/invoices/{invoice_id}/document/pages/1"
        assert f'<img src="{image}"' in browser.get(f"/console/invoices/{invoice_id}").text
        page = browser.get(image)
        assert (page.status_code, page.headers["content-type"]) == (200, "image/jpeg")
    browser.http.close()


def test_without_a_storage_the_operator_learns_why_there_are_no_documents(server: RunningServer) -> None:
    settings = replace(server.settings, documents_url=None)
    with pytest.raises(DomainError) as raised:
        server.run(add_demo_documents(server.db, settings, LAST_MOMENT))
    assert "The operator must set PLANKEEPER_DOCUMENTS_URL." in raised.value.detail


def test_no_claims_are_added_without_a_key_for_secrets(server: RunningServer, tmp_path: Path) -> None:
    settings = replace(server.settings, secret_key_file=tmp_path / "missing")
    with pytest.raises(DomainError):
        server.run(add_demo_claims(server.db, settings))
    assert server.run(server.db.one(int, "select count(*) from claim_batches")) == 0


def test_no_fees_are_added_without_claims(server: RunningServer) -> None:
    server.run(add_demo_month_end(server.db, server.settings))
    assert server.run(server.db.one(int, "select count(*) from fees")) == 0
