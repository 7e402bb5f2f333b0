"""`plankeeper listen`: prints events as they happen, and forwards them to a webhook receiver under development."""

import asyncio
import time
from typing import NoReturn
from urllib.parse import urlsplit
from uuid import UUID

import click

from plankeeper.cli.context import require_plan_manager, with_database
from plankeeper.cli.parameter_types import UUID_TYPE
from plankeeper.database.client import Database
from plankeeper.events import store
from plankeeper.events.schemas import Event
from plankeeper.events.store import FeedPage
from plankeeper.settings import Settings
from plankeeper.webhooks.client import AttemptResult, WebhookClient
from plankeeper.webhooks.payload import build_body, build_headers
from plankeeper.webhooks.schemas import PayloadFormat
from plankeeper.webhooks.signing import new_secret, validate_secret
from plankeeper.webhooks.url_policy import ANY_NETWORK

POLL_INTERVAL = 0.25  # seconds between two reads of the event feed
PAGE_SIZE = 100


class Forwarder(WebhookClient):
    """A webhook client without the address policy: the target is usually the developer's own machine."""

    def __init__(self) -> None:
        super().__init__(ANY_NETWORK)

    def validate_url(self, url: str) -> str | None:
        return _validate_url(url)


def _validate_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        is_valid = False
    return None if is_valid else "must be an http:// or https:// URL with a host"


@click.command()
@click.option(
    "--plan-manager", "plan_manager_id", type=UUID_TYPE, required=True, help="The plan manager whose events to print."
)
@click.option(
    "--forward-to", "url", help="A URL to forward each event to, signed as a webhook; http and localhost are allowed."
)
@click.option(
    "--payload", type=click.Choice(["thin", "full"]), default="thin", show_default=True, help="The payload format."
)
@click.option("--secret", help="The secret to sign with, `whsec_...`; by default, a new one is created and printed.")
def listen(plan_manager_id: UUID, url: str | None, payload: PayloadFormat, secret: str | None) -> None:
    """Print events as they happen until Ctrl-C, and optionally forward them as signed webhooks.

    Use it to develop a webhook receiver. It stores nothing and doesn't retry; webhook endpoints do.
    """
    if url and (error := _validate_url(url)):
        raise click.BadParameter(error, param_hint="--forward-to")
    if secret and (error := validate_secret(secret)):
        raise click.BadParameter(error, param_hint="--secret")

    async def work(db: Database, _settings: Settings) -> None:
        await require_plan_manager(db, plan_manager_id)
        signing_secret = secret or new_secret()
        if url:
            click.echo(f"Signed with the secret {signing_secret}")
        await _follow(db, plan_manager_id, url, signing_secret, payload)

    with_database(work)


async def _follow(
    db: Database, plan_manager_id: UUID, url: str | None, secret: str, payload: PayloadFormat
) -> NoReturn:
    cursor = str(await store.latest_id(db, plan_manager_id) or UUID(int=0))
    click.echo("Listening for events. Press Ctrl-C to stop.")
    sender = Forwarder()
    while True:
        events = await store.list_page(db, plan_manager_id, FeedPage(cursor), None, PAGE_SIZE)
        for event in events:
            cursor = str(event.id)
            line = f"{event.created_at.astimezone():%H:%M:%S}  {event.type}  {event.resource.id}"
            if url:
                line += f"  {_format_result(await _forward(sender, url, plan_manager_id, event, secret, payload))}"
            click.echo(line)
        if not events:
            await asyncio.sleep(POLL_INTERVAL)


async def _forward(
    sender: WebhookClient, url: str, plan_manager_id: UUID, event: Event, secret: str, payload: PayloadFormat
) -> AttemptResult:
    body = build_body(event, plan_manager_id, payload)
    return await sender.post(url, build_headers(str(event.id), int(time.time()), body, [secret]), body)


def _format_result(result: AttemptResult) -> str:
    return f"{result.error or result.status_code} ({result.duration_ms} ms)"
