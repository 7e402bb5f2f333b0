"""The composition root: builds the application from the settings, the database, and the packages' routes."""

import asyncio
import gc
import re
from collections.abc import AsyncGenerator, Coroutine
from contextlib import asynccontextmanager
from dataclasses import dataclass
from functools import cache
from ipaddress import ip_network
from typing import TYPE_CHECKING, Any

from starlette.types import ASGIApp

from plankeeper.access.access_log.buffer import AccessRecordBuffer
from plankeeper.access.accounts import passwords
from plankeeper.access.api_keys.cache import ApiKeyCache
from plankeeper.access.api_keys.routes import router as api_keys
from plankeeper.access.request_log.buffer import RequestLogBuffer
from plankeeper.console.application import build_endpoints as build_console_endpoints
from plankeeper.console.application import build_not_found_endpoint as build_console_not_found_endpoint
from plankeeper.console.application import create_templates, page_routes
from plankeeper.console.shell.endpoint import ConsoleDependencies
from plankeeper.console.shell.routing import PREFIX as CONSOLE_PREFIX
from plankeeper.console.shell.static_files import STATIC_PREFIX
from plankeeper.core import logs
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.commit_watermark import CommitWatermark
from plankeeper.database.connections import notify_all
from plankeeper.events.routes import router as events
from plankeeper.http.admission import Admission
from plankeeper.http.browsers import JsonCORSMiddleware, PublicHostEndpoint
from plankeeper.http.connections import Peers
from plankeeper.http.endpoint import ApiDependencies, Endpoint, NotFoundEndpoint
from plankeeper.http.instrumentation import RequestInstrumentation, declare_requests
from plankeeper.http.openapi.document import build_document, render_document
from plankeeper.http.public.documentation import PATH as DOCS_PATH
from plankeeper.http.public.documentation import documentation_endpoints
from plankeeper.http.public.front_page import PublicEndpoint, SlashRedirect, for_browsers, front_page
from plankeeper.http.public.health import (
    HealthCheck,
    MetricsEndpoint,
    liveness_check,
    readiness_check,
)
from plankeeper.http.rate_limits.limiter import LeasedRateLimiter
from plankeeper.http.routing import MethodFallback, Operation, PathRouter
from plankeeper.mail.sender import MailSender
from plankeeper.resources.account_managers.routes import router as account_managers
from plankeeper.resources.bank_details.routes import router as bank_details
from plankeeper.resources.claims.line_routes import router as line_claims
from plankeeper.resources.claims.result_routes import router as claim_results
from plankeeper.resources.claims.routes import router as claim_batches
from plankeeper.resources.error_catalogue.routes import router as error_catalogue
from plankeeper.resources.exit_reasons.routes import router as exit_reasons
from plankeeper.resources.fees.routes import router as fees
from plankeeper.resources.fees.routes import takings_router as fee_takings
from plankeeper.resources.invoice_view_sessions.routes import router as invoice_view_sessions
from plankeeper.resources.invoices.routes import router as invoices
from plankeeper.resources.note_types.routes import router as note_types
from plankeeper.resources.notes.routes import router as notes
from plankeeper.resources.participants.plan_routes import router as plans
from plankeeper.resources.participants.routes import router as participants
from plankeeper.resources.payments.reconciliation_routes import router as reconciliation
from plankeeper.resources.payments.routes import router as payment_runs
from plankeeper.resources.providers.routes import router as providers
from plankeeper.resources.statement_runs.routes import router as statement_runs
from plankeeper.resources.statements.routes import router as statements
from plankeeper.resources.support_items.routes import router as support_items
from plankeeper.resources.team_members.routes import router as team_members
from plankeeper.server import background
from plankeeper.server.mails import OUTCOMES, WRITERS
from plankeeper.server.metrics import CONTENT_TYPE, render, watch
from plankeeper.server.monitoring import log_slow_statements
from plankeeper.server.telemetry import setup
from plankeeper.server.webhook_messages import add_messages
from plankeeper.webhooks.delivery_routes import router as webhook_deliveries
from plankeeper.webhooks.routes import router as webhook_endpoints

if TYPE_CHECKING:
    from plankeeper.server.telemetry.exporters import Telemetry

ROUTERS = (
    participants,
    plans,
    team_members,
    account_managers,
    exit_reasons,
    note_types,
    notes,
    providers,
    invoices,
    claim_batches,
    payment_runs,
    statements,
    reconciliation,
    statement_runs,
    fees,
    fee_takings,
    claim_results,
    line_claims,
    invoice_view_sessions,
    bank_details,
    events,
    webhook_endpoints,
    webhook_deliveries,
    api_keys,
    support_items,
    error_catalogue,
)


