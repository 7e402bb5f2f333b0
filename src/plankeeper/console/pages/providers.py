"""Providers: list and search, details, create, edit, delete."""

from datetime import UTC, datetime
from uuid import UUID

from stdnum.au import abn

from plankeeper.console.confirmations import new_implausible, require_confirmed
from plankeeper.console.edit_forms import (
    EditedRecord,
    describe_changes,
    edit_context,
    find_changes,
    form_from,
    require_unchanged,
)
from plankeeper.console.forms import Form, without_spaces
from plankeeper.console.lists.page import show_list
from plankeeper.console.lists.providers import PROVIDERS
from plankeeper.console.lists.selection import download_list
from plankeeper.console.pages.trash_entries import retention, trash_path
from plankeeper.console.routing import PREFIX, Download, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.fields import STATE_CODES, apply_patch
from plankeeper.core.soft_validation import ValueWarning
from plankeeper.core.validation import known_fields
from plankeeper.resources.providers import queries, service, store
from plankeeper.resources.providers.rules import find_value_warnings
from plankeeper.resources.providers.schemas import Provider, ProviderListQuery, ProviderUpdate
from plankeeper.resources.trash import service as trash_service

pages = Pages()

PROVIDERS_URL = f"{PREFIX}/providers"
CHOICES = {"states": {"": "Not set", **{each: each for each in STATE_CODES}}}


@pages.get("/providers", role="viewer")
async def list_(request: PageRequest) -> HtmlPage:
    return await show_list(request, PROVIDERS)


@pages.get("/providers.csv", role="viewer")
async def download(request: PageRequest) -> Download:
    return await download_list(request, PROVIDERS)


@pages.get("/providers/new", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    return HtmlPage("provider_new.html", {"form": request.form or empty_form(), **CHOICES})


@pages.post("/providers", role="manager", on_error=new)
async def create(request: FormRequest) -> Redirect:
    change = await plausible_change(request, _new_provider(), is_new=True)
    created = await service.create(request.write_context, change)
    return Redirect(f"{PROVIDERS_URL}/{created.id}", f"{created.entity_name or 'Provider'} added.")


@pages.get("/providers/{provider_id}/edit", role="manager")
async def edit(request: PageRequest, provider_id: UUID) -> HtmlPage:
    provider = await get_or_404(request, provider_id)
    context = await edit_context(request, ProviderUpdate, provider_form(provider), edited_provider(provider))
    return HtmlPage("provider_edit.html", {"provider": provider, **context, **CHOICES})


@pages.post("/providers/{provider_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, provider_id: UUID) -> Redirect:
    before = or_404(await store.get_for_update(request.tx, request.plan_manager_id, provider_id))
    await require_unchanged(request, edited_provider(before))
    change = await plausible_change(request, before)
    await service.save(request.write_context, before, change)
    return Redirect(
        f"{PROVIDERS_URL}/{provider_id}", f"Changes saved{describe_changes(change)}.", undo=request.undo_path
    )


@pages.get("/providers/{provider_id}/delete", role="manager")
async def delete_form(request: PageRequest, provider_id: UUID) -> HtmlPage:
    return HtmlPage("provider_delete.html", {"provider": await get_or_404(request, provider_id), **retention(request)})


@pages.post("/providers/{provider_id}/delete", role="manager")
async def delete(request: FormRequest, provider_id: UUID) -> Redirect:
    provider = or_404(await store.get(request.tx, request.plan_manager_id, provider_id))
    entry = await trash_service.delete(request.write_context, "provider", provider_id)
    return Redirect(PROVIDERS_URL, f"{provider.entity_name or 'Provider'} moved to the trash.", undo=trash_path(entry))


async def get_or_404(request: PageRequest, provider_id: UUID) -> Provider:
    return or_404(await store.get(request.db, request.plan_manager_id, provider_id))


async def plausible_change(request: FormRequest, before: Provider, *, is_new: bool = False) -> ProviderUpdate:
    """The change of a form; raises FormError for errors, and for warnings that the person hasn't confirmed."""
    current = provider_form(before)
    form = without_spaces(request.form, "abn", current, abn.is_valid)
    change, errors = find_changes(ProviderUpdate, form, current)
    after = apply_patch(change, before)
    implausible = new_implausible([] if is_new else find_value_warnings(before), find_value_warnings(after))
    if after.abn and after.abn != before.abn:
        implausible += await find_abn_holders(request, after.abn, before.id)
    require_confirmed(request.form, implausible, errors, PROVIDERS_URL)
    return change


async def find_abn_holders(request: FormRequest, number: str, own_id: UUID) -> list[ValueWarning]:
    """A warning about another provider with the same ABN, stored with or without spaces."""
    query = ProviderListQuery(limit=2, abn=number)
    for other in await queries.list_page(request.tx.reader, request.plan_manager_id, query):
        if other.id != own_id:
            return [ValueWarning("abn", f"is already the ABN of {other.entity_name or 'another provider'}", other.id)]
    return []


def _new_provider() -> Provider:
    """A provider with the default values."""
    now = datetime.now(UTC)
    return Provider(id=UUID(int=0), created_at=now, updated_at=now)


def empty_form() -> Form:
    """The form of a new provider with the default values."""
    return form_from(ProviderUpdate, _new_provider())


def edited_provider(provider: Provider) -> EditedRecord:
    return EditedRecord("provider", provider.id, provider.updated_at, known_fields(ProviderUpdate))


def provider_form(provider: Provider) -> Form:
    return form_from(ProviderUpdate, provider)
