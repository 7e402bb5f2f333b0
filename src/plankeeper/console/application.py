"""All pages of the console as one ASGI application."""

from starlette.types import ASGIApp

from plankeeper.console import responses
from plankeeper.console.endpoint import ConsoleDependencies, PageEndpoint
from plankeeper.console.pages import (
    account,
    account_managers,
    activity,
    api_keys,
    imports,
    invoices,
    members,
    note_types,
    participants,
    providers,
    request_log,
    sign_in,
    team_members,
    view_sessions,
    webhooks,
)
from plankeeper.console.routing import PREFIX, PageRoute
from plankeeper.http.routing import PathRouter

PAGE_MODULES = (
    sign_in.pages,
    account.pages,
    participants.pages,
    team_members.pages,
    invoices.pages,
    view_sessions.pages,
    providers.pages,
    activity.pages,
    members.pages,
    api_keys.pages,
    webhooks.pages,
    account_managers.pages,
    note_types.pages,
    imports.pages,
    request_log.pages,
)


def page_routes() -> list[PageRoute]:
    return [route for pages in PAGE_MODULES for route in pages.routes]


def build_console(deps: ConsoleDependencies) -> ASGIApp:
    by_path: dict[str, dict[str, PageRoute]] = {}
    for route in page_routes():
        by_path.setdefault(route.path, {})[route.method] = route
    paths: dict[str, ASGIApp] = {path: PageEndpoint(deps, path, methods) for path, methods in by_path.items()}
    paths[f"{PREFIX}/assets/{{name}}"] = responses.static_file
    return PathRouter(paths, default=PageEndpoint(deps, None, {}))
