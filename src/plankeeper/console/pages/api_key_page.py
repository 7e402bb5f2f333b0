"""An API key: its requests by day, its errors by code, its latest requests, and its rejected requests by reason."""

from collections.abc import Mapping
from datetime import datetime, timedelta
from uuid import UUID

from plankeeper.access.api_keys import service, store
from plankeeper.access.request_log import store as request_store
from plankeeper.console.logged_requests import KeptRequest, RequestCursor, in_order_of_time
from plankeeper.console.pages.api_keys import can_change
from plankeeper.console.request_charts import DAYS, errors_by_code, requests_by_day
from plankeeper.console.routing import HtmlPage, PageRequest, Pages
from plankeeper.core.context import or_404

pages = Pages()

LATEST_REQUESTS = 10
# The reasons for rejecting a known key, as a few words and as a sentence.
REJECTIONS: Mapping[str, tuple[str, str]] = {
    "expired_api_key": ("expired", "The key had expired."),
    "revoked_api_key": ("revoked", "The key was revoked."),
    "plan_manager_not_allowed": (
        "plan manager not allowed",
        "The key has no access to the plan manager in the header X-Plan-Manager-Id.",
    ),
    "missing_plan_manager_id": ("no plan manager", "The request had no header X-Plan-Manager-Id."),
    "invalid_plan_manager_id": ("invalid plan manager", "The header X-Plan-Manager-Id wasn’t a UUID."),
}


@pages.get("/settings/keys/{key_id}", role="manager")
async def get(request: PageRequest, key_id: UUID) -> HtmlPage:
    keys = await store.list_by_plan_manager(request.db, request.plan_manager_id)
    key = or_404(next((each for each in keys if each.id == key_id), None))
    today = datetime.now(request.settings.time_zone).date()
    since = today - timedelta(days=DAYS - 1)
    counts = await request_store.list_key_days(request.db, request.plan_manager_id, key_id, since)
    was_used = counts or key.last_used_at
    latest = await list_latest(request, key_id) if was_used else []
    # The time of the key's last use is updated less often.
    times = [each.request.responded_at for each in latest] + ([key.last_used_at] if key.last_used_at else [])
    context = {
        "key": key,
        "state": service.key_state(key),
        "changeable": can_change(request, key),
        "names": request.account.plan_manager_names,
        "last_used_at": max(times, default=None),
        "chart": requests_by_day(counts, today),
        "errors_by_code": errors_by_code(counts, str(key_id)),
        "requests": latest,
        "rejections": [
            (each, *REJECTIONS.get(each.reason, (each.reason, each.reason)))
            for each in await request_store.list_rejections(request.db, key_id)
        ],
        "rate_limit": request.settings.rate_limit if key.rate_limit is None else key.rate_limit,
        "retention_days": request.settings.request_log_retention,
    }
    return HtmlPage("api_key_page.html", context)


async def list_latest(request: PageRequest, key_id: UUID) -> list[KeptRequest]:
    """The latest requests of a key, newest first."""
    batches = await request_store.list_latest_of_key(request.db, request.plan_manager_id, key_id, LATEST_REQUESTS)
    found = [
        KeptRequest(RequestCursor(batch.id, position), each)
        for batch in batches
        for position, each in enumerate(batch.requests)
        if each.key_id == str(key_id)
    ]
    return in_order_of_time(found)[:LATEST_REQUESTS]
