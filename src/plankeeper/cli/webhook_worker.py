"""`plankeeper webhook-worker`: sends webhooks, on any number of machines."""

from dataclasses import replace

import click

from plankeeper.cli.context import embedded_cluster, load_settings, require_schema, run, serve_metrics
from plankeeper.cli.secret_keys import key_file_warnings
from plankeeper.database.client import Database
from plankeeper.settings import Settings


@click.command()
def webhook_worker() -> None:
    """Send webhooks until Ctrl-C or SIGTERM. Deliveries in progress have up to 10 s to finish.

    `serve` starts a webhook worker too, except with `--no-webhook-worker`.
    """
    import uvloop

    settings = load_settings()
    with embedded_cluster(settings) as cluster:
        # The key file is the one beside the embedded database.
        embedded = {"database_url": cluster.dsn, "secret_key_file": settings.secret_key_path} if cluster else {}
        worker_settings = replace(settings, **embedded)
        run(_run_worker(worker_settings, embedded=cluster is not None), uvloop.new_event_loop)


async def _run_worker(settings: Settings, *, embedded: bool) -> None:
    from plankeeper import logs
    from plankeeper.webhooks.process import run_webhook_worker

    dsn = settings.database_url or ""
    async with Database(dsn, pool_size=1, statement_timeout=600).open() as db:
        await require_schema(db, dsn, embedded=embedded)
    for each in key_file_warnings(settings):
        click.echo(f"Warning: {each}", err=True)
    if settings.metrics_port is not None:
        serve_metrics(settings.host, settings.metrics_port)
    click.echo("The webhook worker is ready. Press Ctrl-C to stop.")
    logs.configure(settings.log_level)
    await run_webhook_worker(settings)
