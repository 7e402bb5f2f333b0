"""Account managers: list, create, edit, deactivate."""

from urllib.parse import urlencode
from uuid import UUID

from msgspec import UNSET

from plankeeper.account_managers import routes, service, store
from plankeeper.account_managers.schemas import (
    AccountManagerChange,
    AccountManagerCreate,
    AccountManagerListQuery,
    AccountManagerRecord,
)
from plankeeper.console.edit_forms import filled, new_in, require_unchanged, to_edit
from plankeeper.console.forms import Form, struct_of
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.context import found
from plankeeper.http.parsing import uuid_of

pages = Pages()

ACCOUNT_MANAGERS = f"{PREFIX}/account-managers"
PAGE = 50
STATES = {"": "All", "true": "Active", "false": "Not active"}


@pages.get("/account-managers", need="viewer")
async def list_(look: Look) -> Page:
    active, email = look.query.text("active"), look.query.text("email")[:255]
    after = uuid_of(look.query.text("after"))
    query = AccountManagerListQuery(
        limit=PAGE, after=str(after or "0"), active=active == "true" if active in ("true", "false") else UNSET,
        email=email or UNSET,
    )  # fmt: skip
    rows = await store.page(look.db, look.plan_manager_id, query, look.settings.operator_name)
    given = {name: value for name, value in (("active", active), ("email", email)) if value}
    following = f"{ACCOUNT_MANAGERS}?{urlencode(given | {'after': rows[PAGE - 1].id})}" if len(rows) > PAGE else None
    first = ACCOUNT_MANAGERS + (f"?{urlencode(given)}" if given else "")
    return Page("account_managers.html", {
        "managers": rows[:PAGE], "next": following, "first": first if after else None,
        "active": active, "email": email, "states": STATES,
    })  # fmt: skip


@pages.get("/account-managers/new", need="manager")
async def new(_look: Look) -> Page:
    return Page("account_manager_new.html")


@pages.post("/account-managers", need="manager", again=new)
async def create(act: Act) -> Redirect:
    made = await service.create(act.write, struct_of(AccountManagerCreate, _typed(act.form)))
    return Redirect(ACCOUNT_MANAGERS, f"{_called(made)} is an account manager now.")


@pages.get("/account-managers/{account_manager_id}/edit", need="manager")
async def edit(look: Look, account_manager_id: UUID) -> Page:
    kept = await routes.get(look.read, account_manager_id)
    return Page("account_manager_edit.html", {"manager": kept, **to_edit(look, filled(AccountManagerCreate, kept))})


@pages.post("/account-managers/{account_manager_id}/edit", need="manager", again=edit)
async def update(act: Act, account_manager_id: UUID) -> Redirect:
    found(await service.fetch_for_update(act.write, account_manager_id))
    operator = act.settings.operator_name
    kept = found(await store.visible(act.tx, act.plan_manager_id, account_manager_id, operator))
    now = filled(AccountManagerCreate, kept)
    require_unchanged(act, now)
    changed = await service.update(act.write, account_manager_id, new_in(AccountManagerCreate, act.form, now))
    return Redirect(ACCOUNT_MANAGERS, f"{_called(changed)} is saved.")


@pages.post("/account-managers/{account_manager_id}/deactivate", need="manager")
async def deactivate(act: Act, account_manager_id: UUID) -> Redirect:
    changed = await service.update(act.write, account_manager_id, AccountManagerChange(active=False))
    return Redirect(ACCOUNT_MANAGERS, f"{_called(changed)} is not active any more. Participants keep who they have.")


@pages.post("/account-managers/{account_manager_id}/activate", need="manager")
async def activate(act: Act, account_manager_id: UUID) -> Redirect:
    changed = await service.update(act.write, account_manager_id, AccountManagerChange(active=True))
    return Redirect(ACCOUNT_MANAGERS, f"{_called(changed)} is active again.")


def _typed(form: Form) -> dict[str, object]:
    return {name: form.text(name) or None for name in ("first_name", "last_name", "email")}


def _called(manager: AccountManagerRecord) -> str:
    return " ".join(filter(None, (manager.first_name, manager.last_name))) or manager.email or "The account manager"
