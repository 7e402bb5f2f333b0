"""`plankeeper webhook-worker`: sends webhooks, on any number of machines."""

from dataclasses import replace
from functools import partial

import click

from plankeeper.cli.context import (
    embedded_cluster,
    load_settings,
    prepare_embedded,
    require_schema,
    run,
    serve_metrics,
)
from plankeeper.cli.privileges import require_privileges
from plankeeper.cli.secret_keys import key_file_warnings
from plankeeper.cli.startup import (
    changed_settings,
    errors_as_log_lines,
    is_for_people,
    log_start,
    progress_writer,
    warn,
)
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.server.embedded_postgres.cluster import Cluster


@click.command()
def webhook_worker() -> None:
    """Send webhooks until Ctrl-C or SIGTERM. Deliveries in progress have up to 10 s to finish.

    `serve` starts a webhook worker too, except with `--no-webhook-worker`.
    """
    for_people = is_for_people()
    with errors_as_log_lines(enabled=not for_people):
        settings = load_settings()
        with embedded_cluster(settings) as cluster:
            changed = _with_address(settings, cluster)
            run(partial(_run_worker, settings, changed, cluster, for_people=for_people))


def _with_address(settings: Settings, cluster: Cluster | None) -> Settings:
    """The settings with the address of the embedded database, and the key file and the documents beside it."""
    if cluster is None:
        return settings
    return replace(
        settings,
        database_url=cluster.dsn,
        secret_key_file=settings.secret_key_path,
        documents_url=settings.storage_url,
    )


async def _run_worker(chosen: Settings, settings: Settings, cluster: Cluster | None, *, for_people: bool) -> None:
    """`chosen` are the settings of the operator, without the address of the embedded database."""
    from plankeeper.core import logs
    from plankeeper.server.webhook_process import run_webhook_worker

    if cluster:
        await prepare_embedded(cluster, progress_writer(for_people=for_people))
    async with Database(settings.database_url or "", pool_size=1, statement_timeout=600).open() as db:
        await require_schema(db)
        warnings = await require_privileges(db)
    for each in [*Settings.unknown_variables(), *warnings, *key_file_warnings(settings)]:
        warn(each, for_people=for_people)
    if settings.metrics_port is not None:
        serve_metrics(settings.host, settings.metrics_port)
    logs.configure(settings.log_level, in_background=True)

    def announce() -> None:
        if for_people:
            click.echo("The webhook worker is ready. Press Ctrl-C to stop.")
        else:
            log_start("the webhook worker is started", chosen, changed_settings())

    await run_webhook_worker(settings, announce)
