"""Saved views of lists: save, rename, share and delete them; and the columns and density of a list."""

from collections.abc import Mapping
from types import MappingProxyType
from uuid import UUID

from plankeeper.access.saved_views import service, store
from plankeeper.access.saved_views.store import ListSettings
from plankeeper.console.activity.list import ACTIVITY
from plankeeper.console.claims.all_claims import ALL_CLAIMS
from plankeeper.console.claims.list import CLAIM_BATCHES
from plankeeper.console.developers.deliveries import deliveries_of
from plankeeper.console.developers.requests import REQUESTS
from plankeeper.console.invoices.list import INVOICES
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.saved_views import (
    DENSITIES,
    VIEWS_URL,
    can_see,
    chosen_columns,
    column_choices,
    parse_query_text,
    view_url,
)
from plankeeper.console.participants.list import PARTICIPANTS
from plankeeper.console.payments.all_payments import ALL_PAYMENTS
from plankeeper.console.payments.list import PAYMENT_RUNS
from plankeeper.console.plans.components import COMPONENTS
from plankeeper.console.plans.list import PLANS
from plankeeper.console.providers.list import PROVIDERS
from plankeeper.console.settings.access_log import ACCESS_LOG
from plankeeper.console.shell.routing import (
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.core.ids import parse_uuid

LISTS: Mapping[str, ListDefinition] = MappingProxyType(
    {
        each.kind: each
        for each in (
            INVOICES,
            CLAIM_BATCHES,
            ALL_CLAIMS,
            PAYMENT_RUNS,
            ALL_PAYMENTS,
            PARTICIPANTS,
            PLANS,
            COMPONENTS,
            PROVIDERS,
            ACTIVITY,
            REQUESTS,
            ACCESS_LOG,
        )
    }
)

pages = Pages()


@pages.get("/views", role="viewer", is_limited=True)
async def list_(request: PageRequest) -> HtmlPage:
    account_id = request.account.account_id
    views = await store.list_visible(request.db, request.plan_manager_id, account_id)
    views = [each for each in views if can_see(request, each)]
    groups = [
        (
            definition.title,
            [
                (each, view_url(definition, each), service.can_change(each, account_id, request.role))
                for each in views
                if each.list_kind == kind
            ],
        )
        for kind, definition in LISTS.items()
        if request.has_role(definition.role)
    ]
    return HtmlPage("views/saved_views.html", {"groups": [each for each in groups if each[1]]})


@pages.get("/views/new", role="viewer", is_limited=True)
async def new(request: PageRequest) -> HtmlPage:
    values = request.form or request.query
    definition = find_list(values.text("list"))
    query = parse_query_text(definition, values.raw("query"))
    context = {
        "definition": definition,
        "query": query.text,
        "back_url": query.url(),
        "name": values.text("name"),
        "is_shared": bool(values.text("is_shared")),
        "can_share": service.can_share(request.role),
        "max_length": service.MAX_NAME_LENGTH,
    }
    return HtmlPage("views/saved_view_new.html", context)


@pages.post("/views", role="viewer", is_limited=True, on_error=new)
async def create(request: FormRequest) -> Redirect:
    definition = find_list(request.form.text("list"))
    query = parse_query_text(definition, request.form.raw("query"))
    name, is_shared = request.form.text("name"), bool(request.form.text("is_shared"))
    await service.create(request.write_context, request.role, definition.kind, name, query.text, is_shared=is_shared)
    return Redirect(query.url(), f"View “{name}” saved.")


@pages.get("/views/{view_id}/edit", role="viewer", is_limited=True)
async def edit(request: PageRequest, view_id: UUID) -> HtmlPage:
    view = await service.get(request.db, request.plan_manager_id, request.account.account_id, view_id)
    if not can_see(request, view):
        raise NotFound
    context = {
        "view": view,
        "can_change": service.can_change(view, request.account.account_id, request.role),
        "name": request.form.text("name") if request.form else view.name,
        "is_shared": bool(request.form.text("is_shared")) if request.form else view.is_shared,
        "can_share": service.can_share(request.role),
        "max_length": service.MAX_NAME_LENGTH,
    }
    return HtmlPage("views/saved_view_edit.html", context)


@pages.post("/views/{view_id}/edit", role="viewer", is_limited=True, on_error=edit)
async def update(request: FormRequest, view_id: UUID) -> Redirect:
    view = await service.get(request.tx, request.plan_manager_id, request.account.account_id, view_id)
    name, is_shared = request.form.text("name"), bool(request.form.text("is_shared"))
    await service.update(request.write_context, request.role, view, name, is_shared=is_shared)
    return Redirect(VIEWS_URL, f"View “{name}” saved.")


@pages.post("/views/{view_id}/delete", role="viewer", is_limited=True)
async def delete(request: FormRequest, view_id: UUID) -> Redirect:
    view = await service.get(request.tx, request.plan_manager_id, request.account.account_id, view_id)
    await service.delete(request.write_context, request.role, view)
    return Redirect(VIEWS_URL, f"View “{view.name}” deleted.")


@pages.get("/list-settings", role="viewer", is_limited=True)
async def settings_form(request: PageRequest) -> HtmlPage:
    """The columns and the density of a list."""
    values = request.form or request.query
    definition = find_any_list(values.text("list"))
    query = parse_query_text(definition, values.raw("query"))
    place = (request.db, request.plan_manager_id, request.account.account_id)
    settings = await store.get_settings(*place, definition.kind)
    context = {
        "definition": definition,
        "query": query.text,
        "back_url": query.url(),
        "columns": column_choices(definition, settings),
        "density": settings.density,
        "densities": DENSITIES,
    }
    return HtmlPage("views/list_settings.html", context)


@pages.post("/list-settings", role="viewer", is_limited=True, on_error=settings_form)
async def save_settings(request: FormRequest) -> Redirect:
    definition = find_any_list(request.form.text("list"))
    query = parse_query_text(definition, request.form.raw("query"))
    names = request.form.getlist("columns")
    settings = ListSettings(chosen_columns(definition.columns, names) if definition.is_table else None)
    match request.form.text("density"):
        case "compact" | "comfortable" as density:
            settings.density = density
        case _:
            raise ValidationError(density="must be one of the choices")
    if request.form.text("reset"):
        settings = ListSettings()
    place = (request.tx, request.plan_manager_id, request.account.account_id)
    await store.upsert_settings(*place, definition.kind, settings)
    return Redirect(query.url(), "Columns saved.")


def find_list(kind: str) -> ListDefinition:
    """The list of a form; the first one for an unknown kind, which no page sends."""
    return LISTS.get(kind) or next(iter(LISTS.values()))


def find_any_list(text: str) -> ListDefinition:
    """The same, also for the deliveries of an endpoint, which have settings, but no saved views."""
    kind, _, owner_id = text.partition(".")
    endpoint_id = parse_uuid(owner_id)
    return deliveries_of(endpoint_id) if kind == "deliveries" and endpoint_id else find_list(text)
