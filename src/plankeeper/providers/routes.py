"""Providers: list, create, get, update, delete."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.events.recorder import record
from plankeeper.http.context import Read, Write, found
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, WRITE, Routes
from plankeeper.http.schemas import Empty, Page, applied, json_text
from plankeeper.providers import store
from plankeeper.providers.queries import count, page
from plankeeper.providers.schemas import BasicProvider, Provider, ProviderChange, ProviderListQuery, ProviderViewQuery


async def _locked(call: Write, provider_id: UUID) -> Provider | None:
    rows = await store.records_for_update(call.tx, call.plan_manager_id, [provider_id])
    return rows[0] if rows else None


routes = Routes("providers", lock=_locked)


@routes.get("/providers", need=READ, extension=True)
async def list_(call: Read, query: ProviderListQuery) -> Page[BasicProvider] | Page[Provider]:
    """List providers."""
    rows = await page(call.db, call.plan_manager_id, query)
    total = None if query.by_cursor else await count(call.db, call.plan_manager_id, query)
    full = page_of(query, rows, total)
    if query.view == "full":
        return full
    return Page([_basic(provider) for provider in full.data], full.pagination)


@routes.post("/providers", need=WRITE)
async def create(call: Write, query: ProviderViewQuery, change: ProviderChange) -> BasicProvider | Provider:
    """Create a provider."""
    after = applied(change, Provider(id=uuid7(), created_at=datetime.now(UTC)))
    await store.put(call.tx, call.plan_manager_id, json_text([after]))
    await record(call, "provider.created", None, after)
    return _viewed(after, query)


@routes.get("/providers/{provider_id}", need=READ)
async def get(call: Read, provider_id: UUID, query: ProviderViewQuery) -> BasicProvider | Provider:
    """Get a provider."""
    return _viewed(found(await store.fetch(call.db, call.plan_manager_id, provider_id)), query)


@routes.put("/providers/{provider_id}", need=WRITE, extension=True)
async def update(
    call: Write, provider_id: UUID, query: ProviderViewQuery, change: ProviderChange
) -> BasicProvider | Provider:
    """Update a provider. Absent members stay as they are; null clears."""
    before = found(await _locked(call, provider_id))
    after = applied(change, before)
    if after != before:
        await store.put(call.tx, call.plan_manager_id, json_text([after]))
        await record(call, "provider.updated", before, after)
    return _viewed(after, query)


@routes.delete("/providers/{provider_id}", need=WRITE)
async def delete(call: Write, provider_id: UUID) -> Empty:
    """Delete a provider for good. Its invoices stay, and keep its id."""
    before = found(await store.remove(call.tx, call.plan_manager_id, provider_id))
    await record(call, "provider.deleted", before, None)
    return Empty()


def _viewed(provider: Provider, query: ProviderViewQuery) -> BasicProvider | Provider:
    return provider if query.view == "full" else _basic(provider)


def _basic(provider: Provider) -> BasicProvider:
    return BasicProvider(provider.id, provider.entity_name, provider.abn, provider.email)
