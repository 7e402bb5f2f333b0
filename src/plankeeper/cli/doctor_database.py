"""Lines of `plankeeper doctor` about the database: writes, connections, disk, events, webhooks, abandoned clusters."""

import asyncio
import shutil
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

from plankeeper.cli.context import embedded_pool_size
from plankeeper.cli.doctor_checks import Line
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.server import ServerState, count_sessions, get_server_state
from plankeeper.database.unavailability import SENTENCES, check_writes
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.embedded_postgres.creation import abandoned_homes
from plankeeper.events.backlog import BacklogMonitor
from plankeeper.webhooks.endpoint_store import count_unhealthy

# Of each API worker, besides its pool: the sequencer, and reserves for the checks of keys and mails.
OTHER_CONNECTIONS = 3
MAX_LAG = 2.0  # seconds: a server finds every event within one
MIN_FREE_BYTES = 2**30
MIN_FREE_SHARE = 0.05


async def server_lines(db: Database, settings: Settings, dsn: str, cluster: Cluster | None) -> list[Line]:
    """Lines about the server, whatever its schema."""
    state = await get_server_state(db)
    lines = [_connection_line(state, settings, is_embedded=cluster is not None)]
    lines.append(disk_line(database_folder(state, dsn, cluster), state.database_bytes))
    cause = await check_writes(db)
    return [*lines, ("FAIL", SENTENCES[cause].rstrip("."))] if cause else lines


async def schema_lines(db: Database) -> list[Line]:
    """Lines about what servers do with the data. The schema must be current."""
    lines = await _backlog_lines(db)
    webhooks = await count_unhealthy(db)
    if webhooks.failing:
        since = f"{webhooks.failing_since:%Y-%m-%dT%H:%M:%SZ}"
        lines.append(("warn", f"every attempt to {_endpoints(webhooks.failing)} fails, the first since {since}"))
    if webhooks.disabled:
        lines.append(("warn", f"{_endpoints(webhooks.disabled)} {_is(webhooks.disabled)} disabled after failures"))
    return lines


async def _backlog_lines(db: Database) -> list[Line]:
    """Looks at the queue of events twice unless it is empty. In the meantime, a running server sequences some."""
    monitor = BacklogMonitor()
    if not (await monitor.measure(db)).event_count:
        return []
    await asyncio.sleep(MAX_LAG)
    backlog = await monitor.measure(db)
    if backlog.lag_seconds < MAX_LAG:
        return []
    if await count_sessions(db) <= db.stats.open:  # only this command is connected
        return [("ok", f"events wait for a server to start, which puts them into the feed ({backlog.event_count:,})")]
    text = f"events wait to get into the feed ({backlog.event_count:,}), and none did for {MAX_LAG:.0f} seconds"
    return [("warn", f"{text}: look for `sequencer` in the log of the servers")]


def _endpoints(count: int) -> str:
    return f"{count} webhook endpoint{'' if count == 1 else 's'}"


def _is(count: int) -> str:
    return "is" if count == 1 else "are"


def connections_needed(settings: Settings, *, is_embedded: bool) -> int:
    """The most connections that `serve` opens with these settings."""
    from plankeeper.webhooks.process import POOL_SIZE as WEBHOOK_POOL_SIZE  # it imports the metrics

    pool_size = embedded_pool_size(settings) if is_embedded else settings.pool_size
    webhooks = WEBHOOK_POOL_SIZE + 1 if settings.webhook_worker else 0
    return settings.workers * (pool_size + OTHER_CONNECTIONS) + webhooks


def _connection_line(state: ServerState, settings: Settings, *, is_embedded: bool) -> Line:
    needed = connections_needed(settings, is_embedded=is_embedded)
    text = f"PostgreSQL allows {state.connection_limit} connections, and a server opens up to {needed}"
    if needed <= state.connection_limit:
        return "ok", f"{text}; {state.connections} are open"
    return "warn", f"{text}: increase max_connections or the role's limit, or reduce PLANKEEPER_POOL_SIZE"


def database_folder(state: ServerState, dsn: str, cluster: Cluster | None) -> Path | None:
    """The folder of the database if it is on this machine, and if the role may know it."""
    if cluster:
        return cluster.location
    url = urlsplit(dsn)
    host = url.hostname or next(iter(parse_qs(url.query).get("host", [])), "")
    is_local = host.startswith("/") or host in ("localhost", "127.0.0.1", "::1")
    return Path(state.data_directory) if is_local and state.data_directory else None


def disk_line(folder: Path | None, database_bytes: int) -> Line:
    """The size of the database, and the free space of its disk if it can be seen from here."""
    size = f"the database has {_size(database_bytes)}"
    try:
        usage = shutil.disk_usage(folder) if folder else None
    except OSError:
        usage = None
    if usage is None:
        return "ok", f"{size}; the free space of its disk can't be seen from here"
    text = f"{size}, and its disk {_size(usage.free)} of free space"
    if usage.free < max(MIN_FREE_BYTES, MIN_FREE_SHARE * usage.total):
        return "warn", f"{text}: when it is full, writes fail"
    return "ok", text


def _size(count: int) -> str:
    return f"{count / 2**30:.1f} GiB" if count >= 2**30 else f"{count / 2**20:.1f} MiB"


def abandoned_lines() -> list[Line]:
    """Clusters that root's data directories left behind."""
    return [
        ("warn", f"{home} has a database whose data directory is gone: remove it with `rm -r {home}*`")
        for home in abandoned_homes()
    ]
