"""Plankeeper on Citus, with a coordinator and two workers."""

import os
import re
import subprocess
import sys
import threading
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from ipaddress import ip_network
from pathlib import Path
from typing import Any
from uuid import UUID

import asyncpg
import httpx
import pytest
from uuid_utils.compat import uuid7

from contract.sources import Statement, location_of, store_statements
from plankeeper.database.citus import COORDINATOR_TABLES, REFERENCE_TABLES
from support import next_release
from support.citus import CitusTrio, citus_trio
from support.client import Client
from support.cluster import ADDRESS, as_owner, execute, prepare_database
from support.program import run_plankeeper, run_program
from support.receiver import Receiver
from support.server import RunningServer, wait_until
from support.webhooks import received_subject_ids, running_worker

SOAK = os.environ.get("PLANKEEPER_SOAK") == "1"
SHARDS = 8  # of each table: enough for three workers, and quickly distributed

# Statements that Citus can't plan: the store has others for it.
ONLY_WITHOUT_CITUS = {
    **dict.fromkeys(
        [f"resources.support_items.store.{name}" for name in ("LOCK_CATALOGUE", "INCREASE_REVISION", "UPSERT")],
        "the operator's import, with the role that owns the tables",
    ),
    "events.order_store.LEAVE_GAP": "the operator's restore, with the role that owns the tables",
    "webhooks.delivery_queue.LIST_DUE": "has a recursion",
}
# Statements that ask all nodes.
ALL_SHARDS = {
    "core.encryption.rotation.count_by_key": "the operator's commands read the secrets of all plan managers",
    "core.encryption.rotation.list_with_other_keys": "the operator's commands read the secrets of all plan managers",
    "events.order_store.plan_managers_with_queued_events": "node by node if one has failed",
    "events.order_store.queue_states": "node by node if one has failed",
    "http.idempotency.store.purge": "a periodic task",
    "imports.file_store.purge": "a periodic task",
    "resources.invoices.approval_store.list_days": "a periodic task",
    "imports.store.clear_columns": "a periodic task",
    "imports.store.purge_imported": "a periodic task",
    "imports.store.purge_rejected": "a periodic task",
    "imports.store.purge_uploaded": "a periodic task",
    "resources.bank_details.store.find_plan_manager": "an operator's command names a proposal alone",
    "privacy.financial_store.list_due": "a periodic task",
    "resources.documents.store.list_due": "one periodic task serves every plan manager",
    "resources.invoice_view_sessions.store.list_stale": "a periodic task",
    "resources.invoices.recheck_store.list_plan_managers": "a periodic task",
    "resources.invoices.recheck_store.list_checked_since": "a periodic task",
    "resources.invoices.recheck_store.oldest_id": "a metric",
    "resources.participants.store.list_plan_changes": "a periodic task",
    "resources.statement_runs.store.list_due_offices": "a periodic task",
    "resources.statement_runs.store.list_expired": "a periodic task",
    "resources.statement_runs.store.list_stopped": "a periodic task",
    "resources.statement_runs.store.list_running": "one periodic task serves every plan manager",
    "database.stored_counts.compact": "a periodic task",
    "access.request_log.store.purge_key_days": "a periodic task",
    "access.request_log.store.purge_minutes": "a periodic task",
    "access.request_log.store.list_active": "a periodic task",
    "access.request_log.store.purge": "a periodic task",
    "webhooks.attempts.purge": "a periodic task",
    "webhooks.delivery_queue.get_backlog": "a metric",
    "webhooks.delivery_queue.list_due": "node by node if one has failed",
    "webhooks.delivery_queue.purge": "a periodic task",
    "webhooks.endpoint_store.count_unhealthy": "the operator's doctor",
    "webhooks.endpoint_store.plan_managers_behind": "node by node if one has failed",
}
VALUES = {
    "uuid": "00000000-0000-0000-0000-000000000007", "text": "00000000-0000-0000-0000-000000000007", "varchar": "a",
    "int4": "1", "int8": "1", "bool": "true", "float8": "1", "numeric": "1", "date": "2026-01-01",
    "timestamptz": "2026-01-01T00:00:00Z", "interval": "1 day", "bytea": "a", "json": "[]", "jsonb": "{}",
    "name": "plankeeper", "xid": "1",
}  # fmt: skip


