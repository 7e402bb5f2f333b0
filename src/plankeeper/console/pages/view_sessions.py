"""Invoice view sessions: what the script of an invoice's page says of how it is looked at."""

from uuid import UUID

from plankeeper.console.routing import FormRequest, JsonResult, PageRequest, Pages
from plankeeper.http.errors import ValidationError
from plankeeper.invoice_view_sessions import service
from plankeeper.invoice_view_sessions.service import ClientReport

pages = Pages()

MAX_DIGITS = 12  # digits of a figure


@pages.post("/invoices/{invoice_id}/view-session", role="viewer")
async def start(request: FormRequest, invoice_id: UUID) -> JsonResult:
    return JsonResult({"id": (await service.start(request.write_context, invoice_id)).id})


@pages.post("/view-sessions/{session_id}/heartbeat", role="viewer")
async def heartbeat(request: FormRequest, session_id: UUID) -> JsonResult:
    return heartbeat_response(await service.heartbeat(request.write_context, session_id, parse_client_report(request)))


@pages.post("/view-sessions/{session_id}/end", role="viewer")
async def end(request: FormRequest, session_id: UUID) -> JsonResult:
    return heartbeat_response(
        await service.heartbeat(request.write_context, session_id, parse_client_report(request), is_last=True)
    )


def heartbeat_response(still_open: bool) -> JsonResult:
    """A session that is over is not begun again: its page begins another."""
    return JsonResult(status=204 if still_open else 409)


def parse_client_report(request: PageRequest) -> ClientReport:
    """The figures of a heartbeat; raises ValidationError."""
    texts = {name: request.form.text(name) for name in ClientReport.__struct_fields__}
    errors = {name: "must be a whole number" for name, text in texts.items() if not is_whole_number(text)}
    if errors:
        raise ValidationError(**errors)
    return ClientReport(**{name: int(text) for name, text in texts.items()})


def is_whole_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
