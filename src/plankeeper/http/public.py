"""What needs no key: documentation, health, a browser's question before a request from another origin."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plankeeper.http.errors import Refusal
from plankeeper.http.requests import Answer, headers_of, refused, request_id_of

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
        starts = message["type"] == "http.response.start"
        if starts and not any(name == b"x-request-id" for name, _ in message["headers"]):
            message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
        await send(message)

    return sending


class OtherOrigins(CORSMiddleware):
    """Its answer to a browser's question is as all others are: JSON with a request id. A refusal lacks the origin."""

    def preflight_response(self, request_headers: Headers) -> Response:
        allowed = super().preflight_response(request_headers).headers
        headers = {name: value for name, value in allowed.items() if not name.startswith("content-")}
        request_id = request_id_of(headers_of({"headers": request_headers.raw})).decode()
        return Response("{}", 200, headers | {"x-request-id": request_id}, "application/json")
