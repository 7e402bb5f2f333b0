"""One cluster for a test run, one database and one server for each of its processes, one plan manager for each test."""

import gc
import os
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from datetime import timedelta
from functools import partial
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID

# pytest rewrites it when it is imported, which CPython 3.11 can't do while another thread parses: not during a test.
import anyio._backends._asyncio  # noqa: F401 - httpcore imports it with the first request
import pytest
from argon2 import PasswordHasher
from jinja2 import Environment, FileSystemBytecodeCache
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import credentials, passwords
from plankeeper.access.api_keys import service
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.policy import login_delay
from plankeeper.console.shell import templating
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.database import write_buffer
from plankeeper.events import sequencer
from support.client import ALL_SCOPES, Client
from support.cluster import ADDRESS, SharedCluster, external_database, shared_cluster
from support.console import Account, create_account
from support.factories import SeededPlanManager, seed_plan_manager, seed_records, unique_text
from support.receiver import Receiver
from support.server import RunningServer

# Settings of whoever runs the tests are not the tests' settings.
for name in [
    name for name in os.environ if name.startswith("PLANKEEPER_") and name not in ("PLANKEEPER_SOAK", ADDRESS)
]:
    del os.environ[name]


gc.disable()  # while tests are collected


def pytest_collection_finish() -> None:
    """Modules and collected tests live until the end, so no garbage collection needs to look at them again."""
    gc.collect()
    gc.freeze()
    gc.enable()


PASSWORD_HASHER, MIN_FAILURE_SECONDS = passwords._hasher, credentials.MIN_FAILURE_SECONDS  # noqa: SLF001


@pytest.fixture(scope="session", autouse=True)
def cheap_passwords() -> Iterator[None]:
    """Hashes of passwords that cost next to nothing. `slow_passwords` has them as they are in production."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(passwords, "_hasher", PasswordHasher(time_cost=1, memory_cost=8, parallelism=1))
        patch.setattr(credentials, "MIN_FAILURE_SECONDS", 0.0)
        yield


@pytest.fixture
def slow_passwords(monkeypatch: pytest.MonkeyPatch) -> None:
    """Hashes of passwords, and the time that a wrong one takes, as they are in production."""
    monkeypatch.setattr(passwords, "_hasher", PASSWORD_HASHER)
    monkeypatch.setattr(credentials, "MIN_FAILURE_SECONDS", MIN_FAILURE_SECONDS)


@pytest.fixture
def long_login_delays(monkeypatch: pytest.MonkeyPatch) -> None:
    """The first delay is a second, which the next request of a test can take on a busy machine."""
    monkeypatch.setattr(credentials, "login_delay", lambda *values: 60 * login_delay(*values))


@pytest.fixture(scope="session")
def cluster() -> Iterator[SharedCluster]:
    """The cluster of all test processes, with a migrated database of this process's own.

    With PLANKEEPER_TEST_DATABASE_URL, the migrated database that it names, in a run of one process.
    """
    run = os.environ.get("PYTEST_XDIST_TESTRUNUID") or uuid7().hex
    address = os.environ.get(ADDRESS)
    opening: Any = external_database(address) if address else shared_cluster(run)
    with opening as shared, pytest.MonkeyPatch.context() as patch:
        # The console's templates are compiled once for the run, and not by each server that shows them.
        compiled = shared.data_dir.with_name("templates")
        compiled.mkdir(exist_ok=True)
        cached = partial(Environment, bytecode_cache=FileSystemBytecodeCache(str(compiled)))
        patch.setattr(templating, "Environment", cached)
        yield shared


@pytest.fixture
def dsn(cluster: SharedCluster) -> Iterator[str]:
    """The address of a database with the schema, for one test."""
    created = cluster.new_database()
    yield created
    cluster.drop(created)


@pytest.fixture
def empty_dsn(cluster: SharedCluster) -> Iterator[str]:
    """The address of a database that has nothing yet."""
    dsn = cluster.new_database(migrated=False)
    yield dsn
    cluster.drop(dsn)


@pytest.fixture(scope="session")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """The application on a real socket, with loopback among the networks that webhooks may be sent to."""
    running = RunningServer(cluster.dsn, webhook_allowed_networks=(ip_network("127.0.0.0/8"),)).start()
    yield running
    running.stop()


@pytest.fixture(scope="module")
def frequent_sweeps() -> Iterator[None]:
    """Servers look twenty times a second for events of other processes, such as those that a test commits itself."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sequencer, "MIN_SWEEP_INTERVAL", 0.05)
        patch.setattr(sequencer, "MAX_SWEEP_INTERVAL", 0.05)
        yield


@pytest.fixture(scope="module")
def soon_written() -> Iterator[None]:
    """Servers write their buffers twenty times a second, for tests that wait for the rows."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(write_buffer, "FLUSH_INTERVAL", 0.05)
        yield


@pytest.fixture
def new_plan_manager(server: RunningServer) -> Callable[[], UUID]:
    """Create a plan manager, and return its id."""

    async def make() -> UUID:
        async with server.db.transaction() as tx:
            plan_manager = await plan_managers.insert(tx, uuid7(), "Test plan manager")
            assert plan_manager is not None
            return plan_manager.id

    return lambda: server.run(make())


@pytest.fixture
def plan_manager_id(new_plan_manager: Callable[[], UUID]) -> UUID:
    return new_plan_manager()


@pytest.fixture
def new_account(server: RunningServer, plan_manager_id: UUID) -> Callable[..., Account]:
    """Makes a sign-in to the console: `new_account("viewer")`; of another plan manager with its id."""
    return lambda role="owner", owner=None: server.run(create_account(server, owner or plan_manager_id, role))


@pytest.fixture
def new_key(server: RunningServer) -> Callable[..., str]:
    """Makes a key: `new_key(plan_manager_id, ..., scopes=("read",), lasts=timedelta(...))`."""

    def make(*ids: UUID, scopes: tuple[str, ...] = ALL_SCOPES, lasts: timedelta | None = None) -> str:
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
def world(server: RunningServer) -> Iterator[SeededPlanManager]:
    """A plan manager in which every text occurs once, and says where it stands."""
    seeded = seed_plan_manager(server, unique_text)
    yield seeded
    seeded.client.http.close()


@pytest.fixture
def small_world(server: RunningServer) -> Iterator[SeededPlanManager]:
    """A plan manager with the imported records alone, for tests of rules that these are enough for."""
    seeded = seed_records(server, unique_text)
    yield seeded
    seeded.client.http.close()


@pytest.fixture
def api(new_client: Callable[..., Client]) -> Client:
    """A client with a key that may do everything for a plan manager that has nothing yet."""
    return new_client()


@pytest.fixture
def other(new_client: Callable[..., Client]) -> Client:
    """The same for another plan manager."""
    return new_client()


@pytest.fixture
def receivers() -> Iterator[Callable[[], Receiver]]:
    """Starts a receiver: `receivers()`."""
    with ExitStack() as stack:
        yield lambda: stack.enter_context(Receiver())


@pytest.fixture
def receiver(receivers: Callable[[], Receiver]) -> Receiver:
    return receivers()


@pytest.fixture
def import_rows(server: RunningServer) -> Callable[..., Any]:
    """Imports rows (dicts) as the command line would: `import_rows(api, "providers", rows)`; returns the report."""
    from support.importing import import_records

    def import_one(client: Client, resource: str, rows: list[dict[str, Any]]) -> Any:
        return server.run(import_records(server, UUID(client.plan_manager_id), resource, rows))

    return import_one


@pytest.fixture(scope="session")
def project() -> Path:
    return Path(__file__).parents[1]
