"""Settings, webhooks: endpoints, their tests, their deliveries, replays."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from plankeeper.console.forms import struct_of
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect, Shown
from plankeeper.http.context import found
from plankeeper.http.errors import Invalid, NotFound
from plankeeper.http.parsing import uuid_of
from plankeeper.http.schemas import UuidListQuery
from plankeeper.webhooks import delivery_routes, delivery_store, endpoint_routes, endpoint_store
from plankeeper.webhooks.schemas import Replay, WebhookEndpointChange, WebhookEndpointCreate

pages = Pages()

WEBHOOKS = f"{PREFIX}/settings/webhooks"
PAGE = 50
STATUSES = ("pending", "succeeded", "failed", "cancelled")


@pages.get("/settings/webhooks", need="viewer")
async def list_(look: Look) -> Page:
    endpoints = await endpoint_store.page(look.db, look.plan_manager_id, UuidListQuery(limit=1000))
    return Page("webhooks.html", {"endpoints": endpoints})


@pages.get("/settings/webhooks/new", need="manager")
async def new(_look: Look) -> Page:
    return Page("webhook_new.html")


@pages.post("/settings/webhooks", need="manager", again=new)
async def create(act: Act) -> Page:
    values: dict[str, Any] = {"url": act.form.text("url"), "payload": act.form.text("payload") or "thin"}
    values["description"] = act.form.text("description") or None
    values["event_types"] = act.form.text("event_types").replace(",", " ").split() or ["*"]
    made = await endpoint_routes.create(act.write, struct_of(WebhookEndpointCreate, values))
    return Page("webhook_made.html", {"endpoint": made, "is_new": True})


@pages.get("/settings/webhooks/{endpoint_id}", need="viewer")
async def get(look: Look, endpoint_id: UUID) -> Page:
    endpoint = found(await endpoint_store.fetch(look.db, look.plan_manager_id, endpoint_id))
    status, before = look.query.text("status"), look.query.text("before")
    rows = await delivery_store.latest(
        look.db, look.plan_manager_id, endpoint_id, before_of(before), status if status in STATUSES else None, PAGE + 1
    )
    older = rows[PAGE - 1].id if len(rows) > PAGE else None
    shown = {"deliveries": rows[:PAGE], "older": older, "status": status, "statuses": STATUSES, "before": before}
    return Page("webhook.html", {"endpoint": endpoint, **shown})


@pages.post("/settings/webhooks/{endpoint_id}/test", need="manager", again=get)
async def test(act: Act, endpoint_id: UUID) -> Redirect:
    await endpoint_routes.test(act.write, endpoint_id)
    return Redirect(f"{WEBHOOKS}/{endpoint_id}", "A test is on its way. Reload this page to see what came of it.")


@pages.post("/settings/webhooks/{endpoint_id}/pause", need="manager")
async def pause(act: Act, endpoint_id: UUID) -> Redirect:
    await endpoint_routes.update(act.write, endpoint_id, WebhookEndpointChange(active=False))
    return Redirect(f"{WEBHOOKS}/{endpoint_id}", "Nothing more is sent to this endpoint until you resume it.")


@pages.post("/settings/webhooks/{endpoint_id}/resume", need="manager")
async def resume(act: Act, endpoint_id: UUID) -> Redirect:
    await endpoint_routes.update(act.write, endpoint_id, WebhookEndpointChange(active=True))
    return Redirect(f"{WEBHOOKS}/{endpoint_id}", "Events are sent again from now on. A replay sends the missed ones.")


@pages.post("/settings/webhooks/{endpoint_id}/replay", need="manager", again=get)
async def replay(act: Act, endpoint_id: UUID) -> Redirect:
    try:
        typed = datetime.fromisoformat(act.form.text("since"))
    except ValueError:
        raise Invalid(since="must be a date and a time, such as 2026-11-21T15:04") from None
    if typed.year < 2:
        raise Invalid(since="must be a date of the years from 2 on")
    since = typed.replace(tzinfo=typed.tzinfo or act.settings.time_zone)
    if since > datetime.now(UTC):
        raise Invalid(since="must not be in the future")
    answer = await endpoint_routes.replay(act.write, endpoint_id, Replay(since=since))
    some = {0: "No events are", 1: "1 event is"}.get(answer.events, f"{answer.events:,} events are")
    return Redirect(f"{WEBHOOKS}/{endpoint_id}", f"{some} sent again.")


@pages.get("/settings/webhooks/{endpoint_id}/rotate-secret", need="manager")
async def rotate_form(look: Look, endpoint_id: UUID) -> Page:
    return Page("webhook_rotate.html", {"endpoint": await endpoint_routes.get(look.read, endpoint_id)})


@pages.post("/settings/webhooks/{endpoint_id}/rotate-secret", need="manager")
async def rotate_secret(act: Act, endpoint_id: UUID) -> Page:
    return Page(
        "webhook_made.html", {"endpoint": await endpoint_routes.rotate_secret(act.write, endpoint_id), "is_new": False}
    )


@pages.get("/settings/webhooks/{endpoint_id}/delete", need="manager")
async def delete_form(look: Look, endpoint_id: UUID) -> Page:
    return Page("webhook_delete.html", {"endpoint": await endpoint_routes.get(look.read, endpoint_id)})


@pages.post("/settings/webhooks/{endpoint_id}/delete", need="manager")
async def delete(act: Act, endpoint_id: UUID) -> Redirect:
    await endpoint_routes.delete(act.write, endpoint_id)
    return Redirect(WEBHOOKS, "The endpoint is deleted, with its deliveries.")


async def _endpoint(look: Look, endpoint_id: UUID, delivery_id: UUID) -> Shown:  # noqa: ARG001 - the path has it
    return await get(look, endpoint_id)


@pages.post("/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}/retry", need="manager", again=_endpoint)
async def retry(act: Act, endpoint_id: UUID, delivery_id: UUID) -> Redirect:
    if await delivery_store.endpoint_of(act.tx, act.plan_manager_id, delivery_id) != endpoint_id:
        raise NotFound
    await delivery_routes.retry(act.write, delivery_id)
    return Redirect(f"{WEBHOOKS}/{endpoint_id}", "The delivery is attempted again now.")


def before_of(text: str) -> UUID | None:
    """Where a list of the newest goes on; null at its beginning."""
    return uuid_of(text) if text else None
