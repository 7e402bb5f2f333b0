"""Runs that start by themselves, that cross midnight, and that wait for a storage of documents."""

from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, date, datetime
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.office_settings import store as settings_store
from plankeeper.resources.statement_runs import service
from plankeeper.resources.statement_runs.worker import StatementRuns, make_next
from support.client import Client
from support.cluster import SharedCluster
from support.factories import create_client
from support.server import RunningServer
from support.statement_runs import ADDRESS, StatementOffice

# In Sydney, the last minute of 30 April, and the first of 1 May.
BEFORE, AFTER = datetime(2026, 4, 30, 13, 59, tzinfo=UTC), datetime(2026, 4, 30, 14, 1, tzinfo=UTC)


class OwnRuns(StatementRuns):
    """Those of a test, which start what is due by its own clock."""

    _start_due = StatementRuns._start_due  # noqa: SLF001


@pytest.fixture(autouse=True)
def nothing_is_due_for_servers(monkeypatch: pytest.MonkeyPatch) -> None:
    """Otherwise, the server would start runs by the real clock, once a minute."""

    async def do_nothing(*_: object) -> None:
        pass

    monkeypatch.setattr(StatementRuns, "_start_due", do_nothing)


@pytest.fixture
def office(server: RunningServer, api: Client) -> StatementOffice:
    return StatementOffice(server, api)


def set_day(office: StatementOffice, day: int) -> None:
    async def work() -> None:
        async with office.server.db.transaction() as tx:
            settings = await settings_store.get_for_update(tx, office.plan_manager_id)
            settings.statement_day, settings.statement_day_set_on = day, date(2026, 1, 1)
            await settings_store.upsert(tx, office.plan_manager_id, settings)

    office.server.run(work())


def test_a_run_that_crosses_midnight_keeps_its_month_and_its_day(office: StatementOffice) -> None:
    people = [office.participant(postal_statement=True, **ADDRESS) for _ in range(3)]

    async def work() -> UUID:
        async with office.server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, office.server.settings, SYSTEM)
            run = await service.start(ctx, date(2026, 3, 1), BEFORE)
            await make_next(ctx, run.id, BEFORE)
            while await make_next(ctx, run.id, AFTER):
                pass
            return run.id

    run = office.read({"id": office.server.run(work())})
    assert (run["month"], run["run_date"], run["to_print"]) == ("2026-03", "2026-04-30", 3)
    for each in people:
        [statement] = office.client.get(f"/participants/{each}/statements").json()["data"]
        assert statement["month"] == "2026-03"


def test_a_run_starts_on_its_day_in_the_time_zone(office: StatementOffice) -> None:
    office.participant(postal_statement=True, **ADDRESS)
    set_day(office, 1)
    for at, months in ((BEFORE, ["2026-03"]), (AFTER, ["2026-03", "2026-04"]), (AFTER, ["2026-03", "2026-04"])):
        task = OwnRuns(office.server.settings, clock=lambda at=at: at)
        office.server.run(task(office.server.db))
        runs = office.client.get("/statement-runs").json()["data"]
        assert [each["month"] for each in runs] == months
    assert [each["run_date"] for each in runs] == ["2026-04-30", "2026-05-01"]
    assert {each["created_by"] for each in runs} == {"plankeeper"}
    for each in runs:
        assert office.ended(each)["to_print"] == 1


@pytest.fixture
def bare(cluster: SharedCluster) -> Iterator[StatementOffice]:
    """An office of a server without a storage of documents."""
    dsn = cluster.new_database()
    server = RunningServer(dsn, documents_url=None).start()
    client = server.run(create_client(server))
    with closing(client.http):
        yield StatementOffice(server, client)
    server.stop()
    cluster.drop(dsn)


def test_without_storage_the_run_names_the_setting(bare: StatementOffice) -> None:
    bare.participant(postal_statement=True, **ADDRESS)
    response = bare.client.post("/statement-runs", {"month": "2026-03"})
    assert (response.status_code, "PLANKEEPER_DOCUMENTS_URL" in response.json()["detail"]) == (503, True)
    set_day(bare, 1)
    bare.server.run(OwnRuns(bare.server.settings, clock=lambda: AFTER)(bare.server.db))
    [run] = bare.client.get("/statement-runs").json()["data"]
    assert (run["state"], bare.items(run)) == ("running", {})
    assert "PLANKEEPER_DOCUMENTS_URL" in run["problem"]
