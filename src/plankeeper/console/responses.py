"""Answers as they leave: a page, the way onward, a file; each with the headers that keep browsers safe."""

import asyncio
import re
from contextlib import suppress
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from jinja2 import Environment
from starlette.types import Receive, Scope, Send

from plankeeper.console.cookies import FLASH_LASTS, signed
from plankeeper.console.forms import Form
from plankeeper.console.routing import PREFIX, Download, Look, Page, Redirect, Told
from plankeeper.console.templating import KINDS, asset
from plankeeper.http.requests import headers_of, request_id_of
from plankeeper.http.schemas import json_text

if TYPE_CHECKING:
    from plankeeper.console.endpoint import Caller

Headers = list[tuple[bytes, bytes]]

SECURITY: Headers = [
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
FOR_EVER = (b"cache-control", b"public, max-age=31536000, immutable")
_OURS = re.compile(rf"{PREFIX}([/?](?!.*\\)[\x21-\x7e]*)?")


@dataclass(slots=True)
class Answer:
    status: int
    body: bytes
    headers: Headers = field(default_factory=Headers)


def is_ours(path: str) -> bool:
    """Whether a path that came from outside leads nowhere but into the console."""
    return _OURS.fullmatch(path) is not None


def rendered(templates: Environment, page: Page, look: Look | None, caller: "Caller") -> Answer:
    """A page. `look` is null where there was trouble before it was known."""
    values: dict[str, Any] = {
        "look": look, "session": caller.session, "csrf": caller.csrf, "flash": caller.flash,
        "faults": look.faults if look else {}, "form": look.form if look else Form(),
    }  # fmt: skip
    body = templates.get_template(page.template).render(values | dict(page.values)).encode()
    cookies = [(b"set-cookie", each) for each in caller.new_cookies]
    return Answer(page.status, body, [(b"content-type", b"text/html; charset=utf-8"), NO_STORE, *cookies])


def redirected(onward: Redirect, caller: "Caller") -> Answer:
    """Always with a GET. A path that is not ours would be a mistake of ours."""
    if not is_ours(onward.path):
        raise ValueError("a redirect leads out of the console")
    cookies, token = caller.cookies, caller.cookies.get("plankeeper")
    headers: Headers = [(b"location", onward.path.encode("latin-1")), NO_STORE]
    if onward.token is not None:
        token = onward.token
        headers.append((b"set-cookie", cookies.set("plankeeper", token, None if token else 0)))
        headers.append((b"set-cookie", cookies.set("plankeeper-form", "", 0)))
    if onward.flash and token:
        headers.append((b"set-cookie", cookies.set("plankeeper-flash", signed(token, onward.flash), FLASH_LASTS)))
    return Answer(303, b"", headers)


def told(found: Told) -> Answer:
    """For a script: it looks at the status, and at JSON where there is any."""
    if found.value is None:
        return Answer(found.status, b"", [NO_STORE])
    return Answer(found.status, json_text(found.value).encode(), [(b"content-type", b"application/json"), NO_STORE])


async def send(answer: Answer, request_id: bytes, send: Send, *, head: bool) -> None:
    size = (b"content-length", b"%d" % len(answer.body))
    headers = [(b"x-request-id", request_id), size, *SECURITY, *answer.headers]
    await send({"type": "http.response.start", "status": answer.status, "headers": headers})
    await send({"type": "http.response.body", "body": b"" if head else answer.body})


async def send_file(download: Download, request_id: bytes, receive: Receive, send: Send, *, head: bool) -> None:
    """A file, part by part as the browser takes it in, for as long as there is a browser."""
    disposition = f'attachment; filename="{download.name}"'.encode("latin-1")
    headers = [(b"x-request-id", request_id), (b"content-type", download.content_type.encode()), NO_STORE, *SECURITY]
    headers.append((b"content-disposition", disposition))
    await send({"type": "http.response.start", "status": 200, "headers": headers})
    leaving = asyncio.create_task(_left(receive))
    try:
        if not head:
            async for part in download.parts:
                if leaving.done():
                    return
                await send({"type": "http.response.body", "body": part, "more_body": True})
                await asyncio.sleep(0)  # where nobody takes anything in any more, sending does not wait
        await send({"type": "http.response.body", "body": b""})
    finally:
        leaving.cancel()
        with suppress(asyncio.CancelledError):
            await leaving


async def _left(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def file(scope: Scope, _receive: Receive, sending: Send) -> None:
    """A file that pages need. Its path changes when it does."""
    name: str = scope["path_params"]["name"]
    body = asset(name) if scope["method"] in ("GET", "HEAD") else None
    answer = Answer(404, b"", [NO_STORE])
    if body is not None:
        kind = KINDS[name[name.rindex(".") :]].encode()
        answer = Answer(200, body, [(b"content-type", kind), FOR_EVER])
    await send(answer, request_id_of(headers_of(scope)), sending, head=scope["method"] == "HEAD")
