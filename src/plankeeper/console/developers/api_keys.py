"""Settings, API keys: list, create, rotate, revoke, remove a plan manager."""

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.access.accounts import members as member_service
from plankeeper.access.api_keys import service, store
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.policy import SCOPE_PERMISSIONS
from plankeeper.access.request_log import store as request_store
from plankeeper.console.components.record_picker import plan_manager_choices
from plankeeper.console.developers.requests import (
    DAYS,
    KeptRequest,
    RequestCursor,
    errors_by_code,
    in_order_of_time,
    requests_by_day,
)
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.core.ids import parse_uuid

pages = Pages()

KEYS_URL = f"{PREFIX}/settings/keys"
MAX_NAME_LENGTH = 100
LIFETIMES = {"30": "30 days", "90": "90 days", "365": "1 year"}
OWNER_LIFETIMES = {**LIFETIMES, "": "Never"}  # only owners may create keys that never expire
OVERLAPS = {"0": "Immediately", "1": "1 hour", "24": "1 day", "168": "7 days"}
SCOPES = {
    "read": "read",
    "write": "write",
    "claims": "claims: make and submit claim batches, and record their results",
    "payments": "payments: make payment runs, and propose bank details",
}
DEFAULT_SCOPES = ("read", "write")


@pages.get("/settings/keys", role="manager")
async def list_(request: PageRequest) -> HtmlPage:
    keys = await store.list_by_plan_manager(request.db, request.plan_manager_id)
    rows = [(key, service.key_state(key), can_change(request, key)) for key in keys]
    rows.sort(key=lambda each: each[1] != "active")
    return HtmlPage("developers/api_keys.html", {"keys": rows, "names": request.account.plan_manager_names})


@pages.get("/settings/keys/new", role="manager")
async def new(request: PageRequest) -> HtmlPage:
    choices = {str(id_): name for id_, name, _ in manageable_plan_managers(request)}
    lifetimes = allowed_lifetimes(request, [request.plan_manager_id])
    return HtmlPage(
        "developers/api_key_new.html",
        {"choices": choices, "lifetimes": lifetimes, "scopes": _scopes(request), "default_scopes": DEFAULT_SCOPES},
    )


def _scopes(request: PageRequest) -> dict[str, str]:
    """The scopes that the account can give to a key."""
    needed = SCOPE_PERMISSIONS
    return {each: label for each, label in SCOPES.items() if each not in needed or request.has_permission(needed[each])}


@pages.post("/settings/keys", role="manager", on_error=new)
async def create(request: FormRequest) -> HtmlPage:
    name, scopes = request.form.text("name"), request.form.getlist("scope")
    allowed = {each for each, _, _ in manageable_plan_managers(request)}
    selected = {parse_uuid(each) for each in request.form.getlist("plan_manager_id")} or {request.plan_manager_id}
    ids = [each for each in selected if each]
    messages = {
        "name": "" if 0 < len(name) <= MAX_NAME_LENGTH else f"must have 1 to {MAX_NAME_LENGTH} characters",
        "scope": "" if scopes and set(scopes) <= SCOPES.keys() else "must be one or several of the choices",
        "lasts": lifetime_error(request, ids),
        "plan_manager_id": "" if selected <= allowed else "must be plan managers whose keys you can manage",
    }
    require_valid(messages)
    await member_service.require_manager(request.write_context, ids)
    await member_service.require_scopes(request.write_context, ids, scopes)
    secret = await service.create(request.write_context, name, ids, scopes, parse_duration(request.form.text("lasts")))
    return created_page(
        request, name, secret, ids[0] if request.plan_manager_id not in ids else request.plan_manager_id
    )


@pages.get("/settings/keys/{key_id}/rotate", role="manager")
async def rotate_form(request: PageRequest, key_id: UUID) -> HtmlPage:
    key = await get_changeable(request, key_id)
    lifetimes = allowed_lifetimes(request, key.plan_managers)
    return HtmlPage("developers/api_key_rotate.html", {"key": key, "overlaps": OVERLAPS, "lifetimes": lifetimes})


@pages.post("/settings/keys/{key_id}/rotate", role="manager", on_error=rotate_form)
async def rotate(request: FormRequest, key_id: UUID) -> HtmlPage:
    await member_service.require_manager(request.write_context, [request.plan_manager_id])
    key = require_changeable(request, await store.select_for_update(request.tx, key_id))
    await member_service.require_scopes(request.write_context, key.plan_managers, key.scopes)
    overlap, lifetime = request.form.text("overlap"), request.form.text("lasts")
    require_valid(
        {
            "overlap": "" if overlap in OVERLAPS else "must be one of the options",
            "lasts": lifetime_error(request, key.plan_managers),
        }
    )
    new_lifetime = parse_duration(lifetime)
    new_expiry = datetime.now(UTC) + new_lifetime if new_lifetime else None
    secret = await service.rotate(request.write_context, key, timedelta(hours=int(overlap)), new_expiry)
    return created_page(request, key.name, secret, request.plan_manager_id)


