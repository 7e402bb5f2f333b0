"""Events of exports, for the console and the command line."""

from uuid import UUID

from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.core.context import WriteContext
from plankeeper.events.recorder import record_event


class Export(Struct):
    """An export: the kind of the records, the query that selected them, and their number."""

    id: UUID
    what: str
    filter: str | None
    rows: int


async def record_export(ctx: WriteContext, what: str, filter_: str | None, rows: int) -> None:
    """Record the event `export.created`."""
    # The history of a person shows the exports of the person.
    resource_id = filter_ if what == "person" else None
    await record_event(ctx, "export.created", None, Export(uuid7(), what, filter_ or None, rows), resource_id)
