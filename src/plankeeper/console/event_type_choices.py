"""The types of events as boxes of a form, grouped by resource."""

from collections.abc import Sequence
from typing import NamedTuple

from plankeeper.console.labels import humanize
from plankeeper.events.event_types import NEVER_SENT, VERBS

ALL = "*"


class EventTypeGroup(NamedTuple):
    """The types of one resource; `pattern` selects all of them, also types of later versions."""

    name: str
    pattern: str
    types: list[str]


def event_type_groups() -> list[EventTypeGroup]:
    """Without the types that no endpoint receives."""
    types = {kind: [f"{kind}.{verb}" for verb in verbs] for kind, verbs in VERBS.items()}
    sent = {kind: [each for each in types_of_kind if each not in NEVER_SENT] for kind, types_of_kind in types.items()}
    return [EventTypeGroup(humanize(kind), f"{kind}.*", each) for kind, each in sent.items() if each]


def simplify_patterns(selected: Sequence[str]) -> list[str]:
    """The patterns without those that others include: `*` includes all, and `participant.*` each type of a participant.

    The order is that of the form. Unknown patterns stay, so that they are rejected.
    """
    if ALL in selected:
        return [ALL]
    groups = event_type_groups()
    known = {each for group in groups for each in (group.pattern, *group.types)}
    kept: list[str] = []
    for group in groups:
        kept += [group.pattern] if group.pattern in selected else [each for each in group.types if each in selected]
    return kept + [each for each in selected if each not in known]
