"""What events show outside the console: not from where somebody signed in."""

import msgspec
from msgspec import Raw

from plankeeper.events.schemas import Event

_CONSOLE_MEMBERS = ("address", "user_agent")


def redact(event: Event) -> Event:
    """The event without the client address and the browser of an account."""
    if event.resource.kind == "account":
        event.data, event.previous = redact_data(event.data), redact_data(event.previous)
    return event


def redact_data(data: Raw | None) -> Raw | None:
    """The data of an event of an account without the client address and the browser."""
    if data is None:
        return None
    members = msgspec.json.decode(data, type=dict[str, Raw])
    return Raw(msgspec.json.encode({name: each for name, each in members.items() if name not in _CONSOLE_MEMBERS}))
