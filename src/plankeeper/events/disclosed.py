"""The participants and invoices in the data of events, for the access log."""

from collections.abc import Iterable, Mapping
from typing import cast
from uuid import UUID

from plankeeper.core.context import AccessedKind
from plankeeper.core.ids import parse_uuid
from plankeeper.events.schemas import Event, ResourceRef


def list_disclosed(events: Iterable[Event]) -> Mapping[AccessedKind, list[UUID]]:
    """The ids of the records by kind, in the order of the events."""
    found: dict[AccessedKind, dict[UUID, None]] = {}
    for each in events:
        for kind, id_ in find_disclosed(each.resource).items():
            found.setdefault(kind, {})[id_] = None
    return {kind: list(ids) for kind, ids in found.items()}


def find_disclosed(resource: ResourceRef) -> Mapping[AccessedKind, UUID]:
    """The record that the data of an event is about: a team member's is that of the participant."""
    if resource.participant_id:
        return {"participant": resource.participant_id}
    id_ = parse_uuid(resource.id) if resource.kind in ("participant", "invoice") else None
    return {cast("AccessedKind", resource.kind): id_} if id_ else {}
