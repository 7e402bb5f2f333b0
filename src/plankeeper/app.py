"""The composition root: settings, database, slices, application; nothing else."""

import asyncio
import gc
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from typing import Any

from starlette.routing import Route, Router
from starlette.types import ASGIApp

from plankeeper import background, logs, metrics
from plankeeper.account_managers.routes import router as account_managers
from plankeeper.api_keys.cache import ApiKeyCache
from plankeeper.console.application import build_console
from plankeeper.console.endpoint import ConsoleDependencies
from plankeeper.database.client import Database
from plankeeper.error_catalogue.routes import router as error_catalogue
from plankeeper.events.routes import router as events
from plankeeper.http.admission import Admission
from plankeeper.http.cors import JsonCORSMiddleware
from plankeeper.http.docs import documentation_routes
from plankeeper.http.endpoint import ApiDependencies, Endpoint, NotFoundEndpoint
from plankeeper.http.health import HealthCheck, MetricsEndpoint, liveness_check, readiness_check
from plankeeper.http.instrumentation import RequestInstrumentation
from plankeeper.http.openapi import build_document
from plankeeper.http.public import PublicEndpoint
from plankeeper.http.routing import Operation, PathRouter
from plankeeper.idempotency import service
from plankeeper.invoice_view_sessions.routes import router as invoice_view_sessions
from plankeeper.invoices.routes import router as invoices
from plankeeper.note_types.routes import router as note_types
from plankeeper.participants.routes import router as participants
from plankeeper.providers.routes import router as providers
from plankeeper.rate_limits.limiter import LeasedRateLimiter
from plankeeper.request_log.buffer import RequestLogBuffer
from plankeeper.settings import Settings
from plankeeper.team_members.routes import router as team_members
from plankeeper.webhooks.delivery_routes import router as webhook_deliveries
from plankeeper.webhooks.endpoint_routes import router as webhook_endpoints

ROUTERS = (
    participants,
    team_members,
    account_managers,
    note_types,
    providers,
    invoices,
    invoice_view_sessions,
    events,
    webhook_endpoints,
    webhook_deliveries,
    error_catalogue,
)


# What a page of another origin may read of an answer.
EXPOSED_HEADERS = ["X-Request-Id", "RateLimit", "RateLimit-Policy", "Retry-After", "ETag", "Idempotent-Replayed"]


def operations() -> list[Operation]:
    return [operation for router in ROUTERS for operation in router.operations]


def group_by_path(declared: list[Operation]) -> dict[str, dict[str, Operation]]:
    """The operations of each path by method, in the order in which the slices declare them."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in declared:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths


def create_app() -> ASGIApp:
    """The application that a server's worker runs, with the settings of its environment."""
    logs.configure()
    return build_app(Settings.read())


def build_app(settings: Settings) -> ASGIApp:
    """The ASGI application. It opens its pool when it starts, and closes it when it stops."""
    db = Database(
        settings.database_url or "",
        pool_size=settings.pool_size,
        statement_timeout=settings.statement_timeout,
    )
    api_key_cache, limiter = ApiKeyCache(db), LeasedRateLimiter(db)
    request_log_buffer = RequestLogBuffer(db) if settings.request_log_retention else None
    instrumentation = RequestInstrumentation(
        log=settings.access_log, on_record=request_log_buffer.append if request_log_buffer else None
    )
    deps = ApiDependencies(
        db, Admission(api_key_cache.authenticate, limiter, settings), service, instrumentation, settings
    )
    endpoints = {path: Endpoint(deps, path, methods) for path, methods in group_by_path(operations()).items()}
    routes = [
        Route("/healthz", PublicEndpoint(HealthCheck(liveness_check))),
        Route("/readyz", PublicEndpoint(HealthCheck(readiness_check(db)))),
    ]
    if settings.metrics_port is None:
        routes.append(Route("/metrics", PublicEndpoint(MetricsEndpoint(metrics.render, metrics.CONTENT_TYPE))))
    routes += documentation_routes(build_document(operations()))
    console_app = build_console(ConsoleDependencies(db, deps.admission, instrumentation, settings))
    routes += Route("/console", console_app), Route("/console/{rest:path}", console_app)
    lifespan = _lifespan(deps, api_key_cache, limiter, instrumentation, request_log_buffer)
    fallback = Router(routes, redirect_slashes=False, default=NotFoundEndpoint(instrumentation), lifespan=lifespan)
    router = PathRouter(endpoints, default=fallback)
    if not settings.cors_origins:
        return router
    return JsonCORSMiddleware(
        router,
        allow_origins=settings.cors_origins,
        allow_methods=["GET", "POST", "PUT", "DELETE"],
        allow_headers=["*"],
        expose_headers=EXPOSED_HEADERS,
    )


def _lifespan(
    deps: ApiDependencies,
    api_key_cache: ApiKeyCache,
    limiter: LeasedRateLimiter,
    instrumentation: RequestInstrumentation,
    request_log_buffer: RequestLogBuffer | None,
) -> Any:
    # What the protocol of the connections needs to know.
    state = {"max_connections": deps.settings.max_connections, "client_io_timeout": deps.settings.client_io_timeout}

    @asynccontextmanager
    async def lifespan(_app: object) -> AsyncGenerator[dict[str, int]]:
        background.exit_with_parent()
        _tune_garbage_collection()
        async with deps.db.open():
            watchers = [
                api_key_cache.watch(),
                limiter.watch(),
                background.run_background_tasks(deps.db, deps.settings),
                metrics.watch(deps.db, deps.admission),
                *([request_log_buffer.watch()] if request_log_buffer else []),
            ]
            tasks = [asyncio.create_task(each) for each in watchers]
            try:
                yield state
            finally:
                for task in tasks:
                    task.cancel()
                await asyncio.gather(*tasks, return_exceptions=True)
                instrumentation.flush()
                if request_log_buffer:
                    await request_log_buffer.close()

    return lifespan


def _tune_garbage_collection() -> None:
    """A page of a thousand makes 40,000 objects that live for a request: looking through them all cost a fifth."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
