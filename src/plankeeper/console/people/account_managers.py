"""Account managers: list, create, edit, deactivate."""

from uuid import UUID

from msgspec import UNSET

from plankeeper.console.components.edit_forms import (
    EditedRecord,
    changes_in,
    edit_context,
    form_from,
    require_unchanged,
)
from plankeeper.console.components.pagination import PAGE_SIZE, paginate_links
from plankeeper.console.lists.query import parse_list_query
from plankeeper.console.lists.selection import selection_url
from plankeeper.console.participants.list import PARTICIPANTS, SET_ACCOUNT_MANAGER
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.ids import parse_uuid
from plankeeper.core.validation import known_fields, validate_struct
from plankeeper.resources.account_managers import service, store
from plankeeper.resources.account_managers.schemas import (
    AccountManager,
    AccountManagerCreate,
    AccountManagerListQuery,
    AccountManagerRow,
    AccountManagerUpdate,
)

pages = Pages()

ACCOUNT_MANAGERS_URL = f"{PREFIX}/account-managers"
STATE_CHOICES = {"": "Any", "true": "Active", "false": "Inactive"}


@pages.get("/account-managers", role="viewer", is_limited=True)
async def list_(request: PageRequest) -> HtmlPage:
    active, email = request.query.text("active"), request.query.text("email")[:255]
    after = parse_uuid(request.query.text("after"))
    query = AccountManagerListQuery(
        limit=PAGE_SIZE,
        after=str(after or "0"),
        active=active == "true" if active in ("true", "false") else UNSET,
        email=email or UNSET,
    )
    rows = await store.list_page(request.db, request.plan_manager_id, query, request.settings.operator_name)
    return HtmlPage(
        "people/account_managers.html",
        {
            "managers": rows,
            "active": active,
            "email": email,
            "states": STATE_CHOICES,
            "reassign_urls": {each.id: _reassign_url(each.id) for each in rows},
            **paginate_links(ACCOUNT_MANAGERS_URL, {"active": active, "email": email}, rows, after),
        },
    )


@pages.get("/account-managers/new", role="manager")
async def new(_request: PageRequest) -> HtmlPage:
    return HtmlPage("people/account_manager_new.html")


@pages.post("/account-managers", role="manager", on_error=new)
async def create(request: FormRequest) -> Redirect:
    created = await service.create(
        request.write_context, validate_struct(AccountManagerCreate, _form_values(request.form))
    )
    return Redirect(ACCOUNT_MANAGERS_URL, f"{_display_name(created)} created.")


@pages.get("/account-managers/{account_manager_id}/edit", role="manager")
async def edit(request: PageRequest, account_manager_id: UUID) -> HtmlPage:
    operator = request.settings.operator_name
    manager = or_404(await store.get_visible(request.db, request.plan_manager_id, account_manager_id, operator))
    current = form_from(AccountManagerCreate, manager)
    context = await edit_context(request, AccountManagerCreate, current, edited_manager(manager))
    context |= {"manager": manager, "reassign_url": _reassign_url(manager.id)}
    return HtmlPage("people/account_manager_edit.html", context)


@pages.post("/account-managers/{account_manager_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, account_manager_id: UUID) -> Redirect:
    or_404(await service.select_for_update(request.write_context, account_manager_id))
    operator = request.settings.operator_name
    manager = or_404(await store.get_visible(request.tx, request.plan_manager_id, account_manager_id, operator))
    await require_unchanged(request, edited_manager(manager))
    current = form_from(AccountManagerCreate, manager)
    updated = await service.update(
        request.write_context, account_manager_id, changes_in(AccountManagerCreate, request.form, current)
    )
    return Redirect(ACCOUNT_MANAGERS_URL, f"{_display_name(updated)} saved.", undo=request.undo_path)


@pages.post("/account-managers/{account_manager_id}/deactivate", role="manager")
async def deactivate(request: FormRequest, account_manager_id: UUID) -> Redirect:
    updated = await service.update(request.write_context, account_manager_id, AccountManagerUpdate(active=False))
    return Redirect(ACCOUNT_MANAGERS_URL, f"{_display_name(updated)} deactivated. Their participants stay assigned.")


@pages.post("/account-managers/{account_manager_id}/activate", role="manager")
async def activate(request: FormRequest, account_manager_id: UUID) -> Redirect:
    updated = await service.update(request.write_context, account_manager_id, AccountManagerUpdate(active=True))
    return Redirect(ACCOUNT_MANAGERS_URL, f"{_display_name(updated)} activated.")


def edited_manager(manager: AccountManager) -> EditedRecord:
    return EditedRecord("account_manager", manager.id, manager.updated_at, known_fields(AccountManagerCreate))


def _reassign_url(account_manager_id: UUID) -> str:
    """The page that sets another account manager for all participants of one."""
    query = parse_list_query(PARTICIPANTS, Form([("account_manager", str(account_manager_id))]))
    return selection_url(SET_ACCOUNT_MANAGER, query)


def _form_values(form: Form) -> dict[str, object]:
    return {name: form.text(name) or None for name in ("first_name", "last_name", "email")}


def _display_name(manager: AccountManagerRow) -> str:
    return " ".join(filter(None, (manager.first_name, manager.last_name))) or manager.email or "Account manager"
