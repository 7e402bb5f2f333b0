"""The trace of a write continues in its webhooks.

A write sends its trace context to all webhook workers with NOTIFY when it commits. Nothing is stored: traces are kept
for days at most, and events for years. A worker that doesn't know the context of an event, because it has started
since or has seen too many others, begins a new trace.
"""

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Generator, Mapping
from contextlib import contextmanager
from urllib.parse import urlsplit
from uuid import UUID

from opentelemetry import trace
from opentelemetry.context import Context
from opentelemetry.trace import Span, SpanKind, StatusCode, Tracer

from plankeeper.database.client import Database, Transaction
from plankeeper.database.errors import is_unavailable
from plankeeper.server.telemetry.requests import current_headers, parse_context

log = logging.getLogger("plankeeper")

CHANNEL = "plankeeper_traces"
MAX_CONTEXTS = 50_000  # about 10 MB
KEEP_ALIVE_INTERVAL = 5.0  # seconds; PostgreSQL closes the connection after ten idle ones

PUBLISH = "select pg_notify('plankeeper_traces', $1)"
KEEP_ALIVE = "select 1"


async def publish_context(tx: Transaction, plan_manager_id: UUID, request_id: str) -> None:
    """Send the context of a request's span to the webhook workers when its transaction commits."""
    if trace.get_current_span().is_recording():
        await tx.execute(PUBLISH, f"{plan_manager_id} {request_id} {current_headers()['traceparent']}")


class AttemptSpan:
    """The span of an attempt: the headers that continue its trace, and its result."""

    def __init__(self, span: Span, headers: Mapping[str, str]) -> None:
        self._span, self.headers = span, headers

    def set_result(self, status_code: int | None, error: str | None) -> None:
        """Complete the span. `error` is the message for people, which contains no address."""
        if status_code is not None:
            self._span.set_attribute("http.response.status_code", status_code)
        if error:
            self._span.set_attribute("error.type", error if status_code is None else str(status_code))
            self._span.set_status(StatusCode.ERROR)


class WebhookTraces:
    """The spans of a webhook worker, and the contexts of the writes that they continue."""

    def __init__(self, tracer: Tracer) -> None:
        self._tracer = tracer
        self._contexts: OrderedDict[tuple[str, str], Context] = OrderedDict()  # by plan manager and request id

    async def listen(self, db: Database) -> None:
        """Receive the contexts of writes until cancelled. Reconnects while the database is unavailable."""
        while True:
            try:
                async with db.listening_connection(CHANNEL, self._remember) as connection:
                    while True:
                        await connection.one(int, KEEP_ALIVE)
                        await asyncio.sleep(KEEP_ALIVE_INTERVAL)
            except Exception as error:
                if not is_unavailable(error):
                    log.exception("cannot receive the traces of writes")
            await asyncio.sleep(1)

    def _remember(self, payload: str) -> None:
        plan_manager_id, request_id, traceparent = payload.split(" ")
        self._contexts[plan_manager_id, request_id] = parse_context({"traceparent": traceparent})
        if len(self._contexts) > MAX_CONTEXTS:
            self._contexts.popitem(last=False)

    @contextmanager
    def attempt(
        self, plan_manager_id: UUID, request_id: str | None, url: str, attributes: Mapping[str, str | int]
    ) -> Generator[AttemptSpan]:
        """The span of one attempt. The URL's path isn't exported, because it can contain a secret."""
        with self._tracer.start_as_current_span(
            "POST webhook",
            self._contexts.get((str(plan_manager_id), request_id or ""), Context()),
            SpanKind.CLIENT,
            {
                "http.request.method": "POST",
                "server.address": urlsplit(url).hostname or "",
                "plankeeper.plan_manager_id": str(plan_manager_id),
                **({"plankeeper.request_id": request_id} if request_id else {}),
                **attributes,
            },
            # The text of an exception can contain an address.
            record_exception=False,
            set_status_on_exception=False,
        ) as span:
            yield AttemptSpan(span, current_headers())
