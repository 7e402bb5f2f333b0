"""The number of statements of frequent requests: each is a round trip."""

from collections import defaultdict
from collections.abc import Callable, Iterator
from typing import Any

import asyncpg
import httpx
import pytest

from plankeeper.core.context import current_request_id
from plankeeper.database.connections import statement_name
from plankeeper.database.pool import SET_CUSTOM_PLAN, SET_GENERIC_PLAN
from support.client import Client
from support.console import Account, Browser
from support.form_helpers import form_fields
from support.server import RunningServer

# The statements of a request, by name; `begin` and `commit` are statements, too.
StatementsOf = Callable[[httpx.Response], list[str]]
OF_KEY = ("access.api_keys.", "http.rate_limits.")  # of its cache and its quota, which a request may renew


@pytest.fixture
def statements_of(monkeypatch: pytest.MonkeyPatch) -> StatementsOf:
    """The statements of a response's request, but not those of background tasks."""
    sent = defaultdict[str | None, list[str]](list)

    def record(method: str) -> None:
        run = getattr(asyncpg.Connection, method)

        async def recorded(self: Any, statement: str, *values: Any, **options: Any) -> Any:
            name = statement_name(statement)
            # Those of the key, and those that depend on which connections background tasks leave free.
            if not name.startswith(OF_KEY) and statement not in (SET_CUSTOM_PLAN, SET_GENERIC_PLAN):
                sent[current_request_id()].append(name)
            return await run(self, statement, *values, **options)

        monkeypatch.setattr(asyncpg.Connection, method, recorded)

    for each in ("fetch", "fetchrow", "execute"):
        record(each)
    return lambda response: sent[response.headers["x-request-id"]]


@pytest.fixture
def browser(server: RunningServer, new_account: Callable[..., Account]) -> Iterator[Browser]:
    browser = Browser(server.url)
    assert browser.sign_in(new_account("owner")).status_code == 303
    yield browser
    browser.http.close()


@pytest.fixture
def client(new_client: Callable[..., Client], plan_manager_id: Any) -> Client:
    return new_client(plan_manager_id)


STORE = "resources.participants.store"


def test_a_read_is_one_statement_and_an_update_two(client: Client, statements_of: StatementsOf) -> None:
    made = client.create("/participants", {"first_name": "Mia", "state": "NSW"})
    path = f"/participants/{made['id']}"
    assert statements_of(client.get(path)) == [f"{STORE}.GET"]
    for change, write in {
        ("city", "Hobart"): f"{STORE}.UPDATE + events.store.INSERT",
        # The invoices of the participant are checked again.
        ("state", "TAS"): f"{STORE}.UPDATE + resources.recheck_queue.INSERT + events.store.INSERT",
    }.items():
        assert statements_of(client.put(path, dict([change]))) == [f"{STORE}.GET", write]
    assert statements_of(client.put(path, {"city": "Hobart"})) == [f"{STORE}.GET"]
    assert statements_of(client.post("/participants", {"city": "Perth"})) == [f"{STORE}.INSERT + events.store.INSERT"]
    # A plan comes with the participant.
    with_plan = f"{STORE}.INSERT + resources.plans.store.INSERT + events.store.INSERT_FEW"
    assert statements_of(client.post("/participants", {"plan_start_date": "2026-07-01"})) == [with_plan]


@pytest.mark.parametrize("resource", ["providers", "note_types"])
def test_other_records_are_updated_in_the_same_way(client: Client, statements_of: StatementsOf, resource: str) -> None:
    name = {"providers": "entity_name", "note_types": "note_type"}[resource]
    path = "/" + resource.replace("_", "-")
    made = client.create(path, {name: "First"})
    store = f"resources.{resource}.store"
    sent = statements_of(client.put(f"{path}/{made['id']}", {name: "Second"}))
    assert sent == [f"{store}.GET", f"{store}.UPDATE + events.store.INSERT"]


def test_an_invoice_is_read_checked_and_written_in_one_statement_each(
    client: Client, statements_of: StatementsOf
) -> None:
    store, check_store = "resources.invoices.store", "resources.invoices.check_store"
    counts = f"{store}.ADD_COUNTS"
    provider = client.create("/providers", {"abn": "51824753556"})["id"]
    created = client.post("/invoices", {"total": 1, "line_items": [{"total_price": 1}]})
    write = f"{store}.INSERT + {store}.UPSERT_LINES + {counts} + events.store.INSERT"
    assert statements_of(created) == [f"{check_store}.GET_NEW", write]
    path = f"/invoices/{created.json()['id']}"
    changed = statements_of(client.put(path, {"total": 2}))
    assert changed == [f"{store}.GET", f"{check_store}.GET_NEW", f"{store}.UPDATE + events.store.INSERT"]
    assert statements_of(client.put(path, {"total": 2})) == [f"{store}.GET"]
    numbered = client.post("/invoices", {"provider_abn": "51824753556", "invoice_number": "INV-1"})
    assert numbered.json()["pm_provider_id"] == provider
    assert [each for each in statements_of(numbered) if each.startswith("resources.invoices.")] == [
        "resources.invoices.reference_store.FIND_RECORDS",
        f"{store}.LOCK_SIMILAR",
        f"{check_store}.GET_NEW",
        f"{store}.INSERT + {counts} + events.store.INSERT",
        f"{check_store}.LIST_SIMILAR",
    ]


def test_the_console_saves_as_the_api_does(client: Client, browser: Browser, statements_of: StatementsOf) -> None:
    made = client.create("/participants", {"first_name": "Mia", "last_name": "Ng"})
    path = f"/console/participants/{made['id']}/edit/address"
    form = form_fields(browser, path)
    saved = browser.submit(path, form | {"city": "Hobart"})
    assert saved.status_code == 303
    assert statements_of(saved)[1:] == [f"{STORE}.GET", f"{STORE}.UPDATE + events.store.INSERT"]
    assert len(statements_of(saved)) == 3  # with the session


def test_pages_of_participants_need_few_statements(
    client: Client, browser: Browser, statements_of: StatementsOf
) -> None:
    made = client.create("/participants", {"first_name": "Mia", "last_name": "Ng", "plan_start_date": "2026-01-01"})
    counts = {
        name: statements_of(browser.get(f"/console/participants{path}"))
        for name, path in {"list": "", "record": f"/{made['id']}"}.items()
    }
    # The page of a participant also has its notes and the types of notes, its bank details and their history.
    limits = {"list": 5, "record": 9}
    assert {name: each for name, each in counts.items() if len(each) > limits[name]} == {}
