"""Answers as they leave: a page, the way onward, a file; each with the headers that keep browsers safe."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from starlette.types import Receive, Scope, Send

from plankeeper.console.cookies import FLASH_MAX_AGE, sign
from plankeeper.console.forms import Form
from plankeeper.console.routing import PREFIX, Download, HtmlPage, JsonResult, PageRequest, Redirect
from plankeeper.console.templating import CONTENT_TYPES, read_static_file
from plankeeper.http.json import to_json
from plankeeper.http.requests import read_headers, resolve_request_id

if TYPE_CHECKING:
    from plankeeper.console.endpoint import CurrentUser

Headers = list[tuple[bytes, bytes]]

SECURITY_HEADERS: Headers = [
    (
        b"content-security-policy",
        b"default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    ),
    (b"x-content-type-options", b"nosniff"),
    (b"x-frame-options", b"DENY"),
    (b"referrer-policy", b"same-origin"),
    (b"permissions-policy", b"camera=(), geolocation=(), microphone=()"),
    (b"cross-origin-opener-policy", b"same-origin"),
]
NO_STORE = (b"cache-control", b"no-store")
IMMUTABLE = (b"cache-control", b"public, max-age=31536000, immutable")
_LOCAL_PATH = re.compile(rf"{PREFIX}([/?](?!.*\\)[\x21-\x7e]*)?")


@dataclass(slots=True)
class ConsoleResponse:
    status: int
    body: bytes
    headers: Headers = field(default_factory=Headers)


def is_local_path(path: str) -> bool:
    """Whether a path that came from outside leads nowhere but into the console."""
    return _LOCAL_PATH.fullmatch(path) is not None


def render_page(
    templates: Environment, page: HtmlPage, request: PageRequest | None, user: "CurrentUser"
) -> ConsoleResponse:
    """A page. `look` is null where there was trouble before it was known."""
    context: dict[str, Any] = {
        "request": request,
        "session": user.session,
        "csrf": user.csrf,
        "flash": user.flash,
        "errors": request.errors if request else {},
        "form": request.form if request else Form(),
    }
    body = templates.get_template(page.template).render(context | dict(page.context)).encode()
    cookies = [(b"set-cookie", each) for each in user.set_cookie_headers]
    return ConsoleResponse(page.status, body, [(b"content-type", b"text/html; charset=utf-8"), NO_STORE, *cookies])


def redirect_response(redirect: Redirect, user: "CurrentUser") -> ConsoleResponse:
    """Always with a GET. A path that is not ours would be a mistake of ours."""
    if not is_local_path(redirect.path):
        raise ValueError("a redirect leads out of the console")
    cookies, token = user.cookies, user.cookies.get("plankeeper")
    headers: Headers = [(b"location", redirect.path.encode("latin-1")), NO_STORE]
    if redirect.session_token is not None:
        token = redirect.session_token
        headers.append((b"set-cookie", cookies.set("plankeeper", token, None if token else 0)))
        headers.append((b"set-cookie", cookies.set("plankeeper-form", "", 0)))
    if redirect.flash and token:
        headers.append((b"set-cookie", cookies.set("plankeeper-flash", sign(token, redirect.flash), FLASH_MAX_AGE)))
    return ConsoleResponse(303, b"", headers)


def json_response(result: JsonResult) -> ConsoleResponse:
    """For a script: it looks at the status, and at JSON where there is any."""
    if result.value is None:
        return ConsoleResponse(result.status, b"", [NO_STORE])
    return ConsoleResponse(
        result.status, to_json(result.value).encode(), [(b"content-type", b"application/json"), NO_STORE]
    )


async def send_response(response: ConsoleResponse, request_id: bytes, send: Send, *, is_head: bool) -> None:
    content_length = (b"content-length", b"%d" % len(response.body))
    headers = [(b"x-request-id", request_id), content_length, *SECURITY_HEADERS, *response.headers]
    await send({"type": "http.response.start", "status": response.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if is_head else response.body})


async def send_file(download: Download, request_id: bytes, receive: Receive, send: Send, *, is_head: bool) -> None:
    """A file, part by part as the browser takes it in, for as long as there is a browser."""
    disposition = f'attachment; filename="{download.filename}"'.encode("latin-1")
    headers = [
        (b"x-request-id", request_id),
        (b"content-type", download.content_type.encode()),
        NO_STORE,
        *SECURITY_HEADERS,
    ]
    headers.append((b"content-disposition", disposition))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    disconnected = asyncio.create_task(_wait_for_disconnect(receive))
    try:
        if not is_head:
            async for chunk in download.chunks:
                if disconnected.done():
                    return
                await send({"type": "http.response.body", "body": chunk, "more_body": True})
                await asyncio.sleep(0)  # where nobody takes anything in any more, sending does not wait
        await send({"type": "http.response.body", "body": b""})
    finally:
        disconnected.cancel()
        with suppress(asyncio.CancelledError):
            await disconnected


async def _wait_for_disconnect(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def static_file(scope: Scope, _receive: Receive, send: Send) -> None:
    """A file that pages need. Its path changes when it does."""
    name: str = scope["path_params"]["name"]
    body = read_static_file(name) if scope["method"] in ("GET", "HEAD") else None
    response = ConsoleResponse(404, b"", [NO_STORE])
    if body is not None:
        content_type = CONTENT_TYPES[name[name.rindex(".") :]].encode()
        response = ConsoleResponse(200, body, [(b"content-type", content_type), IMMUTABLE])
    await send_response(response, resolve_request_id(read_headers(scope)), send, is_head=scope["method"] == "HEAD")
