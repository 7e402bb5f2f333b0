"""`plankeeper serve`: the server with its worker processes, and the embedded PostgreSQL if no database is named."""

import os
import socket
from collections.abc import Callable, Sequence
from contextlib import nullcontext
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

import click

from plankeeper.access.accounts.passwords import LOCK_FILE_VARIABLE
from plankeeper.cli.context import (
    delay_signals,
    embedded_cluster,
    embedded_pool_size,
    load_settings,
    owner_dsn,
    prepare_embedded,
    require_schema,
    run,
    serve_metrics,
    serving_dsn,
)
from plankeeper.cli.documentation import DocumentationBuild
from plankeeper.cli.privileges import require_privileges
from plankeeper.cli.secret_keys import key_file_warnings, prepare_embedded_keys
from plankeeper.cli.single_sign_on import require_public_url
from plankeeper.cli.startup import (
    address_warnings,
    changed_settings,
    errors_as_log_lines,
    is_for_people,
    log_start,
    progress_writer,
    warn,
)
from plankeeper.core.errors import DomainError
from plankeeper.core.server_folder import ServerFolder
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.server.embedded_postgres.cluster import Cluster

if TYPE_CHECKING:
    import uvicorn

_ADDRESS_PLACEHOLDER = "{address}"


@click.command()
@click.option("--host", help="The address to listen on (PLANKEEPER_HOST, then 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on (PLANKEEPER_PORT, then 8000).")
@click.option(
    "--workers", type=click.IntRange(1, 512), help="Worker processes (PLANKEEPER_WORKERS, then one per core)."
)
@click.option("--demo", is_flag=True, help="Load sample data once, and print its sign-in and key.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="The folder of the embedded PostgreSQL (PLANKEEPER_DATA_DIR).",
)
@click.option(
    "--no-webhook-worker",
    is_flag=True,
    help="Don't send webhooks; run `plankeeper webhook-worker` instead (PLANKEEPER_WEBHOOK_WORKER=off).",
)
@click.option("--build-docs", is_flag=True, help="In a checkout, build the documentation site while the server runs.")
def serve(
    host: str | None,
    port: int | None,
    workers: int | None,
    demo: bool,
    data_dir: Path | None,
    no_webhook_worker: bool,
    build_docs: bool,
) -> None:
    """Serve the API and the console until Ctrl-C or SIGTERM. Requests in progress have up to 10 s to finish."""
    overrides = {
        "PLANKEEPER_HOST": host,
        "PLANKEEPER_PORT": port,
        "PLANKEEPER_WORKERS": workers,
        "PLANKEEPER_DATA_DIR": data_dir,
        "PLANKEEPER_WEBHOOK_WORKER": "off" if no_webhook_worker else None,
    }
    os.environ.update({name: str(value) for name, value in overrides.items() if value is not None})
    if demo:
        _allow_webhooks_to_loopback()
    for_people = is_for_people(demo=demo)
    with errors_as_log_lines(enabled=not for_people):
        build = DocumentationBuild() if build_docs else None
        _run(load_settings(), build, demo=demo, for_people=for_people)


def _run(settings: Settings, build: DocumentationBuild | None, *, demo: bool, for_people: bool) -> None:
    changed = changed_settings()
    with bind_socket(settings) as sock, embedded_cluster(settings, creates=True) as cluster, ServerFolder() as folder:
        dsn = serving_dsn(settings, cluster)
        lines = run(partial(_prepare, settings, cluster, demo=demo, for_people=for_people))
        if cluster and cluster.note:
            lines = [cluster.note, *lines]
        # The worker processes read their settings from the environment.
        os.environ["PLANKEEPER_DATABASE_URL"] = dsn
        if settings.secret_key_path:
            os.environ["PLANKEEPER_SECRET_KEY_FILE"] = str(settings.secret_key_path.absolute())
        if settings.storage_url:
            os.environ["PLANKEEPER_DOCUMENTS_URL"] = settings.storage_url
        if cluster:
            os.environ["PLANKEEPER_POOL_SIZE"] = str(embedded_pool_size(settings))
        os.environ[LOCK_FILE_VARIABLE] = str(folder.path / "passwords.lock")
        announce = partial(_announce, settings, changed, lines if for_people else None, sock, build)
        with build or nullcontext():
            _serve(settings, sock, cluster, folder, announce)


def _allow_webhooks_to_loopback() -> None:
    """Allow webhooks to the same machine, for an evaluation of Plankeeper."""
    name = "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS"
    os.environ[name] = ",".join(filter(None, [os.environ.get(name, ""), "127.0.0.0/8", "::1"]))


async def _prepare(settings: Settings, cluster: Cluster | None, *, demo: bool, for_people: bool) -> list[str]:
    """Migrate an embedded database, check the role and the secret keys, and load the sample data of `--demo`.

    Returns the lines to print once the server is ready.
    """
    if cluster:
        await prepare_embedded(cluster, progress_writer(for_people=for_people))
    async with Database(serving_dsn(settings, cluster), pool_size=2, statement_timeout=600).open() as db:
        await require_schema(db)
        await require_public_url(db, settings)
        warnings = await prepare_embedded_keys(db, settings) if cluster else key_file_warnings(settings)
        warnings = [*address_warnings(settings), *await require_privileges(db), *warnings]
        for each in [*Settings.unknown_variables(), *warnings]:
            warn(each, for_people=for_people)
        if not demo:
            return []
        return await _prepare_demo(db, settings, cluster)


