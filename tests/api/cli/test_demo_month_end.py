"""The fees and statements of past months that `serve --demo` adds to the sample data."""

import asyncio
from collections import Counter
from collections.abc import Callable, Iterator

import pytest

from plankeeper.cli.demo_month_end import MAX_FEES, add_demo_month_end
from plankeeper.cli.sample_data import DemoPlanManager, plan_managers
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from support.client import Client
from support.cluster import SharedCluster
from support.sample_data import new_claimed_database
from support.server import RunningServer

LARGER, SMALLER = plan_managers()
BOTH = pytest.mark.parametrize("manager", [LARGER, SMALLER], ids=["larger", "smaller"])


async def add_month_end(settings: Settings) -> None:
    """Add it before a server runs."""
    async with Database(settings.database_url or "").open() as db:
        await add_demo_month_end(db, settings)


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    database = new_claimed_database(cluster)
    running = RunningServer(database.dsn, secret_key_file=database.key_file)
    asyncio.run(add_month_end(running.settings))
    yield running.start()
    running.stop()


@pytest.fixture
def client(new_client: Callable[..., Client], manager: DemoPlanManager) -> Client:
    return new_client(manager.id, scopes=("read", "payments"))


@BOTH
def test_fees_are_taken_and_to_be_taken_and_wait(client: Client) -> None:
    fees = client.get("/fees", limit=1000).json()["data"]
    months = sorted({each["month"] for each in fees})
    before, after = (Counter(each["claim_status"] for each in fees if each["month"] == month) for month in months)
    assert max(before.total(), after.total()) <= MAX_FEES
    assert before["paid"] > before["rejected"] > 0
    assert set(after) == {"payment_ready", "partially_ready", "rejected", "pending", "new"}
    [taking] = client.get("/fee-takings").json()["data"]
    assert taking["total"] == pytest.approx(sum(each["taken"] for each in fees))
    assert client.post("/fee-takings?dry_run=true", {"all": True}).json()["total"] > 0
    assert not [each for each in fees if each["month"] == months[1] and each["taken"]]


@BOTH
def test_statements_were_sent_and_are_kept(client: Client) -> None:
    [run] = client.get("/statement-runs").json()["data"]
    assert (run["state"], run["made"], run["failed"]) == ("ended", 0, 1)
    assert run["sent"] > run["to_print"] > 0
    items = client.get(f"/statement-runs/{run['id']}/items", limit=1000).json()["data"]
    assert {each["reason"] for each in items} == {None, "opted_out", "not_managed", "mail_failed"}
    [failed] = [each for each in items if each["state"] == "failed"]
    assert failed["message"] == "The mail couldn't be sent: the recipient was rejected (550)."
    sent = next(each for each in items if each["state"] == "sent")
    statement = client.get(f"/participants/{sent['participant_id']}/statements/{sent['statement_id']}").json()
    assert statement["month"] == run["month"]
    assert statement["office"]["email"] == "hello@plankeeper.example"


def test_no_mail_is_queued_and_a_second_start_adds_nothing(server: RunningServer) -> None:
    def count() -> int:
        return server.run(server.db.one(int, "select count(*) from events"))

    assert server.run(server.db.one(int, "select count(*) from outgoing_mails")) == 0
    before = count()
    server.run(add_demo_month_end(server.db, server.settings))
    assert count() == before