# Paths for browsers, with everything below them. If there is a public URL, only its host serves them.
BROWSER_PATHS = (CONSOLE_PREFIX, DOCS_PATH)
# Response headers that scripts of other origins may read.
EXPOSED_HEADERS = [
    "X-Request-Id",
    "RateLimit",
    "RateLimit-Policy",
    "Retry-After",
    "ETag",
    "Location",
    "Content-Location",
    "Idempotent-Replayed",
    "Synced-Until",
]


def operations() -> list[Operation]:
    return [operation for router in ROUTERS for operation in router.operations]


def group_by_path(declared: list[Operation]) -> dict[str, dict[str, Operation]]:
    """The operations of each path by method, in the order of their declaration."""
    paths: dict[str, dict[str, Operation]] = {}
    for operation in declared:
        paths.setdefault(operation.path, {})[operation.method] = operation
    return paths


@cache
def openapi_document() -> str:
    """The OpenAPI document as JSON. All applications of a process share it, because building it takes 0.2 s."""
    document = build_document(operations())
    add_messages(document)
    return render_document(document)


def create_app() -> ASGIApp:
    """The application that a worker of the server runs, with the settings of its environment."""
    settings = Settings.read()
    logs.configure(settings.log_level, in_background=True)
    passwords.use_process()
    return build_app(settings)


def build_app(settings: Settings) -> ASGIApp:
    """The ASGI application. Its lifespan opens and closes the database pool and runs the background tasks."""
    _declare_metrics()
    services = _build_services(settings)
    api = services.api
    on_access = services.access_records.append
    templates = create_templates(settings.time_zone, sends_mail=settings.smtp_server is not None)
    console = ConsoleDependencies(api.db, api.admission, api.on_response, settings, templates, on_access, api.on_write)
    endpoints = _trace(services, api_endpoints(api) | build_console_endpoints(console)) | public_endpoints(api)
    not_found_page = _require_public_host(services, CONSOLE_PREFIX, build_console_not_found_endpoint(console))
    router = PathRouter(
        {path: _require_public_host(services, path, app) for path, app in endpoints.items()},
        default=for_browsers(not_found_page, NotFoundEndpoint(api.on_response, settings.public_url)),
        fallbacks={
            f"{CONSOLE_PREFIX}/": not_found_page,
            f"{DOCS_PATH}/": _require_public_host(services, DOCS_PATH, endpoints[DOCS_PATH]),
        },
        lifespan=lambda: _lifespan(services),
    )
    if not settings.cors_origins:
        return router
    return JsonCORSMiddleware(
        router,
        allow_origins=settings.cors_origins,
        allow_methods=["GET", "POST", "PUT", "DELETE"],
        allow_headers=["*"],
        expose_headers=EXPOSED_HEADERS,
    )


def _trace(services: "_Services", endpoints: dict[str, ASGIApp]) -> dict[str, ASGIApp]:
    """The endpoints with a span for each request if telemetry is on. Static files have none."""
    telemetry = services.telemetry
    if telemetry is None:
        return endpoints
    return {
        path: app if path.startswith(STATIC_PREFIX) else telemetry.trace_endpoint(app, path)
        for path, app in endpoints.items()
    }


def _declare_metrics() -> None:
    for operation in operations():
        declare_requests(operation.method, operation.path, operation.status)
    for route in page_routes():
        declare_requests(route.method, route.path, 303 if route.method == "POST" else 200)


def _require_public_host(services: "_Services", path: str, app: ASGIApp) -> ASGIApp:
    """The application, only for the public host if it is for browsers and there is a public URL."""
    public_url = services.api.settings.public_url
    is_for_browsers = path in BROWSER_PATHS or path.startswith(tuple(f"{each}/" for each in BROWSER_PATHS))
    return PublicHostEndpoint(app, public_url, services.api.on_response) if public_url and is_for_browsers else app


@dataclass(frozen=True, slots=True)
class _Services:
    """The objects of one worker that live as long as its application."""

    api: ApiDependencies
    api_key_cache: ApiKeyCache
    rate_limiter: LeasedRateLimiter
    instrumentation: RequestInstrumentation
    request_log_buffer: RequestLogBuffer | None
    access_records: AccessRecordBuffer
    watermark: CommitWatermark
    telemetry: "Telemetry | None"


