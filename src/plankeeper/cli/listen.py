"""`plankeeper listen`: prints events as they happen, and forwards them to a webhook receiver under development."""

import asyncio
import os
import ssl
import time
from collections.abc import Sequence
from contextlib import aclosing, suppress
from functools import partial
from typing import Any, cast
from urllib.parse import urlencode, urlsplit
from uuid import UUID

import click
import httpcore
import msgspec
from msgspec import Raw

from plankeeper.cli.context import run_until_signal
from plankeeper.cli.parameter_types import UUID_TYPE
from plankeeper.core.errors import Error
from plankeeper.core.json import to_json
from plankeeper.core.lists import Page
from plankeeper.events.schemas import Event
from plankeeper.http.routing import PREFIX
from plankeeper.webhooks.client import AttemptResult, WebhookClient, parse_retry_after
from plankeeper.webhooks.messages import build_body, build_headers, new_secret, validate_secret
from plankeeper.webhooks.schemas import PayloadFormat
from plankeeper.webhooks.url_policy import ANY_NETWORK

POLL_INTERVAL = 1.0  # seconds between two reads of the event feed
RETRY_INTERVAL = 5.0  # seconds until a failed request is sent again, unless the server asks for another time
MAX_RETRY_INTERVAL = 60.0
REQUEST_TIMEOUT = 30.0
PAGE_SIZE = 100


class Forwarder(WebhookClient):
    """A webhook client without the address policy: the target is usually the developer's own machine."""

    def __init__(self) -> None:
        super().__init__(ANY_NETWORK)

    def validate_url(self, url: str) -> str | None:
        return _validate_url(url)


class ServerUnavailableError(Exception):
    """The server doesn't respond, or asks to try again later. `retry_after` is in seconds."""

    def __init__(self, reason: str, retry_after: float | None = None) -> None:
        super().__init__(reason)
        self.retry_after = retry_after


class EventFeed:
    """Reads the event feed of a plan manager over HTTP."""

    def __init__(self, url: str, key: str, plan_manager_id: UUID, types: Sequence[str]) -> None:
        self.plan_manager_id = plan_manager_id
        self._url = url
        self._query = {"limit": str(PAGE_SIZE)} | ({"type": ",".join(types)} if types else {})
        self._headers = [
            ("Host", urlsplit(url).netloc.rpartition("@")[2]),
            ("Authorization", f"Bearer {key}"),
            ("X-Plan-Manager-Id", str(plan_manager_id)),
        ]
        self._pool = httpcore.AsyncConnectionPool(
            ssl_context=ssl.create_default_context(),
            max_connections=1,
            network_backend=cast("Any", httpcore).AnyIOBackend(),
        )

    async def aclose(self) -> None:
        await self._pool.aclose()

    async def read(self, after: str) -> Page[Event]:
        """The page after a cursor. Raises ServerUnavailableError, or ClickException if trying again doesn't help."""
        url = f"{self._url}/events?{urlencode({'after': after} | self._query)}"
        try:
            async with asyncio.timeout(REQUEST_TIMEOUT):
                response = await self._pool.request("GET", url, headers=self._headers)
        except TimeoutError:
            raise ServerUnavailableError(f"{self._url} didn't respond within {REQUEST_TIMEOUT:g} s") from None
        except (OSError, UnicodeError, httpcore.NetworkError, httpcore.ProtocolError) as error:
            raise ServerUnavailableError(f"cannot connect to {self._url}: {_describe(error)}") from None
        if response.status != 200:
            raise _build_error(response)
        try:
            page = msgspec.json.decode(response.content, type=Page[Raw])
            return Page([_decode_event(each) for each in page.data], page.pagination)
        except (msgspec.DecodeError, UnicodeError, KeyError):
            raise click.ClickException(
                f"The response of {self._url} is not a page of events."
                " --url must be the address of a Plankeeper server."
            ) from None


@click.command()
@click.option(
    "--url",
    "server_url",
    envvar="BASE",
    show_envvar=True,
    default="http://127.0.0.1:8000",
    show_default=True,
    help="The address of the server or of its API.",
)
@click.option("--key", envvar="KEY", show_envvar=True, required=True, help="An API key with the scope read.")
@click.option(
    "--plan-manager",
    "plan_manager_id",
    type=UUID_TYPE,
    envvar="PLAN_MANAGER",
    show_envvar=True,
    required=True,
    help="The plan manager whose events to print.",
)
@click.option(
    "--type", "types", multiple=True, help="Only events of this type, such as participant.*; can be used several times."
)
@click.option(
    "--forward-to",
    "target_url",
    help="A URL to forward each event to, signed as a webhook; http and localhost are allowed.",
)
@click.option(
    "--payload", type=click.Choice(["thin", "full"]), default="thin", show_default=True, help="The payload format."
)
@click.option("--secret", help="The secret to sign with, `whsec_...`; by default, a new one is created and printed.")
def listen(
    server_url: str,
    key: str,
    plan_manager_id: UUID,
    types: Sequence[str],
    target_url: str | None,
    payload: PayloadFormat,
    secret: str | None,
) -> None:
    """Print events as they happen until Ctrl-C, and optionally forward them as signed webhooks.

    Use it to develop a webhook receiver. It reads the event feed of a server over HTTP and requires neither the
    server's settings nor its database. It stores nothing and doesn't send a message twice; webhook endpoints do.
    """
    for name, value in (("--url", server_url), ("--forward-to", target_url)):
        if value and (error := _validate_url(value)):
            raise click.BadParameter(error, param_hint=name)
    if not key.isascii() or not key.isprintable():
        raise click.BadParameter("must be an API key, plk_...", param_hint="--key")
    if secret and (error := validate_secret(secret)):
        raise click.BadParameter(error, param_hint="--secret")
    feed = EventFeed(_api_url(server_url), key, plan_manager_id, types)
    run_until_signal(partial(_follow, feed, target_url, secret or new_secret(), payload))


