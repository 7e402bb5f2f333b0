"""Settings, API keys: list, make, rotate, revoke."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

from plankeeper.api_keys import service, store
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.console.pages.sign_in import named
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.context import found
from plankeeper.http.errors import Invalid, NotFound
from plankeeper.http.parsing import uuid_of

pages = Pages()

KEYS = f"{PREFIX}/settings/keys"
LONGEST_NAME = 100
LASTING = {"30": "30 days", "90": "90 days", "365": "1 year", "": "No end"}
OVERLAPS = {"0": "At once", "1": "1 hour", "24": "1 day", "168": "7 days"}
SCOPES = ("read", "write")


@pages.get("/settings/keys", need="manager")
async def list_(look: Look) -> Page:
    keys = await store.fetch_of(look.db, look.plan_manager_id)
    told = [(key, state_of(key), may_change(look, key)) for key in keys]
    told.sort(key=lambda each: each[1] != "active")
    return Page("keys.html", {"keys": told, "names": look.account.plan_manager_names})


@pages.get("/settings/keys/new", need="manager")
async def new(look: Look) -> Page:
    return Page("key_new.html", {"choices": reach(look), "lasting": LASTING, "scopes": SCOPES})


@pages.post("/settings/keys", need="manager", again=new)
async def create(act: Act) -> Page:
    name, scopes = act.form.text("name"), act.form.several("scope")
    allowed = {each for each, _, _ in reach(act)}
    wanted = {uuid_of(each) for each in act.form.several("plan_manager_id")} or {act.plan_manager_id}
    faults = {
        "name": "" if 0 < len(name) <= LONGEST_NAME else f"must have 1 to {LONGEST_NAME} characters",
        "scope": "" if scopes and set(scopes) <= set(SCOPES) else "must be read, write or both",
        "lasts": "" if act.form.text("lasts") in LASTING else "must be one of the list",
        "plan_manager_id": "" if wanted <= allowed else "must be ones that you manage keys of",
    }
    require(faults)
    ids = [each for each in wanted if each]
    secret = await service.create(act.write, name, ids, scopes, lasting(act.form.text("lasts")))
    return made(act, name, secret, ids[0] if act.plan_manager_id not in ids else act.plan_manager_id)


@pages.get("/settings/keys/{key_id}/rotate", need="manager")
async def rotate_form(look: Look, key_id: UUID) -> Page:
    return Page("key_rotate.html", {"key": await usable(look, key_id), "overlaps": OVERLAPS, "lasting": LASTING})


@pages.post("/settings/keys/{key_id}/rotate", need="manager", again=rotate_form)
async def rotate(act: Act, key_id: UUID) -> Page:
    old = locked(act, await store.fetch_for_update(act.tx, key_id))
    overlap, lasts = act.form.text("overlap"), act.form.text("lasts")
    require({
        "overlap": "" if overlap in OVERLAPS else "must be one of the list",
        "lasts": "" if lasts in LASTING else "must be one of the list",
    })  # fmt: skip
    secret = await service.rotate(act.write, old, timedelta(hours=int(overlap)), lasting(lasts))
    return made(act, old.name, secret, act.plan_manager_id)


@pages.get("/settings/keys/{key_id}/revoke", need="manager")
async def revoke_form(look: Look, key_id: UUID) -> Page:
    return Page("key_revoke.html", {"key": await usable(look, key_id)})


@pages.post("/settings/keys/{key_id}/revoke", need="manager")
async def revoke(act: Act, key_id: UUID) -> Redirect:
    key = locked(act, await store.fetch_for_update(act.tx, key_id))
    await service.revoke(act.write, key_id)
    return Redirect(KEYS, f"The key {key.name} (…{key.last_four}) is revoked.")


def made(look: Look, name: str, secret: str, plan_manager_id: UUID) -> Page:
    """The one page that shows a key. It is the answer itself: what is told after a redirect would have to be kept."""
    return Page("key_made.html", {"name": name, "secret": secret, "owner": plan_manager_id, "look": look})


def reach(look: Look) -> list[tuple[UUID, str, str]]:
    """The plan managers whose keys the account manages."""
    return [each for each in named(look.account) if each[2] in ("manager", "owner")]


def may_change(look: Look, key: ApiKey) -> bool:
    """A key that reaches further than the account does is the operator's: rotated, it would be more than they have."""
    return state_of(key) == "active" and set(key.plan_managers) <= {each for each, _, _ in reach(look)}


def state_of(key: ApiKey) -> str:
    if key.revoked_at:
        return "revoked"
    return "expired" if key.expires_at and key.expires_at <= datetime.now(UTC) else "active"


async def usable(look: Look, key_id: UUID) -> ApiKey:
    keys = await store.fetch_of(look.db, look.plan_manager_id)
    return locked(look, next((each for each in keys if each.id == key_id), None))


def locked(look: Look, key: ApiKey | None) -> ApiKey:
    """The key, if it is this plan manager's, in use, and theirs to change; raises NotFound otherwise."""
    if look.plan_manager_id not in found(key).plan_managers or not may_change(look, found(key)):
        raise NotFound
    return found(key)


def lasting(days: str) -> timedelta | None:
    return timedelta(days=int(days)) if days else None


def require(faults: dict[str, str]) -> None:
    """Raises Invalid where there is a fault."""
    wrong = {name: fault for name, fault in faults.items() if fault}
    if wrong:
        raise Invalid(**wrong)
