"""Bank details in imports of providers: set by a command, proposed by a person, in few statements."""

from collections import Counter
from collections.abc import Callable
from typing import Any
from uuid import UUID

import asyncpg
import pytest
from msgspec import Struct

from plankeeper.core.context import SYSTEM, Actor, WriteContext
from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.database.connections import statement_name
from plankeeper.resources.bank_details import service
from support.bank_details import Office
from support.client import Client
from support.server import RunningServer

COUNT = 50


class _Action(Struct):
    action: str
    count: int


@pytest.fixture
def office(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Office:
    return Office(server, plan_manager_id, new_client(plan_manager_id, scopes=("read", "write", "payments")))


@pytest.fixture
def providers(office: Office) -> list[UUID]:
    items = [{"entity_name": f"Provider {number}"} for number in range(COUNT)]
    response = office.client.post("/providers/bulk", {"items": items})
    return [UUID(each["id"]) for each in response.json()["data"]]


@pytest.fixture
def sent(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """The statements of bank details, by name."""
    found, fetch, execute = Counter[str](), asyncpg.Connection.fetch, asyncpg.Connection.execute

    def record(run: Any) -> Any:
        async def recorded(self: Any, statement: str, *values: Any, **options: Any) -> Any:
            found[statement_name(statement)] += 1
            return await run(self, statement, *values, **options)

        return recorded

    monkeypatch.setattr(asyncpg.Connection, "fetch", record(fetch))
    monkeypatch.setattr(asyncpg.Connection, "execute", record(execute))
    return found


def do_import(office: Office, actor: Actor, accounts: dict[UUID, BankAccount]) -> None:
    async def run(ctx: WriteContext) -> None:
        await service.import_accounts(ctx, "provider", accounts)

    office.write(actor, run)


def accounts_of(providers: list[UUID], first: int) -> dict[UUID, BankAccount]:
    return {each: BankAccount("062000", str(first + number), "Some Account") for number, each in enumerate(providers)}


def events_of(office: Office, type_: str) -> int:
    statement = "select count(*) from events where plan_manager_id = $1 and type = $2"
    return office.server.run(office.server.db.one(int, statement, office.plan_manager_id, type_))


@pytest.mark.parametrize("actor, type_", [(SYSTEM, "bank_details.approved"), (None, "bank_details.proposed")])
def test_many_accounts_take_few_statements(
    office: Office, providers: list[UUID], sent: Counter[str], actor: Actor | None, type_: str
) -> None:
    by = actor or office.actor()
    sent.clear()
    do_import(office, by, accounts_of(providers, 100_000))
    of_details = {name: count for name, count in sent.items() if "bank_details" in name}
    assert max(of_details.values()) <= 2, of_details
    assert sum(of_details.values()) <= 6, of_details
    assert events_of(office, type_) == COUNT
    do_import(office, by, accounts_of(providers, 100_000))
    assert events_of(office, type_) == COUNT  # nothing has changed


def test_another_account_with_the_same_ending_is_an_event(office: Office, providers: list[UUID]) -> None:
    provider = providers[0]
    for number in ("100555", "200555"):
        do_import(office, SYSTEM, {provider: BankAccount("062000", number, "Some Account")})
    statement = """
        select data::jsonb ->> 'current_ending' || ' ' || (data::jsonb ->> 'current_since')
        from events where resource_id = $1 and type = 'bank_details.approved' order by id
    """
    found = office.server.run(office.server.db.rows(str, statement, str(provider)))
    assert [each.split()[0] for each in found] == ["555", "555"]
    assert len({*found}) == 2


def test_an_import_closes_proposals_that_wait(office: Office, providers: list[UUID]) -> None:
    do_import(office, office.actor(), accounts_of(providers, 100_000))
    do_import(office, SYSTEM, accounts_of(providers, 200_000))
    statement = """
        select action, count(*)::int as count from bank_detail_changes where plan_manager_id = $1 group by action
    """
    rows = office.server.run(office.server.db.rows(_Action, statement, office.plan_manager_id))
    assert {each.action: each.count for each in rows} == {"proposed": COUNT, "closed": COUNT, "set": COUNT}