def both_urls(dsn: str) -> dict[str, str]:
    """The settings of commands that change the schema."""
    return {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_OWNER_DATABASE_URL": as_owner(dsn)}


@pytest.fixture(scope="module")
def trio() -> Iterator[CitusTrio]:
    with citus_trio() as running:
        yield running


@pytest.fixture(scope="module")
def dsn(trio: CitusTrio) -> str:
    """The address of a distributed database."""
    address = trio.new_database()
    plan_manager_id = uuid7()
    execute(
        address,
        f"insert into plan_managers (id, name) values ('{plan_manager_id}', 'From before')",
        f"insert into users (plan_manager_id, id, email) values ('{plan_manager_id}', '{uuid7()}', 'user@example.com')",
    )
    done = run_plankeeper("distribute", "--shards", str(SHARDS), **both_urls(address))
    assert done.returncode == 0, done
    return address


@pytest.fixture(scope="module")
def undistributed(trio: CitusTrio) -> str:
    """The address of a database with the schema on the coordinator."""
    return trio.new_database()


@pytest.fixture
async def connection(dsn: str) -> AsyncIterator[Any]:
    opened: Any = await asyncpg.connect(dsn, statement_cache_size=0, server_settings={"plan_cache_mode": "auto"})
    yield opened
    await opened.close()


def test_distribute_explains_what_is_missing(trio: CitusTrio, undistributed: str) -> None:
    execute(undistributed, *(f"select citus_remove_node('127.0.0.1', {trio.port + each})" for each in (1, 2)))
    done = run_plankeeper("distribute", **both_urls(undistributed))
    execute(undistributed, *(f"select citus_add_node('127.0.0.1', {trio.port + each})" for each in (1, 2)))
    assert (done.returncode, done.stderr) == (
        1,
        "Error: Citus has no node for the shards: add each worker with `select citus_add_node('HOST', PORT)`.\n",
    )


async def test_distribute_places_every_table_once_with_its_rows(undistributed: str, dsn: str, connection: Any) -> None:
    planned = run_program("distribute", "--dry-run", **both_urls(undistributed)).stdout.splitlines()
    placed = await connection.fetch(
        "select table_name::text as name, citus_table_type as kind, colocation_id from citus_tables order by 1"
    )
    assert {each["name"] for each in placed if each["kind"] == "reference"} == set(REFERENCE_TABLES)
    assert {each["kind"] for each in placed} == {"reference", "distributed"}
    assert len({each["colocation_id"] for each in placed if each["kind"] == "distributed"}) == 1
    of_plan_managers = {
        each["name"]
        for each in await connection.fetch(
            "select table_name::text as name from information_schema.columns"
            " where table_schema = 'public' and column_name = 'plan_manager_id'"
        )
    }
    distributed = {each["name"] for each in placed if each["kind"] == "distributed"}
    assert distributed == of_plan_managers - set(COORDINATOR_TABLES)
    assert sorted(line.partition(":")[0] for line in planned) == [each["name"] for each in placed]
    assert await connection.fetchval("select email from users") == "user@example.com"
    assert await connection.fetchval("select count(*) from plan_managers where name = 'From before'") == 1
    again = run_program("distribute", **both_urls(dsn))
    assert again.stdout == "All tables are already distributed.\nThe role plankeeper has its privileges.\n"
    undone = run_program("doctor", PLANKEEPER_DATABASE_URL=undistributed)
    assert undone.returncode == 1
    assert "FAIL  not distributed: access_records, account_manager_links, " in undone.stdout, undone.stdout


def test_doctor_shows_the_nodes(trio: CitusTrio, dsn: str) -> None:
    lines = run_plankeeper("doctor", PLANKEEPER_DATABASE_URL=dsn).stdout.splitlines()
    nodes = [re.sub(r"[0-9.]+ MB", "MB", each) for each in lines if "Citus" in each]
    assert nodes == [
        f"ok    Citus coordinator 127.0.0.1:{trio.port}",
        f"ok    Citus worker 127.0.0.1:{trio.port + 1}: {SHARDS // 2} shards of each table, MB",
        f"ok    Citus worker 127.0.0.1:{trio.port + 2}: {SHARDS // 2} shards of each table, MB",
    ]


async def test_a_statement_of_a_request_concerns_one_shard(connection: Any) -> None:
    """Explains every statement with values. Statements that query all shards, or fail, are listed with the reason."""
    failed: dict[str, str] = {}
    all_shards: set[str] = set()
    explained = 0
    for each in store_statements():
        if each.sql is None or each.sql.split()[0] in ("show", "lock", "analyze") or not is_explained(each):
            continue
        try:
            plan = await explain(connection, each)
        except asyncpg.PostgresError as error:
            failed[f"{each.module}.{constant_of(each)}"] = str(error)
            continue
        explained += 1
        tasks = [int(number) for number in re.findall(r"Task Count: (\d+)", plan)]
        if max(tasks, default=1) > 1:
            all_shards.add(each.name)
    assert explained > 250
    assert {name: failed[name] for name in failed if name not in ONLY_WITHOUT_CITUS} == {}
    assert set(failed) == set(ONLY_WITHOUT_CITUS)
    assert all_shards == set(ALL_SHARDS)


def is_explained(statement: Statement) -> bool:
    """Whether the short run explains a statement: of the lists of a resource, those with one filter or none."""
    return SOAK or "," not in statement.name


# What the start of a sorted page is compared with, as text.
SORT_VALUES = {"timestamptz": "2026-01-02T03:04:05Z", "date": "2026-01-02", "numeric": "9.99", "bigint": "7"}


async def explain(connection: Any, statement: Statement) -> str:
    """The plan of a statement for values, which are in its text: that of a plan with parameters may differ."""
    prepared = await connection.prepare(statement.sql)
    literals = [
        f"'{{{VALUES[each.name[:-2]]}}}'::{each.name}"
        if each.name.endswith("[]")
        else f"'{VALUES[each.name]}'::{each.name}"
        for each in prepared.get_parameters()
    ]
    sql = statement.sql or ""
    for number, kind in re.findall(r"\$(\d+)::text::(timestamptz|date|numeric|bigint)", sql):
        literals[int(number) - 1] = f"'{SORT_VALUES[kind]}'"
    for number in re.findall(r"\$(\d+)::text\[\]::bigint\[\]", sql):
        literals[int(number) - 1] = "'{7}'"
    for number in re.findall(r"\$(\d+)::uuid\[\] is null", sql):
        literals[int(number) - 1] = "null::uuid[]"  # all plan managers, not some
    for number in re.findall(r"json_populate_record\(null::\w+, \$(\d+)\)", sql):
        literals[int(number) - 1] = "'{}'::json"  # Citus reads it while it plans
    text = re.sub(r"\$(\d+)", lambda match: literals[int(match[1]) - 1], sql)
    return "\n".join(record[0] for record in await connection.fetch(f"explain (costs off) {text}"))


def constant_of(statement: Statement) -> str:
    """The name of the constant that a statement is in."""
    names = vars(import_module(f"plankeeper.{statement.module}"))
    return next((name for name, value in names.items() if value is statement.sql), location_of(statement))


# The tests of one plan manager's requests. `make soak` runs those of more packages.
# The contract test of the event of each write creates triggers, which distributed tables can't have.
SHORT_RUN = [
    "tests/api/resources/participants/test_participants.py",
    "tests/api/resources/team_members/test_team_members.py",
    "tests/api/resources/invoices/test_review_queue.py",
    "tests/api/resources/invoices/test_stored_totals.py::test_compaction_leaves_few_rows",
    "tests/api/resources/providers/test_providers.py",
    "tests/api/http/idempotency",
    "tests/api/events/test_events.py",
    "tests/api/http/rate_limits",
    "tests/api/webhooks/test_deliveries.py",
    "tests/api/imports/test_import.py::test_a_file_larger_than_a_batch_is_one_transaction",
    "tests/api/imports/test_round_trip.py::test_importing_the_sample_data_twice_changes_nothing",
    "tests/api/privacy",
    "tests/api/access/access_log",
    "tests/console/participants/test_participant_pages.py",
    "tests/system/office",
]
LONG_RUN = [
    *SHORT_RUN,
    *(
        f"tests/api/{each}"
        for each in (
            "access/accounts", "access/api_keys", "core", "database", "events", "http", "imports", "mail",
            "resources/account_managers", "resources/bank_details", "resources/claims", "resources/fees",
            "resources/invoice_view_sessions", "resources/invoices", "resources/payments", "resources/statement_runs",
            "resources/statements",
        )
    ),
]  # fmt: skip

# Tests that aren't run on Citus. Besides, tests that make databases of their own are skipped.
NOT_ON_CITUS = {
    "tests/api/http/test_incremental_sync.py::test_a_prepared_transaction_holds_it_back": (
        "Citus prepares transactions on its nodes, and clients can't"
    ),
    "tests/api/http/test_overload.py": "waits until requests wait for a lock, which is on a worker",
    "tests/api/privacy/test_erasure_races.py": "waits until transactions wait for a lock, which is on a worker",
    "tests/api/resources/invoices/test_stored_totals.py::test_two_imports_that_create_the_same_invoice_count_it_once": (
        "waits until an import waits for a lock, which is on a worker"
    ),
    "tests/api/resources/invoices/test_review_queue.py::"
    "test_an_invoice_that_is_decided_while_somebody_takes_it_stays_decided": (
        "waits until a statement waits for a lock, which is on a worker"
    ),
    "tests/api/resources/payments/test_concurrent_runs.py::"
    "test_a_return_and_a_cancellation_at_the_same_time_leave_a_line_without_a_payment": (
        "waits until transactions wait for a lock, which is on a worker"
    ),
    "tests/api/database/test_pool.py::test_lists_use_the_connection_that_plans_for_values_already": (
        "each connection to Citus plans for values"
    ),
    "tests/api/http/test_protocol.py": "concerns the connections of clients, not the database",
    "tests/api/imports/test_import.py::test_only_some_of_many_invalid_references_are_checked": (
        "a savepoint on the nodes for each of its 200 invalid lines takes longer than the test waits"
    ),
    "tests/api/imports/test_import_statements.py::test_a_new_invoice_is_written_once": (
        "PostgreSQL's counts of written rows are on the workers"
    ),
}


def test_the_tests_of_the_api_pass_on_citus(dsn: str, project: Path) -> None:
    selected = LONG_RUN if SOAK else SHORT_RUN
    left_out = [option for each in NOT_ON_CITUS for option in ("--deselect", each)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-rs", "-n", "0", "-p", "no:cacheprovider", *selected, *left_out],
        cwd=project,
        env=os.environ | {ADDRESS: dsn},
        capture_output=True,
        text=True,
        check=False,
    )
    sys.stdout.write(done.stdout)
    assert done.returncode == 0, done.stdout[-20_000:]


def test_commands_work_with_the_role_that_serves(dsn: str) -> None:
    created = run_plankeeper("plan-managers", "create", "--name", "By command", PLANKEEPER_DATABASE_URL=dsn)
    assert created.returncode == 0, created
    key = ("keys", "create", "--name", "k", "--plan-manager", created.stdout.strip())
    done = run_plankeeper(*key, PLANKEEPER_DATABASE_URL=dsn)
    assert done.returncode == 0, done


@pytest.fixture
def server(dsn: str) -> Iterator[RunningServer]:
    running = RunningServer(dsn, webhook_allowed_networks=(ip_network("127.0.0.0/8"),)).start()
    yield running
    running.stop()


def clients_by_worker(server: RunningServer, trio: CitusTrio, new_client: Callable[[], Client]) -> dict[str, Client]:
    """A client for a plan manager on each worker."""
    clients: dict[str, Client] = {}
    while len(clients) < 2:
        client = new_client()
        port = server.run(
            server.db.one(
                int,
                """
                select node.nodeport from pg_dist_placement placement
                join pg_dist_node node on node.groupid = placement.groupid
                where placement.shardid = get_shard_id_for_distribution_column('participants', $1::uuid)
                """,
                UUID(client.plan_manager_id),
            )
        )
        clients[f"worker{port - trio.port}"] = client
    return clients


def feed(api: Client) -> list[str]:
    """The ids of the participants in the feed; none while it is unavailable."""
    events = api.get("/events", limit=1000, type="participant.created").json()
    return [each["resource"]["id"] for each in events.get("data", ())]


def test_a_failed_node_stops_only_its_own_plan_managers(
    trio: CitusTrio, server: RunningServer, new_client: Callable[[], Client], receivers: Callable[[], Receiver]
) -> None:
    clients = clients_by_worker(server, trio, new_client)
    arrived = {name: receivers() for name in clients}
    for name, api in clients.items():
        api.create("/webhook-endpoints", {"url": arrived[name].url, "event_types": ["participant.*"]})
    healthy, failing = clients["worker1"], clients["worker2"]
    with running_worker(server):
        created = {name: [api.create("/participants", {})["id"]] for name, api in clients.items()}

        def is_complete(name: str) -> bool:
            """Whether all participants are in the feed and came by webhook, some perhaps twice."""
            return feed(clients[name]) == created[name] and {*received_subject_ids(arrived[name])} == {*created[name]}

        for name in clients:
            wait_until(lambda name=name: is_complete(name))
        trio.kill("worker2")
        key = wait_until(lambda: failed_create(failing, created["worker2"]))
        created["worker1"] += [healthy.create("/participants", {})["id"] for _ in range(3)]
        wait_until(lambda: is_complete("worker1"))
        assert httpx.get(f"{server.url}/readyz").status_code == 200
        trio.up()
        created["worker2"].append(wait_until(lambda: created_id(failing, **{"Idempotency-Key": key})))
        wait_until(lambda: is_complete("worker2"))


def failed_create(api: Client, created: list[str]) -> str | None:
    """The idempotency key of a create that failed. A node that was killed may still execute a few: their ids."""
    key = str(uuid7())
    response = api.post("/participants", {}, headers={"Idempotency-Key": key})
    if response.status_code == 503:
        assert response.json()["error"] == "service_unavailable"
        return key
    created.append(response.json()["id"])
    return None


def created_id(api: Client, **headers: str) -> str | None:
    """The id of a new participant; None while the API is unavailable."""
    response = api.post("/participants", {}, headers=headers)
    if response.status_code in (200, 201):
        return response.json()["id"]
    assert response.json()["error"] in ("service_unavailable", "idempotency_in_progress"), response.text
    return None


def listed(api: Client, path: str, **filters: str) -> list[str]:
    """The ids of all rows of a list, page by page."""
    ids, after = list[str](), "0"
    while after:
        page = api.get(path, after=after, limit=1000, **filters).json()
        ids += [each["id"] for each in page["data"]]
        after = page["pagination"]["next_cursor"]
    return ids


def are_old_shards_deleted(server: RunningServer) -> bool:
    execute(server.dsn, "call citus_cleanup_orphaned_resources()")
    return not server.run(server.db.one(int, "select count(*) from pg_dist_cleanup"))


def test_moving_shards_to_a_new_node_loses_no_acknowledged_write(
    trio: CitusTrio, server: RunningServer, new_client: Callable[[], Client]
) -> None:
    clients = [new_client() for _ in range(4)]
    trio.start_third(server.dsn)
    acknowledged: dict[Client, list[str]] = {each: [] for each in clients}
    moved = threading.Event()

    def create(api: Client) -> None:
        while not moved.is_set():
            key = str(uuid7())
            while not (ident := created_id(api, **{"Idempotency-Key": key})):
                pass
            acknowledged[api].append(ident)

    with ThreadPoolExecutor(len(clients)) as pool:
        creating = [pool.submit(create, each) for each in clients]
        try:
            execute(
                server.dsn,
                f"select citus_add_node('127.0.0.1', {trio.third})",
                "select rebalance_table_shards('participants', shard_transfer_mode => 'force_logical')",
            )
        finally:
            moved.set()
        for each in creating:
            each.result()
    placed = "select count(*) from citus_shards where nodeport = $1 and table_name = 'participants'::regclass"
    assert server.run(server.db.one(int, placed, trio.third)) >= SHARDS // 4
    for api in clients:
        assert len(acknowledged[api]) > 0
        assert listed(api, "/participants") == acknowledged[api]
        wait_until(lambda api=api: len(listed(api, "/events", type="participant.created")) == len(acknowledged[api]))
    wait_until(lambda: are_old_shards_deleted(server))  # a shard can't return to a node that has its old copy
    execute(
        server.dsn,
        f"select citus_set_node_property('127.0.0.1', {trio.third}, 'shouldhaveshards', false)",
        f"select citus_drain_node('127.0.0.1', {trio.third}, shard_transfer_mode => 'force_logical')",
        f"select citus_remove_node('127.0.0.1', {trio.third})",
    )


def test_a_backup_can_be_restored_to_one_postgresql_and_to_citus(
    trio: CitusTrio, server: RunningServer, api: Client, tmp_path: Path
) -> None:
    file = tmp_path / "backup.dump"
    ids = sorted(api.create("/participants", {"first_name": "Robin"})["id"] for _ in range(3))
    wait_until(lambda: sorted(feed(api)) == ids)
    done = run_plankeeper("backup", str(file), **both_urls(server.dsn))
    assert done.returncode == 0, done
    execute(f"postgresql://postgres@127.0.0.1:{trio.third}/postgres", "create database restored template template0")
    plain = f"postgresql://plankeeper@127.0.0.1:{trio.third}/restored"
    prepare_database(plain)
    for address in (plain, trio.new_database()):
        done = run_plankeeper("restore", str(file), **both_urls(address))
        assert done.returncode == 0, done
        if address != plain:
            assert "run `plankeeper distribute`" in done.stdout
            assert run_plankeeper("distribute", **both_urls(address)).returncode == 0
        restored = RunningServer(address).start()
        try:
            copy = Client(restored.url, api.key, UUID(api.plan_manager_id))
            listed = copy.get("/participants").json()
            assert sorted(each["id"] for each in listed["data"]) == ids
            assert listed["pagination"]["total"] == 3
            copy.http.close()
        finally:
            restored.stop()


async def test_migrate_keeps_a_distributed_database_distributed(dsn: str, connection: Any, tmp_path: Path) -> None:
    """The last test, because the schema is that of the next release afterwards."""
    release = next_release.copy_package(tmp_path) | both_urls(dsn)
    done = run_program("migrate", **release)
    assert f"The schema is now {next_release.REVISION}.\n" in done.stdout, done
    indexes = await connection.fetch(
        """
        select result from run_command_on_shards('participants', $$
            select count(*) from pg_index join pg_class on pg_class.oid = indexrelid
            where indrelid = '%s'::regclass and indisvalid and starts_with(relname, 'participants_by_region')
        $$)
        """
    )
    assert [each["result"] for each in indexes] == ["1"] * SHARDS
    assert await connection.fetchval("select count(*) from participants where region is null") == 0
    lines = run_program("doctor", **release).stdout
    assert "Citus worker" in lines
    assert "not distributed" not in lines
    colocated = "select count(distinct colocation_id) from citus_tables where citus_table_type = 'distributed'"
    assert await connection.fetchval(colocated) == 1
    kind = "select citus_table_type from citus_tables where table_name = 'regions'::regclass"
    assert await connection.fetchval(kind) == "distributed"
