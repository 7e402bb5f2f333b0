"""The API key of a request."""

from plankeeper.access.api_keys import store
from plankeeper.access.api_keys.schemas import CurrentApiKey
from plankeeper.core.context import KeyContext, or_404
from plankeeper.http.routing import ANY, Router

router = Router("api_keys")


@router.get("/me", scope=ANY, extension=True, has_etag=True)
async def get_current(ctx: KeyContext) -> CurrentApiKey:
    """Get the API key of the request, and the plan managers that it can act for. `X-Plan-Manager-Id` isn't needed."""
    key = or_404(await store.get_current(ctx.db, ctx.api_key_id))
    key.rate_limit = (ctx.settings.rate_limit if key.rate_limit is None else key.rate_limit) or None
    return key
