"""The composition root of the process that sends webhooks; nothing else."""

import asyncio
import os
import signal
from concurrent.futures import ThreadPoolExecutor

from plankeeper import background, logs
from plankeeper.database.client import Database
from plankeeper.settings import Settings
from plankeeper.webhooks.client import WebhookClient
from plankeeper.webhooks.cpu_backoff import CpuBackoff
from plankeeper.webhooks.worker import Worker

NAMES_AT_ONCE = 64  # threads that wait for answers to questions for names: a slow server of names delays few
POOL_SIZE = 4
NICE = 10


def beside_a_server() -> None:
    """The main of the process that `serve` starts: requests go before webhooks where there is too little for both."""
    import uvloop

    os.nice(NICE)
    logs.set_up()
    uvloop.run(_until_parent_ends(Settings.read()))


async def _until_parent_ends(settings: Settings) -> None:
    background.stop_with_parent()
    await deliver(settings, CpuBackoff())


async def deliver(settings: Settings, manners: CpuBackoff | None = None) -> None:
    """Send webhooks until SIGTERM or SIGINT; what is being sent then is finished."""
    loop = asyncio.get_running_loop()
    loop.set_default_executor(ThreadPoolExecutor(NAMES_AT_ONCE, "names"))
    db = Database(settings.database_url or "", pool_size=POOL_SIZE, statement_timeout=settings.statement_timeout)
    sender = WebhookClient(settings.webhook_allowed_networks)
    worker = Worker(db, sender, settings, cpu_backoff=manners)
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, worker.stopping.set)
    async with db.opened():
        sequencing = asyncio.create_task(background.sequence(db, settings))
        try:
            await worker.run()
        finally:
            sequencing.cancel()
            await asyncio.gather(sequencing, return_exceptions=True)
            await sender.close()
