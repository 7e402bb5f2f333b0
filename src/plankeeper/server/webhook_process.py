"""The entry point of the webhook worker's process."""

import asyncio
import os
import signal
import sys
from collections.abc import Callable

from plankeeper.core import logs
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.server import background
from plankeeper.server.metrics import watch_process
from plankeeper.server.monitoring import log_slow_statements
from plankeeper.server.telemetry import setup
from plankeeper.webhooks.client import RESOLVER_OPTIONS, WebhookClient
from plankeeper.webhooks.worker import Worker

POOL_SIZE = 4
NICENESS = 10


def run_as_sidecar() -> None:
    """The main function of the process that `serve` starts. It has a lower priority than the API."""
    import uvloop

    os.nice(NICENESS)
    settings = Settings.read()
    logs.configure(settings.log_level, in_background=True)
    try:
        uvloop.run(_run_until_parent_exits(settings))
    except Exception:  # noqa: BLE001 - multiprocessing would print the traceback with the text of the exception
        logs.log.exception("the webhook worker failed")
        sys.exit(1)


async def _run_until_parent_exits(settings: Settings) -> None:
    background.exit_with_parent()
    background.report_lost_connections_once()
    await run_webhook_worker(settings)


async def run_webhook_worker(settings: Settings, on_start: Callable[[], None] = lambda: None) -> None:
    """Send webhooks until SIGTERM or SIGINT, then finish the attempts in flight.

    `on_start` is called once the signals are handled: an operator who sees the announcement can stop the worker.
    """
    loop = asyncio.get_running_loop()
    os.environ.setdefault("RES_OPTIONS", RESOLVER_OPTIONS)
    db = Database(
        settings.database_url or "",
        pool_size=POOL_SIZE,
        statement_timeout=settings.statement_timeout,
        on_statement=log_slow_statements(settings.slow_statements),
    )
    client = WebhookClient(settings.webhook_allowed_networks)
    telemetry = setup.start(settings)
    traces = telemetry.trace_webhooks() if telemetry else None
    worker = Worker(db, client, settings, traces=traces)
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, worker.stopping.set)
    on_start()
    async with db.open():
        coroutines = [
            background.run_background_tasks(db, settings),
            watch_process("webhook"),
            *([traces.listen(db)] if traces else []),
        ]
        tasks = [asyncio.create_task(each) for each in coroutines]
        try:
            await worker.run()
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await client.close()
            if telemetry:
                await telemetry.close()
