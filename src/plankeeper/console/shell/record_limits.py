"""The records that a limited viewer can't see are not found, as if they didn't exist."""

from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from uuid import UUID

from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.context import AccessedKind
from plankeeper.core.errors import NotFound
from plankeeper.resources.viewer_limits import list_inside

PARAMETERS: Mapping[str, AccessedKind] = {"participant_id": "participant", "invoice_id": "invoice"}


async def require_inside(request: PageRequest, path_params: Mapping[str, Any]) -> None:
    """Raise NotFound if the path names a participant or an invoice that the account can't see."""
    for name, kind in PARAMETERS.items():
        if name in path_params and not await select_inside(request, kind, [path_params[name]]):
            raise NotFound


async def select_inside(request: PageRequest, kind: AccessedKind, ids: Iterable[UUID]) -> Sequence[UUID]:
    """Those of the participants or invoices with these ids that the account can see, in their order."""
    listed, limit = list(ids), request.participants_of
    if limit is None:
        return listed
    inside = await list_inside(request.db, request.plan_manager_id, kind, listed, limit)
    return [each for each in listed if each in inside]
