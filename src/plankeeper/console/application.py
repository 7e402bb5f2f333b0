"""All pages of the console by path."""

from zoneinfo import ZoneInfo

from starlette.templating import Jinja2Templates
from starlette.types import ASGIApp

from plankeeper.console.account import pages as account_pages
from plankeeper.console.account import sign_in, single_sign_on
from plankeeper.console.activity import event_batch, event_page
from plankeeper.console.activity import pages as activity_pages
from plankeeper.console.bank_details import pages as bank_detail_pages
from plankeeper.console.claims import all_claims, recoveries
from plankeeper.console.claims import late as late_claims
from plankeeper.console.claims import lines as claim_lines
from plankeeper.console.claims import pages as claim_pages
from plankeeper.console.claims import results as claim_results
from plankeeper.console.components.events import actor_name, event_title
from plankeeper.console.components.labels import error_sentence, field_label, humanize, parse_color, program_name
from plankeeper.console.developers import api_keys, requests, webhooks
from plankeeper.console.home import pages as home_pages
from plankeeper.console.imports import pages as import_pages
from plankeeper.console.imports import runs
from plankeeper.console.invoices import actions as invoice_actions
from plankeeper.console.invoices import approval, approval_link, documents, invoice_page, upload
from plankeeper.console.invoices import edit as invoice_edit
from plankeeper.console.invoices import pages as invoice_pages
from plankeeper.console.notes import pages as note_pages
from plankeeper.console.participants import edit, personal_data, plans, statements, team, timeline
from plankeeper.console.participants import pages as participant_pages
from plankeeper.console.payments import all_payments, fees, payment, reconciliation, unconfirmed
from plankeeper.console.payments import pages as payment_pages
from plankeeper.console.payments import run as payment_run
from plankeeper.console.people import account_managers, members
from plankeeper.console.plans import pages as plan_pages
from plankeeper.console.providers import pages as provider_pages
from plankeeper.console.providers import statement as provider_statement
from plankeeper.console.reports import pages as report_pages
from plankeeper.console.review import pages as review_pages
from plankeeper.console.search import pages as search_pages
from plankeeper.console.settings import access_log, checks, office, restores, trash
from plankeeper.console.settings import pages as settings_pages
from plankeeper.console.shell import templating
from plankeeper.console.shell.endpoint import ConsoleDependencies, PageEndpoint
from plankeeper.console.shell.routing import PageRoute
from plankeeper.console.shell.static_files import STATIC_PREFIX, ConsoleStaticFiles
from plankeeper.console.statements import pages as statement_pages
from plankeeper.console.views import pages as view_pages

# The packages with templates.
AREAS = (
    "shell",
    "components",
    "lists",
    "notes",
    "views",
    "account",
    "activity",
    "bank_details",
    "claims",
    "developers",
    "home",
    "imports",
    "invoices",
    "participants",
    "payments",
    "people",
    "plans",
    "providers",
    "reports",
    "review",
    "search",
    "settings",
    "statements",
)
PAGE_MODULES = (
    home_pages.pages,
    sign_in.pages,
    single_sign_on.pages,
    account_pages.pages,
    participant_pages.pages,
    edit.pages,
    plans.pages,
    statements.pages,
    team.pages,
    timeline.pages,
    personal_data.pages,
    plan_pages.pages,
    report_pages.pages,
    invoice_pages.pages,
    documents.pages,
    upload.pages,
    invoice_page.pages,
    approval.pages,
    approval_link.pages,
    invoice_edit.pages,
    invoice_actions.pages,
    review_pages.pages,
    provider_pages.pages,
    provider_statement.pages,
    note_pages.pages,
    bank_detail_pages.pages,
    claim_pages.pages,
    claim_results.pages,
    late_claims.pages,
    all_claims.pages,
    all_payments.pages,
    claim_lines.pages,
    recoveries.pages,
    payment_pages.pages,
    reconciliation.pages,
    fees.pages,
    unconfirmed.pages,
    payment_run.pages,
    payment.pages,
    statement_pages.pages,
    activity_pages.pages,
    event_page.pages,
    event_batch.pages,
    settings_pages.pages,
    trash.pages,
    checks.pages,
    office.pages,
    restores.pages,
    access_log.pages,
    members.pages,
    account_managers.pages,
    api_keys.pages,
    webhooks.pages,
    requests.pages,
    import_pages.pages,
    runs.pages,
    search_pages.pages,
    view_pages.pages,
)
FILTERS = {
    "humanize": humanize,
    "label": field_label,
    "actor_name": actor_name,
    "event_title": event_title,
    "program_name": program_name,
}


def create_templates(zone: ZoneInfo, *, sends_mail: bool = False) -> Jinja2Templates:
    """The templates of all areas. Dates and times are those of the zone."""
    names = {"error_sentence": error_sentence, "parse_color": parse_color, "sends_mail": sends_mail}
    return templating.create_templates(zone, AREAS, FILTERS, names)


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
