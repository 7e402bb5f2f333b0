"""Measures events after a large import: `python -m benchmarks.events`.

* How many events a second get positions, and how long the event of another plan manager takes meanwhile.
* What an event costs in bytes, and how many dead rows are left.
* How much processor time an idle server needs, also while a long transaction keeps dead rows from being removed.
* How long the feed and the activity page of millions of events take, whatever the type of the events.

It is a program of its own because it needs httpx, which is a development dependency.
"""

import argparse
import shutil
import statistics
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import psutil

from benchmarks.database import Postgres
from benchmarks.demo_server import DemoServer
from benchmarks.processes import Program, ProgramError, process_tree, processor_seconds

WORKERS = 2
IDLE_SECONDS = 60
TIMED_REQUESTS = 20
CHUNK = 250_000  # events that one statement adds to the feed
API = "/api/public/v1"
# The types of the added events: one that most have, one of a thousandth, one of a single event, and one of none.
FREQUENT, SOME, SINGLE, UNUSED = "invoice.updated", "provider.updated", "note_type.deleted", "invoice.deleted"

ADD_EVENTS = """
    insert into event_types (code, name)
    select coalesce(max(code), 0) + 1, '{type}' from event_types
    having not exists (select from event_types where name = '{type}');

    with added as materialized (select uuidv7() as id from generate_series(1, {count})), events_added as (
        insert into events (plan_manager_id, id, type, created_at, actor_kind, resource_kind, resource_id, data, notify)
        select '{plan_manager}', id, '{type}', now(), 'system', 'invoice', id::text, json_build_object('id', id), false
        from added
    )
    insert into event_order (plan_manager_id, position, event_id, type, notify)
    select '{plan_manager}', latest + row_number() over (order by id), id,
        (select code from event_types where name = '{type}'), false
    from added, (select max(position) as latest from event_order where plan_manager_id = '{plan_manager}') placed
"""
SIZES = """
    select pg_total_relation_size('events') + pg_total_relation_size('event_order')
        + pg_total_relation_size('event_marks') + pg_total_relation_size('event_types')
"""


@dataclass(frozen=True)
class Options:
    work: Path
    events: int
    feed: int
    seconds: int


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.events", description="Measure events at scale.")
    parser.add_argument("--work", type=Path, default=Path(".bench"), help="the folder for the data (.bench)")
    parser.add_argument("--events", type=int, default=1_000_000, help="events of the import (1000000)")
    parser.add_argument("--feed", type=int, default=5_000_000, help="events of the feed that is read (5000000)")
    parser.add_argument("--idle-seconds", type=int, default=IDLE_SECONDS, help=f"idle time ({IDLE_SECONDS})")
    args = parser.parse_args()
    try:
        measure_events(Options(args.work.absolute(), args.events, args.feed, args.idle_seconds))
    except ProgramError as error:
        sys.exit(str(error))


def measure_events(options: Options) -> None:
    """Measure in a new cluster, and print a line for each figure."""
    folder = options.work / "events"
    postgres = Postgres(folder / "cluster")
    postgres.remove()
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    with postgres.running():
        _measure(DemoServer(folder), postgres, options)


def _measure(server: DemoServer, postgres: Postgres, options: Options) -> None:
    with server.running(WORKERS):
        large, other = server.create_key(server.plan_manager), server.create_key(server.other_plan_manager)
        _wait_until_sequenced(postgres)
    size, started = int(postgres.run(SIZES)), time.monotonic()
    imported = server.import_copies(server.plan_manager, ["participants"], options.events)
    _report("import", f"{imported:,} participants in {time.monotonic() - started:.0f} s, without a server")
    with server.running(WORKERS):
        _measure_sequencing(server, postgres, other)
        bytes_per_event = (int(postgres.run(SIZES)) - size) / imported
        _report("storage", f"{bytes_per_event:,.0f} bytes an event, and {_row_versions(postgres)}")
        _measure_idle(server, postgres, options)
        _add_events(server, postgres, options.feed)
        _measure_pages(server, large)


def _report(name: str, text: str) -> None:
    sys.stdout.write(f"{name}: {text}\n")
    sys.stdout.flush()


def _measure_sequencing(server: DemoServer, postgres: Postgres, headers: Mapping[str, str]) -> None:
    """Write for the other plan manager, over and over, until all events of the import have positions."""
    delays = list[float]()
    with httpx.Client(base_url=server.url + API, headers=headers, timeout=60) as client:
        first, started = _queued(postgres), time.monotonic()
        while not delays or _queued(postgres):
            delays.append(_time_event(client))
        seconds = time.monotonic() - started
    _report("sequencing", f"{first / seconds:,.0f} events a second ({first:,} in {seconds:.1f} s)")
    _report(
        "delay of another plan manager's events meanwhile",
        f"{statistics.median(delays):.2f} s, at most {max(delays):.2f} s ({len(delays)} events)",
    )


