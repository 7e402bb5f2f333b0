"""One cluster and one server for each test process; each test has a plan manager of its own."""

import os
from collections.abc import Callable, Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.api_keys import service
from plankeeper.database import schema
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.http.context import SYSTEM, WriteContext
from plankeeper.plan_managers import store as plan_managers
from support.client import Client
from support.folder import temporary_folder
from support.server import RunningServer

# Settings of whoever runs the tests are not the tests' settings.
for name in [name for name in os.environ if name.startswith("PLANKEEPER_") and name != "PLANKEEPER_SOAK"]:
    del os.environ[name]


@pytest.fixture(scope="session")
def cluster() -> Iterator[Cluster]:
    """An embedded cluster with the schema."""
    with temporary_folder() as folder, Cluster(folder) as running:
        schema.migrate(running.dsn)
        yield running


@pytest.fixture(scope="session")
def server(cluster: Cluster) -> Iterator[RunningServer]:
    """The application on a real socket."""
    running = RunningServer(cluster.dsn).start()
    yield running
    running.stop()


@pytest.fixture
def new_plan_manager(server: RunningServer) -> Callable[[], UUID]:
    """Makes a plan manager, and answers its id."""

    async def make() -> UUID:
        async with server.db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Test plan manager")
            assert plan_manager is not None
            return plan_manager.id

    return lambda: server.run(make())


@pytest.fixture
def new_key(server: RunningServer) -> Callable[..., str]:
    """Makes a key: `new_key(plan_manager_id, ..., scopes=("read",), lasts=timedelta(...))`."""

    def make(*ids: UUID, scopes: tuple[str, ...] = ("read", "write"), lasts: timedelta | None = None) -> str:
        async def work() -> str:
            async with server.db.transaction() as tx:
                ctx = WriteContext(tx, ids[0], server.settings, SYSTEM)
                return await service.create(ctx, "test", ids, scopes, lasts)

        return server.run(work())

    return make


@pytest.fixture
def new_client(
    server: RunningServer, new_plan_manager: Callable[[], UUID], new_key: Callable[..., str]
) -> Iterator[Callable[..., Client]]:
    """Makes a client with a key and a plan manager of its own: `new_client(scopes=("read",))`."""
    made: list[Client] = []

    def make(plan_manager_id: UUID | None = None, **key: Any) -> Client:
        ident = plan_manager_id or new_plan_manager()
        made.append(Client(server.url, new_key(ident, **key), ident))
        return made[-1]

    yield make
    for each in made:
        each.http.close()


@pytest.fixture
def api(new_client: Callable[..., Client]) -> Client:
    """A client with a key that may do everything for a plan manager that has nothing yet."""
    return new_client()


@pytest.fixture
def other(new_client: Callable[..., Client]) -> Client:
    """The same for another plan manager."""
    return new_client()


@pytest.fixture
def import_rows(server: RunningServer) -> Callable[..., Any]:
    """Imports rows (dicts) as the command line would: `import_rows(api, "providers", rows)`; answers the report."""
    from support.importing import import_records

    def import_one(client: Client, resource: str, rows: list[dict[str, Any]]) -> Any:
        return server.run(import_records(server, UUID(client.plan_manager_id), resource, rows))

    return import_one


@pytest.fixture(scope="session")
def project() -> Path:
    return Path(__file__).parents[1]
