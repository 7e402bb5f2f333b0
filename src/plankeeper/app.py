"""The composition root: settings, database, slices, application; nothing else."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from plankeeper import background, logs, metrics
from plankeeper.account_managers.routes import routes as account_managers
from plankeeper.api_keys.cache import ApiKeyCache
from plankeeper.console.application import build_console
from plankeeper.console.endpoint import ConsoleDependencies
from plankeeper.database.client import Database
from plankeeper.error_catalogue.routes import routes as error_catalogue
from plankeeper.events.routes import routes as events
from plankeeper.http.admission import Admission
from plankeeper.http.docs import documentation_routes
from plankeeper.http.endpoint import Edge, Endpoint, Unknown
from plankeeper.http.health import Metrics, Probe, alive, ready
from plankeeper.http.instrumentation import Telling
from plankeeper.http.openapi import document
from plankeeper.http.path_router import Paths
from plankeeper.http.public import Keyless, OtherOrigins
from plankeeper.http.routing import Operation
from plankeeper.idempotency import service
from plankeeper.invoice_view_sessions.routes import routes as invoice_view_sessions
from plankeeper.invoices.routes import routes as invoices
from plankeeper.note_types.routes import routes as note_types
from plankeeper.participants.routes import routes as participants
from plankeeper.providers.routes import routes as providers
from plankeeper.rate_limits.limiter import Limiter
from plankeeper.request_log.buffer import Gathering
from plankeeper.settings import Settings
from plankeeper.team_members.routes import routes as team_members
from plankeeper.webhooks.delivery_routes import routes as webhook_deliveries
from plankeeper.webhooks.endpoint_routes import routes as webhook_endpoints

SLICES = (
    participants, team_members, account_managers, note_types, providers, invoices, invoice_view_sessions, events,
    webhook_endpoints, webhook_deliveries, error_catalogue,
)  # fmt: skip


# What a page of another origin may read of an answer.
EXPOSED = ["X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After", "ETag", "Idempotent-Replayed"]


def operations() -> list[Operation]:
    return [operation for slice_ in SLICES for operation in slice_.operations]


def by_path(found: list[Operation]) -> dict[str, dict[str, Operation]]:
    """The operations of each path by method, in the order in which the slices declare them."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in found:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths


def create() -> ASGIApp:
    """The application that a server's worker runs, with the settings of its environment."""
    logs.set_up()
    return application(Settings.read())


def application(settings: Settings) -> ASGIApp:
    """The ASGI application. It opens its pool when it starts, and closes it when it stops."""
    db = Database(
        settings.database_url or "",
        pool_size=settings.pool_size,
        statement_timeout=settings.statement_timeout,
    )
    keyring, limiter = ApiKeyCache(db), Limiter(db)
    gathering = Gathering(db) if settings.request_log_retention else None
    tell = Telling(log=settings.access_log, answered=gathering.answered if gathering else None)
    edge = Edge(db, Admission(keyring.authenticate, limiter, settings), service, tell, settings)
    endpoints = {path: Endpoint(edge, path, methods) for path, methods in by_path(operations()).items()}
    routes = [Route("/healthz", Keyless(Probe(alive))), Route("/readyz", Keyless(Probe(ready(db))))]
    if settings.metrics_port is None:
        routes.append(Route("/metrics", Keyless(Metrics(metrics.text, metrics.CONTENT_TYPE))))
    routes += documentation_routes(document(operations()))
    pages = build_console(ConsoleDependencies(db, edge.admission, tell, settings))
    routes += Route("/console", pages), Route("/console/{rest:path}", pages)
    lifespan = _lifespan(edge, keyring, limiter, tell, gathering)
    rest = Router(routes, redirect_slashes=False, default=Unknown(tell), lifespan=lifespan)
    paths = Paths(endpoints, otherwise=rest)
    if not settings.cors_origins:
        return paths
    return OtherOrigins(
        paths, allow_origins=settings.cors_origins, allow_methods=["GET", "POST", "PUT", "DELETE"],
        allow_headers=["*"], expose_headers=EXPOSED,
    )  # fmt: skip


def _lifespan(edge: Edge, keyring: ApiKeyCache, limiter: Limiter, tell: Telling, gathering: Gathering | None) -> Any:
    # What the protocol of the connections needs to know.
    state = {"max_connections": edge.settings.max_connections, "client_timeout": edge.settings.client_io_timeout}

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncGenerator[dict[str, int]]:
        background.stop_with_parent()
        _collect_less()
        async with edge.db.opened():
            running = [
                keyring.watch(), limiter.watch(), background.sequence(edge.db, edge.settings),
                metrics.watch(edge.db, edge.admission), *([gathering.watch()] if gathering else []),
            ]  # fmt: skip
            tasks = [asyncio.create_task(each) for each in running]
            try:
                yield state
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                tell.flush()
                if gathering:
                    await gathering.close()

    return lifespan


def _collect_less() -> None:
    """A page of a thousand makes 40,000 objects that live for a request: looking through them all cost a fifth."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