def _build_services(settings: Settings) -> _Services:
    telemetry = setup.start(settings)
    db = Database(
        settings.database_url or "",
        pool_size=settings.pool_size,
        statement_timeout=settings.statement_timeout,
        on_statement=notify_all(
            log_slow_statements(settings.slow_statements), telemetry.trace_statements() if telemetry else None
        ),
    )
    api_key_cache, rate_limiter = ApiKeyCache(db), LeasedRateLimiter(db)
    request_log_buffer = RequestLogBuffer(db, settings.time_zone) if settings.request_log_retention else None
    instrumentation = RequestInstrumentation(
        log=settings.access_log and logs.is_request_logged(settings.log_level),
        on_record=request_log_buffer.append if request_log_buffer else None,
        on_rejection=request_log_buffer.append_rejection if request_log_buffer else None,
    )
    admission = Admission(api_key_cache.authenticate, rate_limiter, settings)
    on_response = telemetry.trace_responses(instrumentation) if telemetry else instrumentation
    on_write = telemetry.publish_context if telemetry else None
    access_records, watermark = AccessRecordBuffer(db), CommitWatermark(db)
    api = ApiDependencies(db, admission, on_response, settings, on_write, access_records.append, watermark)
    return _Services(
        api, api_key_cache, rate_limiter, instrumentation, request_log_buffer, access_records, watermark, telemetry
    )


def api_endpoints(deps: ApiDependencies) -> dict[str, ASGIApp]:
    declared = operations()
    grouped = group_by_path(declared)
    endpoints: dict[str, ASGIApp] = {path: Endpoint(deps, path, declared) for path in grouped}
    for path in grouped:
        folder, _, name = path.rpartition("/")
        if name == "bulk":  # hides the path of one resource
            [hidden] = [each for each in grouped if re.fullmatch(rf"{folder}/{{\w+}}", each)]
            path_params = {hidden.rpartition("/")[2].strip("{}"): name}
            endpoints[path] = MethodFallback(
                endpoints[path], endpoints[hidden], [*grouped[hidden], "HEAD"], path_params
            )
    return endpoints


def public_endpoints(deps: ApiDependencies) -> dict[str, ASGIApp]:
    """Health checks, metrics, documentation, and redirects of the pages' addresses with a slash."""
    endpoints: dict[str, ASGIApp] = {
        "/": PublicEndpoint(front_page),
        "/healthz": PublicEndpoint(HealthCheck(liveness_check)),
        "/readyz": PublicEndpoint(HealthCheck(readiness_check(deps.db))),
    }
    if deps.settings.metrics_port is None:
        endpoints["/metrics"] = PublicEndpoint(
            MetricsEndpoint(
                render,
                CONTENT_TYPE,
                deps.settings.metrics_networks,
                [ip_network(each) for each in deps.settings.trusted_proxies],
            )
        )
    endpoints |= {f"{path}/": PublicEndpoint(SlashRedirect(path)) for path in BROWSER_PATHS}
    not_found = NotFoundEndpoint(deps.on_response, deps.settings.public_url)
    return endpoints | documentation_endpoints(openapi_document(), deps.settings.public_url, not_found)


def _mail_senders(db: Database, settings: Settings) -> list[Coroutine[Any, Any, None]]:
    server = settings.smtp_server
    return [MailSender(db, settings, server, WRITERS, outcomes=OUTCOMES).run()] if server else []


@asynccontextmanager
async def _lifespan(services: _Services) -> AsyncGenerator[dict[str, object]]:
    """Yields the limits that the connections' protocol enforces."""
    db, settings = services.api.db, services.api.settings
    background.exit_with_parent()
    background.report_lost_connections_once()
    _tune_garbage_collection()
    async with db.open():
        coroutines = [
            services.api_key_cache.watch(),
            services.rate_limiter.watch(),
            background.run_background_tasks(db, settings),
            watch(db, services.api.admission),
            services.access_records.watch(),
            services.watermark.watch(),
            *_mail_senders(db, settings),
            *([services.request_log_buffer.watch()] if services.request_log_buffer else []),
        ]
        tasks = [asyncio.create_task(each) for each in coroutines]
        try:
            yield {
                "max_connections": settings.max_connections,
                "client_io_timeout": settings.client_io_timeout,
                "peers": Peers(settings.trusted_proxies, settings.max_connections_per_address),
            }
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.gather(*tasks, return_exceptions=True)
            await passwords.close()
            services.instrumentation.flush()
            await services.access_records.close()
            if services.request_log_buffer:
                await services.request_log_buffer.close()
            if services.telemetry:
                await services.telemetry.close()
            logs.flush()  # uvicorn ends the process with a signal, without Python's exit handlers


def _tune_garbage_collection() -> None:
    """A page of 1,000 items creates 40,000 short-lived objects; collecting among them took a fifth of the request."""
    gc.collect()
    gc.freeze()
    gc.set_threshold(50_000, 20, 100)
