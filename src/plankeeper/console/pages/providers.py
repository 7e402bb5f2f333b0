"""Providers: search, the whole record, new, edit, delete."""

from datetime import UTC, datetime
from urllib.parse import urlencode
from uuid import UUID

from stdnum.au import abn

from plankeeper.console.edit_forms import filled, new_in, require_unchanged, to_edit
from plankeeper.console.forms import Form
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.context import found
from plankeeper.http.parsing import uuid_of
from plankeeper.http.schemas import STATES
from plankeeper.providers import queries, routes, search, store
from plankeeper.providers.schemas import Provider, ProviderChange, ProviderListQuery, ProviderViewQuery

pages = Pages()

PROVIDERS = f"{PREFIX}/providers"
PAGE = 50
SHOWN = {"is_abn": abn.is_valid}
CHOICES = {"states": {"": "not set", **{each: each for each in STATES}}}


@pages.get("/providers", need="viewer")
async def list_(look: Look) -> Page:
    text, after = look.query.text("q")[:255], uuid_of(look.query.text("after"))
    query = ProviderListQuery(limit=PAGE, after=str(after) if after else "0")
    if text:
        rows = await search.page(look.db, look.plan_manager_id, text, query)
    else:
        rows = await queries.page(look.db, look.plan_manager_id, query)
    given = {"q": text} if text else {}
    first = f"{PROVIDERS}?{urlencode(given)}" if given else PROVIDERS
    following = {**given, "after": str(rows[PAGE - 1].id)} if len(rows) > PAGE else None
    onward = {"next": following and f"{PROVIDERS}?{urlencode(following)}", "first": first if after else None}
    return Page("providers.html", {"providers": rows[:PAGE], "q": text, **onward, **SHOWN})


@pages.get("/providers/new", need="manager")
async def new(look: Look) -> Page:
    return Page("provider_new.html", {"form": look.form or empty(), **CHOICES})


@pages.post("/providers", need="manager", again=new)
async def create(act: Act) -> Redirect:
    made = await routes.create(act.write, ProviderViewQuery(), new_in(ProviderChange, act.form, empty()))
    return Redirect(f"{PROVIDERS}/{made.id}", f"{made.entity_name or 'The provider'} is added.")


@pages.get("/providers/{provider_id}", need="viewer")
async def get(look: Look, provider_id: UUID) -> Page:
    return Page("provider.html", {"provider": await fetched(look, provider_id), **SHOWN})


@pages.get("/providers/{provider_id}/edit", need="manager")
async def edit(look: Look, provider_id: UUID) -> Page:
    provider = await fetched(look, provider_id)
    return Page("provider_edit.html", {"provider": provider, **to_edit(look, shown(provider)), **CHOICES})


@pages.post("/providers/{provider_id}/edit", need="manager", again=edit)
async def update(act: Act, provider_id: UUID) -> Redirect:
    rows = await store.records_for_update(act.tx, act.plan_manager_id, [provider_id])
    now = shown(found(next(iter(rows), None)))
    require_unchanged(act, now)
    change = new_in(ProviderChange, act.form, now)
    await routes.update(act.write, provider_id, ProviderViewQuery(), change)
    return Redirect(f"{PROVIDERS}/{provider_id}", "The changes are saved.")


@pages.get("/providers/{provider_id}/delete", need="manager")
async def delete_form(look: Look, provider_id: UUID) -> Page:
    return Page("provider_delete.html", {"provider": await fetched(look, provider_id)})


@pages.post("/providers/{provider_id}/delete", need="manager")
async def delete(act: Act, provider_id: UUID) -> Redirect:
    provider = found(await store.fetch(act.tx, act.plan_manager_id, provider_id))
    await routes.delete(act.write, provider_id)
    return Redirect(PROVIDERS, f"{provider.entity_name or 'The provider'} is deleted.")


async def fetched(look: Look, provider_id: UUID) -> Provider:
    return found(await store.fetch(look.db, look.plan_manager_id, provider_id))


def empty() -> Form:
    """The form of a new provider, with what it has unless something else is said."""
    return filled(ProviderChange, Provider(id=UUID(int=0), created_at=datetime.now(UTC)))


def shown(provider: Provider) -> Form:
    return filled(ProviderChange, provider)