async def _prepare_demo(db: Database, settings: Settings, cluster: Cluster | None) -> list[str]:
    """Load the sample data. Returns the lines to print."""
    from plankeeper.cli.demo import add_demo_catalogue, add_demo_documents, load_demo_data
    from plankeeper.cli.demo_claims import add_demo_claims
    from plankeeper.cli.demo_month_end import add_demo_month_end

    problems: list[str] = []
    async with Database(owner_dsn(settings, cluster), pool_size=1, statement_timeout=600).open() as owner_db:
        if not await add_demo_catalogue(owner_db, settings):
            problems.append(f"Catalogue:      none. {_NO_OWNER}")
    credentials = await load_demo_data(db, settings, settings.data_dir if cluster else None)
    try:
        await add_demo_documents(db, settings)
    except DomainError as error:
        problems.append(f"Documents:      none. {error.detail}")
    try:
        await add_demo_claims(db, settings)
    except DomainError as error:
        problems.append(f"Claims:         none. {error.detail}")
    try:
        await add_demo_month_end(db, settings)
    except DomainError as error:
        problems.append(f"Month end:      none. {error.detail}")
    return _demo_lines(*credentials, problems)


_NO_OWNER = "Set PLANKEEPER_OWNER_DATABASE_URL to the address with the role that owns the tables."


def _demo_lines(
    plan_manager_id: UUID, name: str, key: str, email: str, password: str, problems: Sequence[str]
) -> list[str]:
    """The lines that explain how to sign in and call the API. `{address}` is replaced once the socket is open.

    `problems` say what is missing in the sample data.
    """
    curl = (
        f"curl -H 'Authorization: Bearer {key}' -H 'X-Plan-Manager-Id: {plan_manager_id}'"
        f" '{_ADDRESS_PLACEHOLDER}/api/public/v1/participants?limit=3'"
    )
    return [
        f"Sign-in:        {email}, password {password}",
        f"Plan manager:   {plan_manager_id} ({name})",
        f"API key:        {key}",
        *problems,
        "",
        curl,
        "",
    ]


def _announce(
    settings: Settings,
    changed: dict[str, str],
    lines: list[str] | None,
    sock: socket.socket,
    build: DocumentationBuild | None,
) -> None:
    """Announce that the server is ready: with lines for people, or for None with a log line. Start `--build-docs`."""
    host, port = sock.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    if lines is None:
        log_start("the server is started", settings, changed, workers=settings.workers, address=address)
    else:
        if settings.public_url:
            click.echo(f"Listening on:   {address}")
        click.echo(f"Documentation:  {settings.public_url or address}/docs")
        click.echo(f"Console:        {settings.public_url or address}/console")
        for line in lines:
            click.echo(line.replace(_ADDRESS_PLACEHOLDER, address))
        click.echo("Plankeeper is ready. Press Ctrl-C to stop.")
    if build:
        build.start()


def _serve(
    settings: Settings, sock: socket.socket, cluster: Cluster | None, folder: ServerFolder, announce: Callable[[], None]
) -> None:
    with delay_signals():  # until the supervisor handles them
        from plankeeper.core import logs
        from plankeeper.server.supervisor import Supervisor, WebhookProcess

        config = _uvicorn_config(settings)
    logs.configure(settings.log_level, in_background=True)
    if settings.metrics_port is not None:
        serve_metrics(settings.host, settings.metrics_port)
    webhook_process = WebhookProcess(enabled=settings.webhook_worker)
    Supervisor(config, sock, cluster, folder, webhook_process, announce, drain_delay=settings.drain_delay).run()


def _uvicorn_config(settings: Settings) -> "uvicorn.Config":
    import uvicorn

    from plankeeper.http.connections import IDLE_TIMEOUT
    from plankeeper.server.supervisor import DRAIN_SECONDS

    return uvicorn.Config(
        "plankeeper.server.app:create_app",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        timeout_keep_alive=IDLE_TIMEOUT,
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        lifespan="on",
        ws="none",
        http="plankeeper.http.connections:LimitedHttpProtocol",
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )


def bind_socket(settings: Settings) -> socket.socket:
    """The socket of the server. The first worker that is ready listens on it: until then, the system rejects
    connections, and a proxy takes another server at once.
    """
    sock = socket.socket(socket.AF_INET6 if ":" in settings.host else socket.AF_INET)
    try:
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        if sock.family == socket.AF_INET6:
            sock.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
        sock.bind((settings.host, settings.port))
    except OSError as error:
        sock.close()
        raise click.ClickException(
            f"Cannot listen on {settings.host} port {settings.port}: {os.strerror(error.errno or 0)}."
            " Choose another with --port or PLANKEEPER_PORT, or with `make run PORT=8001`."
        ) from None
    return sock
