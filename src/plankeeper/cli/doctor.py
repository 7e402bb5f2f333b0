"""`plankeeper doctor`: checks of the settings, the proxy, the mail server, the storage, the database and its schema."""

import asyncio
import platform
import shutil
import ssl
import sys
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from urllib.parse import parse_qs, urlsplit

import click
import httpcore

from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.api_keys.service import EXPIRY_WARNING_PERIOD
from plankeeper.access.api_keys.store import list_expiring
from plankeeper.cli.citus import citus_lines
from plankeeper.cli.context import Line, embedded_cluster, embedded_pool_size, run, supported_schema_version
from plankeeper.cli.documents import storage_lines
from plankeeper.cli.privileges import role_lines
from plankeeper.cli.secret_keys import describe_usage, missing_file_sentence, missing_key_warnings
from plankeeper.core.encryption.cipher import SETTING, KeyFileError, has_open_permissions, read_keys
from plankeeper.core.encryption.rotation import KeyUsage, count_by_key
from plankeeper.core.json import to_json
from plankeeper.core.settings import SettingError, Settings
from plankeeper.core.version import full_version
from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.database.server import ServerState, count_sessions, get_server_state
from plankeeper.database.unavailability import SENTENCES, check_writes
from plankeeper.events.backlog import BacklogMonitor
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.server.embedded_postgres.creation import abandoned_homes
from plankeeper.webhooks.endpoint_store import count_unhealthy

# The first releases without CVE-2024-7592 and older vulnerabilities, by minor version.
_FIXED_PYTHONS = {(3, 11): 10, (3, 12): 6}


@click.command()
@click.option("--json", "as_json", is_flag=True, help="Print one JSON object, for other programs.")
def doctor(*, as_json: bool) -> None:
    """Check the settings, database, schema and versions. Each line is ok, or says what to do."""
    lines = [("ok", f"Plankeeper {full_version()}, Python {platform.python_version()}")]
    lines += python_warnings(sys.version_info[:3])
    try:
        settings = Settings.read()
        lines += [("ok", "settings are valid"), *(("warn", each) for each in Settings.unknown_variables())]
        lines += [*proxy_warnings(settings), *mail_lines(settings)]
        lines += [*proxy_lines(settings), *run(partial(storage_lines, settings)), *_database_lines(settings)]
    except SettingError as error:
        lines.append(("FAIL", str(error)))
    states = {state for state, _ in lines}
    if as_json:
        worst = next((each for each in ("FAIL", "warn") if each in states), "ok")
        checks = [{"status": state.lower(), "message": text} for state, text in lines]
        click.echo(to_json({"status": worst.lower(), "checks": checks}))
    else:
        for state, text in lines:
            click.echo(f"{state:4}  {text}")
    if "FAIL" in states:
        sys.exit(1)


def _database_lines(settings: Settings) -> list[Line]:
    lines: list[Line] = []
    try:
        with embedded_cluster(settings) as cluster:
            if cluster and cluster.note:
                lines.append(("ok", cluster.note))
            return [*lines, *run(partial(_inspect_database, settings, cluster))]
    except click.ClickException as error:
        return [*lines, ("FAIL", error.message)]


async def _inspect_database(settings: Settings, cluster: Cluster | None) -> list[Line]:
    # The embedded database's own role exists only once it is migrated.
    dsn = cluster.owner_dsn if cluster else settings.database_url or ""
    async with Database(dsn, pool_size=1, statement_timeout=60).open() as db:
        version = await supported_schema_version(db)
        location = f"embedded in {settings.data_dir}" if cluster else "external"
        lines = [_version_line(await schema.server_version(db), location)]
        lines += await server_lines(db, settings, dsn, cluster)
        lines += [] if cluster else await role_lines(db, version)
        lines.append(_schema_line(version))
        is_current = version is not None and version.is_compatible
        if is_current:
            lines += [*await citus_lines(db), *await schema_lines(db)]
        lines += secret_key_lines(settings, await count_by_key(db) if is_current else [])
        lines += abandoned_lines() if cluster else []
        expiring = await list_expiring(db, datetime.now(UTC) + EXPIRY_WARNING_PERIOD) if is_current else []
    return lines + [("warn", _expiry_warning(key)) for key in expiring]


def _version_line(server_version: str, location: str) -> Line:
    major = int(server_version) // 10_000
    if major < 15:
        return "FAIL", f"PostgreSQL {major}, {location}: upgrade to version 15 or newer"
    return "ok", f"PostgreSQL {major}, {location}"


def _schema_line(version: schema.SchemaVersion | None) -> Line:
    if version is None or not version.is_compatible:
        revision = version.revision if version else "empty"
        return "FAIL", f"schema {revision}, but {schema.LATEST_REVISION} is required: run `plankeeper migrate`"
    advice = f", newer than {schema.LATEST_REVISION}, but compatible with this Plankeeper" if version.is_newer else ""
    return "ok", f"schema {version.revision}{advice}"


def _expiry_warning(key: ApiKey) -> str:
    expires_at = f"{key.expires_at:%Y-%m-%dT%H:%M:%SZ}"
    return f"key {key.id} (…{key.last_four}, {key.name}) expires at {expires_at}: run `plankeeper keys rotate`"


def python_warnings(version: tuple[int, int, int]) -> list[Line]:
    """A warning if this release of Python has known vulnerabilities."""
    major, minor, micro = version
    fixed = _FIXED_PYTHONS.get((major, minor), 0)
    if micro >= fixed:
        return []
    text = f"Python {major}.{minor}.{micro} has known vulnerabilities: upgrade to {major}.{minor}.{fixed} or newer"
    return [("warn", text)]


