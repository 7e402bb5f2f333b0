"""The claims and payments that `serve --demo` adds to the sample data."""

from collections.abc import Callable, Iterator
from dataclasses import replace

import pytest

from plankeeper.cli.demo_claims import add_demo_claims
from plankeeper.cli.demo_month_end import add_demo_month_end
from plankeeper.cli.sample_data import DemoPlanManager, plan_managers
from plankeeper.core.errors import DomainError
from support.client import Client
from support.cluster import SharedCluster
from support.sample_data import new_claimed_database
from support.server import RunningServer

LARGER, SMALLER = plan_managers()
BOTH = pytest.mark.parametrize("manager", [LARGER, SMALLER], ids=["larger", "smaller"])


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    database = new_claimed_database(cluster)
    running = RunningServer(database.dsn, secret_key_file=database.key_file).start()
    yield running
    running.stop()


@pytest.fixture
def client(new_client: Callable[..., Client], manager: DemoPlanManager) -> Client:
    return new_client(manager.id, scopes=("read", "write", "claims", "payments"))


@BOTH
def test_there_is_a_batch_and_a_run_in_each_state(client: Client) -> None:
    batches = client.get("/claim-batches").json()["data"]
    assert [each["state"] for each in batches] == ["processed", "submitted", "draft"]
    claims = client.get(f"/claim-batches/{batches[0]['id']}/lines", limit=100).json()["data"]
    assert {each["state"] for each in claims} == {"paid", "partially_paid", "rejected"}
    received = client.get(f"/claim-batches/{batches[0]['id']}/receipts").json()["data"]
    assert sum(each["amount"] for each in received) == pytest.approx(sum(each["paid"] or 0 for each in claims))
    runs = client.get("/payment-runs").json()["data"]
    assert [(each["state"], each["downloaded_at"] is not None) for each in runs] == [
        ("paid", True), ("draft", True), ("draft", False),
    ]  # fmt: skip
    payments = client.get(f"/payment-runs/{runs[0]['id']}/payments").json()["data"]
    assert {each["state"] for each in payments} == {"paid", "returned"}
    assert client.get(f"/payment-runs/{runs[2]['id']}/file").status_code == 200  # nothing about it is outdated


@BOTH
def test_money_is_to_be_recovered_and_to_be_paid(client: Client, manager: DemoPlanManager) -> None:
    [recovery] = client.get("/recoveries").json()["data"]
    assert recovery["to_recover"] > 0
    left_out = client.post("/payment-runs?dry_run=true", {"all": True, "process_date": "2026-12-15"}).json()
    assert "bank_details_waiting" in {each["reason"] for each in left_out["left_out"]}
    if manager == LARGER:
        assert left_out["payments"] > 0
    claimable = client.post("/claim-batches?dry_run=true", {"all": True}).json()
    assert claimable["lines"] > 10


def test_a_second_start_adds_nothing(server: RunningServer) -> None:
    def count() -> int:
        return server.run(server.db.one(int, "select count(*) from events"))

    before = count()
    server.run(add_demo_claims(server.db, server.settings))
    assert count() == before


def test_no_fees_are_added_without_a_storage_of_documents(server: RunningServer) -> None:
    with pytest.raises(DomainError):
        server.run(add_demo_month_end(server.db, replace(server.settings, documents_url=None)))
    assert server.run(server.db.one(int, "select count(*) from fees")) == 0
