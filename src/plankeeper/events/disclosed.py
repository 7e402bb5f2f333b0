"""The participants and invoices whose data events contain, for the access log."""

from collections.abc import Iterable, Mapping
from typing import cast
from uuid import UUID

import msgspec
from msgspec import Raw, Struct

from plankeeper.events.schemas import Event
from plankeeper.http.context import AccessedKind
from plankeeper.http.parsing import parse_uuid


class _Member(Struct):
    """The participant in the data of a team member's event."""

    participant_id: str | None = None


def list_disclosed(events: Iterable[Event]) -> Mapping[AccessedKind, list[UUID]]:
    """The ids of the records by kind, in the order of the events."""
    found: dict[AccessedKind, dict[UUID, None]] = {}
    for each in events:
        for kind, id_ in find_disclosed(each.resource.kind, each.resource.id, each.data, each.previous).items():
            found.setdefault(kind, {})[id_] = None
    return {kind: list(ids) for kind, ids in found.items()}


def find_disclosed(kind: str, resource_id: str, *data: Raw | None) -> Mapping[AccessedKind, UUID]:
    """The record that the data of an event is about: a team member's is that of the participant."""
    if kind == "team_member":
        ids = (msgspec.json.decode(each, type=_Member).participant_id for each in data if each)
        kind, resource_id = "participant", next(filter(None, ids), "")
    id_ = parse_uuid(resource_id) if kind in ("participant", "invoice") else None
    return {cast("AccessedKind", kind): id_} if id_ else {}
