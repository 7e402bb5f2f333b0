"""Invoice view sessions: heartbeats from the script on an invoice's page while the invoice is viewed."""

from uuid import UUID

from starlette.responses import JSONResponse, Response

from plankeeper.console.routing import FormRequest, PageRequest, Pages
from plankeeper.core.errors import ValidationError
from plankeeper.resources.invoice_view_sessions import service
from plankeeper.resources.invoice_view_sessions.service import ClientReport

pages = Pages()

MAX_DIGITS = 12  # of a duration in milliseconds, or of a count


@pages.post("/invoices/{invoice_id}/view-session", role="viewer")
async def start(request: FormRequest, invoice_id: UUID) -> Response:
    session = await service.start(request.write_context, invoice_id)
    return JSONResponse({"id": str(session.id)})


@pages.post("/view-sessions/{session_id}/heartbeat", role="viewer", extends_session=False)
async def heartbeat(request: FormRequest, session_id: UUID) -> Response:
    return heartbeat_response(await service.heartbeat(request.write_context, session_id, parse_client_report(request)))


@pages.post("/view-sessions/{session_id}/end", role="viewer", extends_session=False)
async def end(request: FormRequest, session_id: UUID) -> Response:
    return heartbeat_response(
        await service.heartbeat(request.write_context, session_id, parse_client_report(request), is_last=True)
    )


def heartbeat_response(is_open: bool) -> Response:
    """No content, or 409 if the session has ended: the page then starts another session."""
    return Response(status_code=204 if is_open else 409)


def parse_client_report(request: PageRequest) -> ClientReport:
    """The durations and counts of a heartbeat; raises ValidationError."""
    texts = {name: request.form.text(name) for name in ClientReport.__struct_fields__}
    errors = {name: "must be a whole number" for name, text in texts.items() if not is_whole_number(text)}
    if errors:
        raise ValidationError(**errors)
    return ClientReport(**{name: int(text) for name, text in texts.items()})


def is_whole_number(text: str) -> bool:
    return text.isascii() and text.isdigit() and len(text) <= MAX_DIGITS