def proxy_warnings(settings: Settings) -> list[Line]:
    """Warnings about a proxy if only one of its two settings is set."""
    if settings.trusted_proxies and settings.public_url is None:
        text = (
            "PLANKEEPER_TRUSTED_PROXIES is set without PLANKEEPER_PUBLIC_URL: cookies and links of the console depend"
            " on the headers that the proxy sends"
        )
    elif settings.public_url and not settings.trusted_proxies:
        text = (
            "PLANKEEPER_PUBLIC_URL is set without PLANKEEPER_TRUSTED_PROXIES: X-Forwarded-For is ignored, and all"
            " clients of the proxy share the limits of its address"
        )
    else:
        return []
    return [("warn", text)]


def mail_lines(settings: Settings) -> list[Line]:
    """Whether mails can be sent: connects to the mail server, and signs in. Without one, there is nothing to report."""
    from plankeeper.mail import client

    server = settings.smtp_server
    if server is None:
        return []
    name = f"mail server {server.host}:{server.port}"
    try:
        with client.smtp_connection(server, "localhost") as smtp:
            encryption = "with TLS" if smtp.is_encrypted else "without encryption"
    except client.MailError as error:
        reply = f" It replied: {error.reply}" if error.reply else ""
        return [("FAIL", f"{name}: {error}.{reply}")]
    return [("ok", f"{name}, {encryption}{', signed in' if server.username else ''}")]


def secret_key_lines(settings: Settings, usage: Sequence[KeyUsage]) -> list[Line]:
    """The keys of the key file, and the keys that stored secrets need."""
    lines = _key_file_lines(settings, is_needed=bool(usage))
    if usage:
        lines.append(("ok", f"the database contains {describe_usage(usage)}"))
    return [*lines, *(("FAIL", each.rstrip(".")) for each in missing_key_warnings(settings, usage))]


def _key_file_lines(settings: Settings, *, is_needed: bool) -> list[Line]:
    path, problem = settings.secret_key_path, "FAIL" if is_needed else "warn"
    if path is None:
        return [(problem, f"{SETTING} is not set: `plankeeper secret-key create FILE` creates a key file")]
    try:
        first, *others = [key.id for key in read_keys(path)]
    except FileNotFoundError:
        is_created_by_serve = settings.secret_key_file is None and not is_needed
        return [] if is_created_by_serve else [(problem, missing_file_sentence(path).rstrip("."))]
    except KeyFileError as error:
        return [("FAIL", str(error).rstrip("."))]
    old = f", {', '.join(others)} only decrypt{'' if len(others) > 1 else 's'}" if others else ""
    lines = [("ok", f"key file {path}: {first} encrypts{old}")]
    if has_open_permissions(path):
        lines.append(("warn", f"other users of the system can read {path}: run `chmod 600 {path}`"))
    return lines


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
    """Lines about the work of servers. The schema must be current."""
    lines = await _backlog_lines(db)
    webhooks = await count_unhealthy(db)
    if webhooks.failing:
        since = f"{webhooks.failing_since:%Y-%m-%dT%H:%M:%SZ}"
        lines.append(("warn", f"every attempt to {_endpoints(webhooks.failing)} fails, the first since {since}"))
    if webhooks.disabled:
        lines.append(("warn", f"{_endpoints(webhooks.disabled)} {_is(webhooks.disabled)} disabled after failures"))
    return lines


async def _backlog_lines(db: Database) -> list[Line]:
    """Reads the queue of events twice unless it is empty. In the meantime, a running server sequences some."""
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
    from plankeeper.server.webhook_process import POOL_SIZE as WEBHOOK_POOL_SIZE  # it imports the metrics

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
    """The folder of the database if it is on this machine, and if the role can see it."""
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
    """Clusters of root's data directories that no longer exist."""
    return [
        ("warn", f"{home} has a database whose data directory is gone: remove it with `rm -r {home}*`")
        for home in abandoned_homes()
    ]


_TIMEOUT = {"connect": 5.0, "read": 5.0, "write": 5.0, "pool": 5.0}  # seconds
_MISDIRECTED_REQUEST = 421


def proxy_lines(settings: Settings) -> list[Line]:
    """Lines about requests to the public URL, through any proxies. Without that URL, there are none."""
    url = settings.public_url
    if url is None:
        return []
    try:
        with httpcore.ConnectionPool(ssl_context=ssl.create_default_context()) as pool:
            health, sign_in = _get(pool, f"{url}/healthz"), _get(pool, f"{url}/console/sign-in")
            metrics = _get(pool, f"{url}/metrics")
            forged_metrics = _get(pool, f"{url}/metrics", _forged_headers(settings))
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        return [("warn", f"{url} can't be reached from here ({type(error).__name__}), so its proxy is not checked")]
    if health != 200:
        return [("warn", f"{url}/healthz responds with {health} instead of 200: does the proxy lead to a server?")]
    lines: list[Line] = []
    if sign_in == _MISDIRECTED_REQUEST:
        lines.append(("FAIL", f"the proxy of {url} doesn't pass on `Host` with its port, so the console rejects it"))
    if forged_metrics == 200 != metrics:
        text = f"the proxy of {url} passes on the `X-Forwarded-For` of clients, who can choose their address"
        lines.append(("FAIL", f"{text}: let it overwrite the header"))
    return lines or [("ok", f"{url} leads to a server, with the headers that it requires")]


def _forged_headers(settings: Settings) -> Mapping[str, str]:
    """The address of a client that may read the metrics."""
    network = next(iter(settings.metrics_networks), None)
    return {"X-Forwarded-For": str(network.network_address)} if network else {}


def _get(pool: httpcore.ConnectionPool, url: str, headers: Mapping[str, str] | None = None) -> int:
    """The status of the response."""
    sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return pool.request("GET", url, headers=sent, extensions={"timeout": _TIMEOUT}).status