def _validate_url(url: str) -> str | None:
    try:
        parts = urlsplit(url)
        is_valid = parts.scheme in ("http", "https") and parts.hostname and parts.port != 0 and url.isascii()
    except ValueError:
        is_valid = False
    return None if is_valid else "must be an http:// or https:// URL with a host"


def _api_url(url: str) -> str:
    """The address of the API, from that of the API or of the server."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or PREFIX}"


async def _follow(feed: EventFeed, target_url: str | None, secret: str, payload: PayloadFormat) -> None:
    sender = Forwarder()
    async with aclosing(feed):
        page = await _read(feed, "now")
        if target_url:
            click.echo(f"Signed with the secret {secret}")
        click.echo("Listening for events. Press Ctrl-C to stop.")
        cursor = page.pagination.next_cursor
        while True:
            page = await _read(feed, cursor or "0")
            for event in page.data:
                line = f"{event.created_at.astimezone():%H:%M:%S}  {event.type}  {event.resource.id}"
                if target_url:
                    result = await _forward(sender, target_url, feed.plan_manager_id, event, secret, payload)
                    line += f"  {result.error or result.status_code} ({result.duration_ms} ms)"
                click.echo(line)
            cursor = page.pagination.next_cursor or cursor
            if not page.pagination.has_more:
                await asyncio.sleep(POLL_INTERVAL)


async def _read(feed: EventFeed, after: str) -> Page[Event]:
    """The page after a cursor, as soon as the server can be reached. Prints each reason to wait once."""
    last_reason = ""
    while True:
        try:
            return await feed.read(after)
        except ServerUnavailableError as error:
            if (reason := str(error)) != last_reason:
                click.echo(f"Trying again: {reason}.", err=True)
            last_reason = reason
            await asyncio.sleep(min(error.retry_after or RETRY_INTERVAL, MAX_RETRY_INTERVAL))


async def _forward(
    sender: WebhookClient, url: str, plan_manager_id: UUID, event: Event, secret: str, payload: PayloadFormat
) -> AttemptResult:
    body = build_body(event, plan_manager_id, payload)
    return await sender.post(url, build_headers(str(event.id), int(time.time()), body, [secret]), body)


def _decode_event(content: Raw) -> Event:
    """The event of a response, with `data` and `previous` as they are: msgspec doesn't decode Raw or null."""
    fields = msgspec.json.decode(content, type=dict[str, Raw])
    event = msgspec.json.decode(to_json(fields | {"data": None, "previous": None}), type=Event)
    event.data, event.previous = (
        None if bytes(fields[name]) == b"null" else fields[name] for name in ("data", "previous")
    )
    return event


def _build_error(response: httpcore.Response) -> Exception:
    """The error of a response that isn't a page: one to wait for, or the reason to stop."""
    code, detail = "", ""
    with suppress(msgspec.DecodeError, UnicodeError):  # the response of a proxy isn't JSON
        body = msgspec.json.decode(response.content, type=Error)
        fields = [f"{each.field} {each.message}" for each in body.errors or ()]
        code, detail = body.error, f": {'; '.join([body.detail.rstrip('.'), *fields])}"
    reason = f"the server responded with {response.status}{detail}"
    if response.status == 429 or response.status >= 500:
        headers = {name.lower(): value for name, value in response.headers}
        return ServerUnavailableError(reason, parse_retry_after(headers.get(b"retry-after")))
    hints = {
        401: " Set KEY or --key to a valid API key.",
        403: " The key must have the scope read, and access to the plan manager.",
        404: " --url must be the address of a Plankeeper server.",
    }
    hint = " Start the command again to continue with new events." if code == "cursor_expired" else ""
    return click.ClickException(f"{reason[0].upper()}{reason[1:]}.{hint or hints.get(response.status, '')}")


def _describe(error: Exception) -> str:
    """The cause of a connection error in the words of the operating system."""
    cause: BaseException | None = error
    while cause:
        if isinstance(cause, ssl.SSLCertVerificationError):
            return f"the certificate is not valid ({cause.verify_message})"
        if isinstance(cause, OSError) and cause.errno:
            return os.strerror(cause.errno) if cause.errno > 0 else str(cause.strerror)  # below 0: of a host name
        cause = cause.__cause__ or cause.__context__
    return str(error) or "the connection failed"
