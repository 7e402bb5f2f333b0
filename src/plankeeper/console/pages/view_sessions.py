"""Invoice view sessions: what the script of an invoice's page says of how it is looked at."""

from uuid import UUID

from plankeeper.console.routing import Act, Look, Pages, Told
from plankeeper.http.errors import Invalid
from plankeeper.invoice_view_sessions import service
from plankeeper.invoice_view_sessions.service import Measured

pages = Pages()

LONGEST = 12  # digits of a figure


@pages.post("/invoices/{invoice_id}/view-session", need="viewer")
async def begin(act: Act, invoice_id: UUID) -> Told:
    return Told({"id": (await service.begin(act.write, invoice_id)).id})


@pages.post("/view-sessions/{session_id}/heartbeat", need="viewer")
async def beat(act: Act, session_id: UUID) -> Told:
    return heard(await service.beat(act.write, session_id, measured(act)))


@pages.post("/view-sessions/{session_id}/end", need="viewer")
async def end(act: Act, session_id: UUID) -> Told:
    return heard(await service.beat(act.write, session_id, measured(act), last=True))


def heard(still_open: bool) -> Told:
    """A session that is over is not begun again: its page begins another."""
    return Told(status=204 if still_open else 409)


def measured(look: Look) -> Measured:
    """The figures of a heartbeat; raises Invalid."""
    texts = {name: look.form.text(name) for name in Measured.__struct_fields__}
    wrong = {name: "must be a whole number" for name, text in texts.items() if not is_figure(text)}
    if wrong:
        raise Invalid(**wrong)
    return Measured(**{name: int(text) for name, text in texts.items()})


def is_figure(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= LONGEST
