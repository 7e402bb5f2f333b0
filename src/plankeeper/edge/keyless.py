"""Paths that need no key: documentation and health."""

from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plankeeper.edge.errors import Refusal
from plankeeper.edge.request import Answer, headers_of, refused, request_id_of

_ALLOW = "GET, HEAD, OPTIONS"


class Keyless:
    """An ASGI application behind GET and HEAD; its answers carry a request id as all others do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = request_id_of(headers_of(scope))
        if scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, _with_id(request_id, send))
        elif scope["method"] == "OPTIONS":
            await Answer(200, b"{}", {"allow": _ALLOW}).send(request_id, send)
        else:
            refusal = Refusal("method_not_allowed", f"The path takes {_ALLOW}.", headers={"allow": _ALLOW})
            await refused(refusal, request_id.decode()).send(request_id, send)


def _with_id(request_id: bytes, send: Send) -> Send:
    async def sending(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = [each for each in message["headers"] if each[0] != b"x-request-id"]
            message["headers"] = [*headers, (b"x-request-id", request_id)]
        await send(message)

    return sending
