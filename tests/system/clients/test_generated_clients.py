"""Clients that generators make of openapi.json with their default settings.

Each passes a strict type check, and completes the same session in its own language.
"""

import json
from collections.abc import Iterator
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.core.context import SYSTEM, WriteContext
from support.cluster import SharedCluster
from support.importing import import_records
from support.server import RunningServer
from system.clients.generators import GENERATORS, GeneratedClient

FIRST_NAMES = ["Ada", "Bo", "Cai", "Dina", "Eli"]
SUMMARY = {
    "pages": [["Ada", "Bo"], ["Cai", "Dina"], ["Eli"]],
    "filtered": ["Ada", "Dina"],  # of either account manager
    "full": ["Nora", "2026-07-01"],
    "updated": ["Nora", "Marsh"],
    "stale": [412, "precondition_failed"],
    "conflict": [409, "contact_priority_taken"],
    "limited": [429, "rate_limit_exceeded", True],
    "deleted": [404, "not_found"],
    "events": ["participant.created", "participant.updated", "participant.deleted"],
}


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    running = RunningServer(cluster.new_database()).start()
    yield running
    running.stop()


@pytest.fixture(scope="module", params=GENERATORS)
def client(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> GeneratedClient:
    """The client of one generator."""
    generator = GENERATORS[request.param]
    return GeneratedClient(generator, tmp_path_factory.getbasetemp() / "clients" / generator.session)


def test_the_generator_prints_no_other_warnings(client: GeneratedClient) -> None:
    assert client.unexpected_warnings() == []


def test_the_client_completes_the_session_with_strict_types(client: GeneratedClient, server: RunningServer) -> None:
    for check in client.generator.checks:
        client.run(check)
    variables = server.run(_create_plan_manager(server))
    printed = client.run(client.generator.start, BASE_URL=server.url, **variables)
    assert json.loads(printed) == SUMMARY


async def _create_plan_manager(server: RunningServer) -> dict[str, str]:
    """A plan manager with two account managers and five participants; the variables of a session."""
    async with server.db.transaction() as tx:
        plan_manager = await plan_managers.insert(tx, uuid7(), "Test plan manager")
        assert plan_manager is not None
    async with server.db.transaction() as tx:
        ctx = WriteContext(tx, plan_manager.id, server.settings, SYSTEM)
        scopes = ["read", "write"]
        key = await service.create(ctx, "session", [plan_manager.id], scopes, None)
        limited = await service.create(ctx, "limited", [plan_manager.id], scopes, None, rate_limit=2)
    ids = [await _import_account_managers(server, plan_manager.id, count) for count in range(2)]
    ids_of_participants = [ids[0], None, None, ids[1], None]
    rows = [
        {"first_name": name, "account_manager_id": account_manager}
        for name, account_manager in zip(FIRST_NAMES, ids_of_participants, strict=True)
    ]
    report = await import_records(server, plan_manager.id, "participants", rows)
    assert not report.errors, report.errors
    return {
        "API_KEY": key,
        "LIMITED_API_KEY": limited,
        "PLAN_MANAGER_ID": str(plan_manager.id),
        "ACCOUNT_MANAGER_IDS": ",".join(ids),
    }


async def _import_account_managers(server: RunningServer, plan_manager_id: UUID, number: int) -> str:
    row = {"id": str(uuid7()), "first_name": f"Manager {number}"}
    report = await import_records(server, plan_manager_id, "account-managers", [row])
    assert not report.errors, report.errors
    return row["id"]
