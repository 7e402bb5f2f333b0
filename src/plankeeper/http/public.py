"""What needs no key: documentation, health, a browser's question before a request from another origin."""

from starlette.datastructures import Headers
from starlette.middleware.cors import CORSMiddleware
from starlette.responses import Response as StarletteResponse
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from plankeeper.http.errors import ApiError
from plankeeper.http.requests import Response, error_response, read_headers, resolve_request_id

_ALLOW = "GET, HEAD, OPTIONS"


class PublicEndpoint:
    """An ASGI application behind GET and HEAD; its answers carry a request id as all others do."""

    def __init__(self, app: ASGIApp) -> None:
        self._app = app

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request_id = resolve_request_id(read_headers(scope))
        if scope["method"] in ("GET", "HEAD"):
            await self._app(scope, receive, _with_request_id(request_id, send))
        elif scope["method"] == "OPTIONS":
            await Response(200, b"{}", {"allow": _ALLOW}).send(request_id, send)
        else:
            error = ApiError("method_not_allowed", f"The path takes {_ALLOW}.", headers={"allow": _ALLOW})
            await error_response(error, request_id.decode()).send(request_id, send)


def _with_request_id(request_id: bytes, send: Send) -> Send:
    async def send_with_request_id(message: Message) -> None:
        is_response_start = message["type"] == "http.response.start"
        if is_response_start and not any(name == b"x-request-id" for name, _ in message["headers"]):
            message["headers"] = [*message["headers"], (b"x-request-id", request_id)]
        await send(message)

    return send_with_request_id


class JsonCORSMiddleware(CORSMiddleware):
    """Its answer to a browser's question is as all others are: JSON with a request id. A refusal lacks the origin."""

    def preflight_response(self, request_headers: Headers) -> StarletteResponse:
        cors_headers = super().preflight_response(request_headers).headers
        headers = {name: value for name, value in cors_headers.items() if not name.startswith("content-")}
        request_id = resolve_request_id(read_headers({"headers": request_headers.raw})).decode()
        return StarletteResponse("{}", 200, headers | {"x-request-id": request_id}, "application/json")
