"""Groups the events of one import or one request as one entry of a list."""

from collections.abc import Sequence
from itertools import groupby
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.event_texts import event_title
from plankeeper.console.labels import humanize
from plankeeper.events.schemas import HistoryEvent


class EventGroup(NamedTuple):
    """Events of one type that belong together, in the order of the list; most groups have one."""

    events: Sequence[HistoryEvent]

    @property
    def first(self) -> HistoryEvent:
        return self.events[0]

    @property
    def title(self) -> str:
        """`Participant added`; `50 participants added` for several."""
        title, count = event_title(self.first.type), len(self.events)
        if count == 1:
            return title
        kind = humanize(self.first.resource.kind)
        rest = title.removeprefix(kind)
        plural = f"{kind[:1].lower()}{kind[1:]}s".replace("aPI", "API")
        return f"{count} {plural}{rest}" if rest != title else f"{title} ({count})"


def group_events(events: Sequence[HistoryEvent]) -> list[EventGroup]:
    """Neighbours of one type from the same import or the same request."""
    return [EventGroup(list(group)) for _, group in groupby(events, key=_origin)]


def _origin(event: HistoryEvent) -> tuple[str, UUID | str]:
    return event.type, event.import_id or event.request_id or event.id