def _queued(postgres: Postgres) -> int:
    return int(postgres.run("select coalesce(sum(cardinality(event_ids)), 0) from event_queue"))


def _wait_until_sequenced(postgres: Postgres) -> None:
    while _queued(postgres):
        time.sleep(0.2)


def _time_event(client: httpx.Client) -> float:
    """Seconds from the response to a write until its event is in the feed."""
    response = client.post("/note-types", json={"note_type": str(time.time_ns())})
    response.raise_for_status()
    started, resource_id = time.monotonic(), response.json()["id"]
    while not client.get("/events", params={"resource_id": resource_id}).json()["data"]:
        time.sleep(0.005)
    return time.monotonic() - started


def _row_versions(postgres: Postgres) -> str:
    time.sleep(2)  # PostgreSQL reports its counts late
    counts = "select n_tup_upd, n_tup_del, n_dead_tup from pg_stat_user_tables where relname = 'events'"
    updated, deleted, dead = postgres.run(counts).strip().split("|")
    return f"{updated} updates, {deleted} deletions and {dead} dead rows in events"


def _measure_idle(server: DemoServer, postgres: Postgres, options: Options) -> None:
    """The processor time of a server without requests, and again while a transaction holds the horizon."""
    postgres.vacuum()
    _report("idle", _processor_share(server, postgres, options.seconds))
    with _held_horizon(postgres):
        imported = server.import_copies(server.other_plan_manager, ["participants"], options.events // 4)
        _wait_until_sequenced(postgres)
        dead = postgres.run("select n_dead_tup from pg_stat_user_tables where relname = 'event_queue'").strip()
        share = _processor_share(server, postgres, options.seconds)
        _report("idle with a held horizon", f"{share}, after {imported:,} events ({dead} dead rows in the queue)")


@contextmanager
def _held_horizon(postgres: Postgres) -> Iterator[None]:
    """A statement whose snapshot keeps dead rows from being removed."""
    psql = [postgres.program("psql"), "--no-psqlrc", "--dbname", postgres.dsn, "--command", "select pg_sleep(3600)"]
    waiting = Program(psql, postgres.folder.parent / "psql.log")
    try:
        yield
    finally:
        waiting.stop()


def _processor_share(server: DemoServer, postgres: Postgres, seconds: int) -> str:
    """The processor time of the server, of its connections, and of PostgreSQL's other processes, such as autovacuum."""
    server_pids = process_tree(server.pid)
    connections = [pid for pid in postgres.pids() if "[local]" in " ".join(psutil.Process(pid).cmdline())]
    groups: list[Callable[[], float]] = [
        lambda: processor_seconds(server_pids),
        lambda: processor_seconds(connections),
        # With what ended children used: autovacuum workers come and go.
        lambda: processor_seconds(set(postgres.pids()) - set(connections)),
    ]
    time.sleep(5)
    before = [group() for group in groups]
    time.sleep(seconds)
    shares = [100 * (group() - first) / seconds for group, first in zip(groups, before, strict=True)]
    return (
        f"{shares[0]:.2f} % of a core for {WORKERS} workers, {shares[1]:.2f} % for their connections,"
        f" {shares[2]:.2f} % for autovacuum and PostgreSQL's other processes"
    )


def _add_events(server: DemoServer, postgres: Postgres, total: int) -> None:
    count = int(postgres.run(f"select count(*) from event_order where plan_manager_id = '{server.plan_manager}'"))
    parts = [(SINGLE, 1), (SOME, 500)]
    while sum(each for _, each in parts) + count < total:
        parts.append((FREQUENT, min(CHUNK, total - count)))
    for name, size in [*parts, (SOME, 500)]:
        postgres.run(ADD_EVENTS.format(type=name, count=size, plan_manager=server.plan_manager))
    postgres.vacuum()
    _report("feed", f"{total:,} events")


def _measure_pages(server: DemoServer, headers: Mapping[str, str]) -> None:
    types = ["", "participant.created", FREQUENT, SOME, SINGLE, UNUSED]
    with httpx.Client(base_url=server.url, timeout=60) as console:
        server.sign_in(console)
        with httpx.Client(base_url=server.url + API, headers=headers, timeout=60) as api:
            for each in types:
                query = {"type": each} if each else {}
                feed, page = (
                    _time_page(client, path, query)
                    for client, path in ((api, "/events"), (console, "/console/activity"))
                )
                _report(f"type={each}" if each else "all types", f"feed {feed}, activity page {page}")


def _time_page(client: httpx.Client, path: str, query: Mapping[str, str]) -> str:
    durations = list[float]()
    for _ in range(TIMED_REQUESTS):
        started = time.perf_counter()
        response = client.get(path, params=query)
        durations.append((time.perf_counter() - started) * 1000)
        if response.status_code != 200:
            raise ProgramError(f"{path} returned status {response.status_code}")
    return f"{statistics.median(durations):.1f} ms (at most {max(durations):.1f} ms)"


if __name__ == "__main__":
    main()
