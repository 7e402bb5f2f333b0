"""Operations on providers that the API and the console share."""

from datetime import UTC, datetime
from uuid import UUID

from uuid_utils.compat import uuid7

from plankeeper.events.recorder import is_changed, record_event
from plankeeper.http.context import WriteContext, or_404
from plankeeper.http.json import to_json
from plankeeper.http.schemas import apply_patch
from plankeeper.providers import store
from plankeeper.providers.schemas import Provider, ProviderUpdate


async def select_for_update(ctx: WriteContext, provider_id: UUID) -> Provider | None:
    """Lock a provider until the transaction ends."""
    rows = await store.select_for_update(ctx.tx, ctx.plan_manager_id, [provider_id])
    return rows[0] if rows else None


async def create(ctx: WriteContext, change: ProviderUpdate) -> Provider:
    after = apply_patch(change, Provider(id=uuid7(), created_at=datetime.now(UTC)))
    await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
    await record_event(ctx, "provider.created", None, after)
    return after


async def update(ctx: WriteContext, provider_id: UUID, change: ProviderUpdate) -> Provider:
    """Apply the members that are set; raises NotFound."""
    before = or_404(await select_for_update(ctx, provider_id))
    after = apply_patch(change, before)
    if is_changed(before, after):
        await store.upsert(ctx.tx, ctx.plan_manager_id, to_json([after]))
        await record_event(ctx, "provider.updated", before, after)
    return after


async def delete(ctx: WriteContext, provider_id: UUID) -> None:
    """Delete a provider; raises NotFound. Its invoices are kept."""
    before = or_404(await store.delete(ctx.tx, ctx.plan_manager_id, provider_id))
    await record_event(ctx, "provider.deleted", before, None)
