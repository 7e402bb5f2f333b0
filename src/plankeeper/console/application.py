"""All pages of the console by path."""

from starlette.types import ASGIApp

from plankeeper.console.endpoint import ConsoleDependencies, PageEndpoint
from plankeeper.console.pages import (
    access_log,
    account,
    account_managers,
    activity,
    api_key_page,
    api_keys,
    event_batch,
    event_page,
    home,
    import_undo,
    imports,
    invoice_page,
    invoices,
    members,
    note_types,
    participant_forms,
    participant_invoices,
    participant_tabs,
    participants,
    password_reset,
    personal_data,
    provider_page,
    providers,
    request_log,
    saved_views,
    search,
    selected_invoices,
    selected_participants,
    selected_providers,
    settings,
    sign_in,
    single_sign_on,
    team_members,
    timeline,
    trash_entries,
    view_sessions,
    webhook_deliveries,
    webhooks,
)
from plankeeper.console.routing import PageRoute
from plankeeper.console.static_files import STATIC_PREFIX, ConsoleStaticFiles

PAGE_MODULES = (
    home.pages,
    sign_in.pages,
    single_sign_on.pages,
    password_reset.pages,
    account.pages,
    selected_participants.pages,
    selected_invoices.pages,
    selected_providers.pages,
    participant_forms.pages,
    participants.pages,
    participant_tabs.pages,
    participant_invoices.pages,
    team_members.pages,
    personal_data.pages,
    invoices.pages,
    invoice_page.pages,
    view_sessions.pages,
    providers.pages,
    provider_page.pages,
    activity.pages,
    event_page.pages,
    event_batch.pages,
    timeline.pages,
    settings.pages,
    trash_entries.pages,
    members.pages,
    api_keys.pages,
    api_key_page.pages,
    webhooks.pages,
    webhook_deliveries.pages,
    account_managers.pages,
    note_types.pages,
    imports.pages,
    import_undo.pages,
    request_log.pages,
    access_log.pages,
    search.pages,
    saved_views.pages,
)


def page_routes() -> list[PageRoute]:
    return [route for pages in PAGE_MODULES for route in pages.routes]


def build_endpoints(deps: ConsoleDependencies) -> dict[str, ASGIApp]:
    """The ASGI applications of the pages and of the static files by path, for the application's router."""
    methods_by_path: dict[str, dict[str, PageRoute]] = {}
    for route in page_routes():
        methods_by_path.setdefault(route.path, {})[route.method] = route
    endpoints: dict[str, ASGIApp] = {
        path: PageEndpoint(deps, path, methods) for path, methods in methods_by_path.items()
    }
    endpoints[f"{STATIC_PREFIX}/{{name}}"] = ConsoleStaticFiles(deps.settings.public_url)
    return endpoints


def build_not_found_endpoint(deps: ConsoleDependencies) -> ASGIApp:
    """The page for every other path of the console."""
    return PageEndpoint(deps, None, {})