@pages.get("/settings/keys/{key_id}/revoke", role="manager")
async def revoke_form(request: PageRequest, key_id: UUID) -> HtmlPage:
    """Also for keys that act for plan managers of others: this plan manager can always be removed from them."""
    key = await get_active(request, key_id)
    context = {"key": key, "changeable": can_change(request, key), "name": plan_manager_name(request)}
    return HtmlPage("developers/api_key_revoke.html", context)


@pages.post("/settings/keys/{key_id}/revoke", role="manager")
async def revoke(request: FormRequest, key_id: UUID) -> Redirect:
    key = require_changeable(request, await store.select_for_update(request.tx, key_id))
    await service.revoke(request.write_context, key_id)
    return Redirect(KEYS_URL, f"API key {key.name} (…{key.last_four}) revoked.")


@pages.post("/settings/keys/{key_id}/remove-plan-manager", role="manager")
async def remove_plan_manager(request: FormRequest, key_id: UUID) -> Redirect:
    await member_service.require_manager(request.write_context, [request.plan_manager_id])
    changed = await service.remove_plan_manager(request.write_context, [key_id])
    key = or_404(next(iter(changed), None))
    consequence = " It had access to no other, so it is revoked." if key.revoked_at else ""
    message = (
        f"API key {key.name} (…{key.last_four}) no longer has access to {plan_manager_name(request)}.{consequence}"
    )
    return Redirect(KEYS_URL, message)


def created_page(request: PageRequest, name: str, secret: str, plan_manager_id: UUID) -> HtmlPage:
    """The only page that shows a key. It is not shown after a redirect, because the key would have to be stored."""
    return HtmlPage(
        "developers/api_key_created.html",
        {"name": name, "secret": secret, "plan_manager_id": plan_manager_id, "origin": request.origin},
    )


def manageable_plan_managers(request: PageRequest) -> list[tuple[UUID, str, str]]:
    """The plan managers whose keys the account may manage, each with its id, name and the account's role."""
    return [each for each in plan_manager_choices(request.account) if each[2] in ("manager", "owner")]


def can_change(request: PageRequest, key: ApiKey) -> bool:
    """Whether the key is active and the account manages all its plan managers, so that rotating extends no access."""
    return service.key_state(key) == "active" and set(key.plan_managers) <= {
        each for each, _, _ in manageable_plan_managers(request)
    }


async def get_active(request: PageRequest, key_id: UUID) -> ApiKey:
    """An active key with access to this plan manager; raises NotFound."""
    keys = await store.list_by_plan_manager(request.db, request.plan_manager_id)
    active = [each for each in keys if each.id == key_id and service.key_state(each) == "active"]
    return or_404(next(iter(active), None))


async def get_changeable(request: PageRequest, key_id: UUID) -> ApiKey:
    return require_changeable(request, await get_active(request, key_id))


def plan_manager_name(request: PageRequest) -> str:
    return request.account.plan_manager_names[request.plan_manager_id]


def allowed_lifetimes(request: PageRequest, plan_manager_ids: Iterable[UUID]) -> dict[str, str]:
    """The lifetimes that the account may choose for a key with access to these plan managers."""
    roles = [request.account.roles.get(each) for each in plan_manager_ids]
    return OWNER_LIFETIMES if all(role == "owner" for role in roles) else LIFETIMES


def lifetime_error(request: PageRequest, plan_manager_ids: Iterable[UUID]) -> str:
    """The error message for the lifetime of the form, or an empty string."""
    lifetime = request.form.text("lasts")
    if lifetime in allowed_lifetimes(request, plan_manager_ids):
        return ""
    return "can be Never only if you are an owner" if lifetime == "" else "must be one of the options"


def require_changeable(request: PageRequest, key: ApiKey | None) -> ApiKey:
    """The key if it belongs to this plan manager and the account can change it; otherwise raises NotFound."""
    if request.plan_manager_id not in or_404(key).plan_managers or not can_change(request, or_404(key)):
        raise NotFound
    return or_404(key)


def parse_duration(days: str) -> timedelta | None:
    return timedelta(days=int(days)) if days else None


def require_valid(messages: dict[str, str]) -> None:
    """Raises ValidationError with the messages that are not empty."""
    errors = {name: message for name, message in messages.items() if message}
    if errors:
        raise ValidationError(**errors)


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
    today = request.today
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
    return HtmlPage("developers/api_key_page.html", context)


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
