"""`plankeeper serve`: the server with its workers, and with the embedded database where there is no other."""

import os
import socket
from pathlib import Path
from tempfile import TemporaryDirectory
from uuid import UUID

import click

from plankeeper.cli.context import embedded_cluster, load_settings, require_schema, run
from plankeeper.database.client import Database
from plankeeper.embedded_postgres.cluster import Cluster
from plankeeper.settings import Settings

_ADDRESS_PLACEHOLDER = "{address}"
# Connections that an embedded cluster has for workers; the rest is for the command line.
_EMBEDDED_CONNECTIONS = 80


@click.command()
@click.option("--host", help="The address to listen on (PLANKEEPER_HOST, else 127.0.0.1).")
@click.option("--port", type=click.IntRange(0, 65535), help="The port to listen on (PLANKEEPER_PORT, else 8000).")
@click.option("--workers", type=click.IntRange(1, 512), help="Worker processes (PLANKEEPER_WORKERS, else one a core).")
@click.option("--demo", is_flag=True, help="Fill in demonstration data once, and print a key for it.")
@click.option(
    "--data-dir",
    type=click.Path(path_type=Path),
    help="The embedded database's folder (PLANKEEPER_DATA_DIR).",
)
@click.option(
    "--no-webhook-worker",
    is_flag=True,
    help="Send no webhooks: `plankeeper webhook-worker` does (PLANKEEPER_WEBHOOK_WORKER=off).",
)
def serve(
    host: str | None, port: int | None, workers: int | None, demo: bool, data_dir: Path | None, no_webhook_worker: bool
) -> None:
    """Serve the API until Ctrl-C or SIGTERM. Requests in flight are finished first, for up to 10 s."""
    overrides = {
        "PLANKEEPER_HOST": host,
        "PLANKEEPER_PORT": port,
        "PLANKEEPER_WORKERS": workers,
        "PLANKEEPER_DATA_DIR": data_dir,
        "PLANKEEPER_WEBHOOK_WORKER": "off" if no_webhook_worker else None,
    }
    os.environ.update({name: str(value) for name, value in overrides.items() if value is not None})
    settings = load_settings()
    with embedded_cluster(settings) as cluster:
        dsn = cluster.dsn if cluster else settings.database_url or ""
        lines = run(_prepare(settings, dsn, embedded=cluster is not None, demo=demo))
        if cluster and cluster.note:
            lines = [cluster.note, *lines]
        # The workers read their settings from the environment, as every program does.
        os.environ["PLANKEEPER_DATABASE_URL"] = dsn
        if cluster:
            pool_size = max(2, _EMBEDDED_CONNECTIONS // settings.workers - 3)
            os.environ["PLANKEEPER_POOL_SIZE"] = str(min(settings.pool_size, pool_size))
        with TemporaryDirectory(prefix="plankeeper-metrics-") as folder:
            os.environ["PROMETHEUS_MULTIPROC_DIR"] = folder  # the workers' figures, for whichever is asked
            _serve(settings, cluster, lines)


async def _prepare(settings: Settings, dsn: str, *, embedded: bool, demo: bool) -> list[str]:
    """Bring the schema up to date and fill in what `--demo` asks for; answers what to tell the user."""
    async with Database(dsn, pool_size=2, statement_timeout=600).open() as db:
        await require_schema(db, dsn, embedded=embedded)
        if not demo:
            return []
        from plankeeper.cli.demo import load_demo_data

        credentials = await load_demo_data(db, settings)
        return _demo_lines(*credentials)


def _demo_lines(plan_manager_id: UUID, name: str, key: str, email: str, password: str) -> list[str]:
    """What to tell of the demonstration; `{address}` is known once the socket is open."""
    curl = (
        f"curl -H 'Authorization: Bearer {key}' -H 'X-Plan-Manager-Id: {plan_manager_id}'"
        f" '{_ADDRESS_PLACEHOLDER}/api/public/v1/participants?limit=3'"
    )
    return [
        f"Sign-in:        {email}, password {password}",
        f"Plan manager:   {plan_manager_id} ({name})",
        f"API key:        {key}",
        "",
        curl,
        "",
    ]


def _serve(settings: Settings, cluster: Cluster | None, lines: list[str]) -> None:
    import uvicorn

    from plankeeper import logs
    from plankeeper.cli.supervisor import DRAIN_SECONDS, Supervisor, WebhookProcess

    logs.configure()
    config = uvicorn.Config(
        "plankeeper.app:create_app",
        factory=True,
        host=settings.host,
        port=settings.port,
        workers=settings.workers,
        timeout_graceful_shutdown=DRAIN_SECONDS,
        access_log=False,
        log_config=None,
        server_header=False,
        date_header=True,
        lifespan="on",
        ws="none",
        http="plankeeper.http.uvicorn_protocol:LimitedHttpProtocol",
        proxy_headers=bool(settings.trusted_proxies),
        forwarded_allow_ips=list(settings.trusted_proxies),
    )
    sock = _listen(settings)
    if settings.metrics_port is not None:
        _serve_metrics(settings.host, settings.metrics_port)
    Supervisor(
        config, sock, cluster, WebhookProcess(enabled=settings.webhook_worker), lambda: _announce(sock, lines)
    ).run()


def _serve_metrics(host: str, port: int) -> None:
    from prometheus_client import start_http_server

    from plankeeper import metrics

    try:
        start_http_server(port, host, metrics.registry())
    except OSError as error:
        raise click.ClickException(
            f"Cannot listen on {host} port {port} for metrics: {error.strerror}."
            " Choose another with PLANKEEPER_METRICS_PORT."
        ) from None


def _listen(settings: Settings) -> socket.socket:
    try:
        family = socket.AF_INET6 if ":" in settings.host else socket.AF_INET
        return socket.create_server((settings.host, settings.port), family=family, backlog=2048)
    except OSError as error:
        raise click.ClickException(
            f"Cannot listen on {settings.host} port {settings.port}: {error.strerror}. Choose another with --port."
        ) from None


def _announce(sock: socket.socket, lines: list[str]) -> None:
    host, port = sock.getsockname()[:2]
    address = f"http://{f'[{host}]' if ':' in host else host}:{port}"
    click.echo(f"Documentation:  {address}/docs")
    click.echo(f"Console:        {address}/console")
    for line in lines:
        click.echo(line.replace(_ADDRESS_PLACEHOLDER, address))
    click.echo("Plankeeper is ready. Ctrl-C stops it.")
