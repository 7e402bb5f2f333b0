"""Saving, renaming, sharing and deleting views. Managers and owners share them, and change shared ones."""

import re
from datetime import UTC, datetime
from urllib.parse import unquote_plus
from uuid import UUID

from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.access.policy import is_role_at_least
from plankeeper.access.saved_views import store
from plankeeper.access.saved_views.store import SavedView
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.database.client import Executor

MAX_NAME_LENGTH = 60
MAX_QUERY_LENGTH = 2000
MAX_OWN_VIEWS = 50  # of an account, of all lists
MAX_SHARED_VIEWS = 50  # of a plan manager, of all lists


def can_share(role: str | None) -> bool:
    return is_role_at_least(role, "manager")


def can_change(view: SavedView, account_id: UUID, role: str | None) -> bool:
    """Whether an account may rename and delete a view."""
    return can_share(role) if view.is_shared else view.owner_id == account_id


async def get(db: Executor, plan_manager_id: UUID, account_id: UUID, view_id: UUID) -> SavedView:
    """A view that an account sees; raises NotFound."""
    for each in await store.list_visible(db, plan_manager_id, account_id):
        if each.id == view_id:
            return each
    raise NotFound


async def create(
    ctx: WriteContext, role: str | None, list_kind: str, name: str, query: str, *, is_shared: bool
) -> SavedView:
    """Save a query under a name; raises ValidationError."""
    account_id = _account_id(ctx)
    view = SavedView(uuid7(), account_id, list_kind, name, query, is_shared and can_share(role), datetime.now(UTC))
    if len(query) > MAX_QUERY_LENGTH:
        raise ValidationError(form=f"The filters have more than {MAX_QUERY_LENGTH:,} characters.")
    await _require_valid(ctx, view)
    await store.insert(ctx.tx, ctx.plan_manager_id, view)
    return view


async def update(ctx: WriteContext, role: str | None, view: SavedView, name: str, *, is_shared: bool) -> None:
    """Rename a view, and share it or keep it for its owner; raises NotFound and ValidationError.

    A shared view that isn't shared any more belongs to the account that changes it only if that account saved it.
    """
    if not can_change(view, _account_id(ctx), role):
        raise NotFound
    if view.is_shared and not is_shared and view.owner_id != ctx.actor.account_id:
        raise ValidationError(
            is_shared="can only be changed by the person who saved the view. You can delete the view."
        )
    changed = replace(view, name=name, is_shared=is_shared and can_share(role))
    await _require_valid(ctx, changed)
    await store.update(ctx.tx, ctx.plan_manager_id, view.id, name, is_shared=changed.is_shared)


async def delete(ctx: WriteContext, role: str | None, view: SavedView) -> None:
    """Delete a view; raises NotFound."""
    if not can_change(view, _account_id(ctx), role):
        raise NotFound
    await store.delete_many(ctx.tx, ctx.plan_manager_id, [view.id])


async def delete_about(ctx: WriteContext, participant_id: UUID, pattern: str | None) -> int:
    """Delete the views of a participant and those that search for a text about them, and return their number.

    `pattern` matches such a text without regard to case; null if there is none.
    """
    texts = [re.escape(str(participant_id)), *([pattern] if pattern else [])]
    matcher = re.compile("|".join(texts), re.IGNORECASE)
    views = await store.list_all(ctx.tx, ctx.plan_manager_id)
    ids = [each.id for each in views if matcher.search(unquote_plus(each.query))]
    await store.delete_many(ctx.tx, ctx.plan_manager_id, ids)
    return len(ids)


async def _require_valid(ctx: WriteContext, view: SavedView) -> None:
    """Check the name and the number of views."""
    if not 0 < len(view.name) <= MAX_NAME_LENGTH or not view.name.isprintable():
        raise ValidationError(name=f"must have 1 to {MAX_NAME_LENGTH} characters on one line")
    others = [
        each for each in await store.list_visible(ctx.tx, ctx.plan_manager_id, _account_id(ctx)) if each.id != view.id
    ]
    if any((each.list_kind, each.name.casefold()) == (view.list_kind, view.name.casefold()) for each in others):
        raise ValidationError(name="must differ from the names of the list’s other views")
    same = sum(each.is_shared == view.is_shared for each in others)
    if same >= (MAX_SHARED_VIEWS if view.is_shared else MAX_OWN_VIEWS):
        kind = "shared views" if view.is_shared else "views of your own"
        raise ValidationError(form=f"There are {same} {kind} already. Delete one first.")


def _account_id(ctx: WriteContext) -> UUID:
    account_id = ctx.actor.account_id
    if account_id is None:
        raise LookupError("only people save views")
    return account_id
