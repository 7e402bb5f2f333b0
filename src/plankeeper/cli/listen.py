"""`plankeeper listen`: events as they happen, and forwarded to a receiver that is being developed."""

import asyncio
import time
from typing import NoReturn
from urllib.parse import urlsplit
from uuid import UUID

import click

from plankeeper.cli.context import UUID_TYPE, require_plan_manager, with_database
from plankeeper.database.client import Database
from plankeeper.events import store
from plankeeper.events.schemas import Event
from plankeeper.settings import Settings
from plankeeper.webhooks import payload as messages
from plankeeper.webhooks.client import Outcome, Sender
from plankeeper.webhooks.policy import EVERYWHERE, fault_of_secret, new_secret
from plankeeper.webhooks.schemas import Payload

PERIOD = 0.25  # seconds between two looks at the feed
PAGE = 100


class Forwarder(Sender):
    """Sends wherever its user says: the user's own machine is the usual place."""

    def __init__(self) -> None:
        super().__init__(EVERYWHERE)

    def fault(self, url: str) -> str | None:
        return _fault(url)


def _fault(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        named = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0
    except ValueError:
        named = False
    return None if named else "must begin with http:// or https://, and name a host"


@click.command()
@click.option("--plan-manager", "plan_manager_id", type=UUID_TYPE, required=True, help="Whose events.")
@click.option("--forward-to", "url", help="Where to send each event, signed as a webhook; http and localhost too.")
@click.option("--payload", type=click.Choice(["thin", "full"]), default="thin", help="What is sent (thin).")
@click.option("--secret", help="What to sign with: `whsec_...`. Without it one is made, and printed.")
def listen(plan_manager_id: UUID, url: str | None, payload: Payload, secret: str | None) -> None:
    """Print events as they happen until Ctrl-C, and forward them: for developing a receiver of webhooks.

    It keeps nothing and tries nothing twice: that is what webhook endpoints are for.
    """
    if url and (fault := _fault(url)):
        raise click.BadParameter(f"it {fault}", param_hint="--forward-to")
    if secret and (fault := fault_of_secret(secret)):
        raise click.BadParameter(f"it {fault}", param_hint="--secret")

    async def work(db: Database, _found: Settings) -> None:
        await require_plan_manager(db, plan_manager_id)
        key = secret or new_secret()
        if url:
            click.echo(f"Signed with the secret {key}")
        await _follow(db, plan_manager_id, url, key, payload)

    with_database(work)


async def _follow(db: Database, plan_manager_id: UUID, url: str | None, secret: str, payload: Payload) -> NoReturn:
    last = str(await store.newest(db, plan_manager_id) or UUID(int=0))
    click.echo("Listening. Ctrl-C stops it.")
    sender = Forwarder()
    while True:
        events = await store.page(db, plan_manager_id, last, None, PAGE)
        for event in events:
            last = str(event.id)
            line = f"{event.created_at.astimezone():%H:%M:%S}  {event.type}  {event.resource.id}"
            if url:
                line += f"  {_came(await _forward(sender, url, plan_manager_id, event, secret, payload))}"
            click.echo(line)
        if not events:
            await asyncio.sleep(PERIOD)


async def _forward(sender: Sender, url: str, owner: UUID, event: Event, secret: str, payload: Payload) -> Outcome:
    about = event.resource
    body = messages.body_of(event.type, event.created_at, owner, about.kind, about.id, payload, event.data)
    return await sender.post(url, messages.headers_of(str(event.id), int(time.time()), body, [secret]), body)


def _came(outcome: Outcome) -> str:
    return f"{outcome.error or outcome.status} ({outcome.milliseconds} ms)"
