"""Static files of the console: style sheet, scripts and icon."""

import hashlib
import mimetypes
import re
from functools import cache
from pathlib import Path

from starlette.exceptions import HTTPException
from starlette.requests import Request
from starlette.responses import FileResponse, Response
from starlette.staticfiles import StaticFiles
from starlette.types import Scope

from plankeeper.console.shell.responses import Origin, add_common_headers
from plankeeper.console.shell.routing import PREFIX
from plankeeper.http.requests import read_headers, resolve_request_id

STATIC_DIR = Path(__file__).parents[1] / "static"
STATIC_PREFIX = f"{PREFIX}/assets"
IMMUTABLE = "public, max-age=31536000, immutable"

# What only authors need: comments and space in style sheets, lines with a comment of a script, and indentation.
_EXTRAS = {
    ".css": re.compile(rb"/\*.*?\*/|^[ \t]+", re.DOTALL | re.MULTILINE),
    ".js": re.compile(rb"^[ \t]*//.*$|^[ \t]+", re.MULTILINE),
}
_EMPTY_LINES = re.compile(rb"\n{2,}")
_CSS_STRING = re.compile(rb"(\"[^\"]*\"|'[^']*'|url\([^)]*\))")
_CSS_SPACE = re.compile(rb"\s*([{};,>])\s*|(:)\s+")

# Some systems map `.js` to another type, and browsers run no such script because of `nosniff`.
mimetypes.add_type("text/javascript", ".js")


@cache
def read_content(name: str) -> bytes:
    """A file as browsers get it: style sheets and scripts without the comments and indentation for their authors."""
    content = (STATIC_DIR / name).read_bytes()
    extras = _EXTRAS.get(Path(name).suffix)
    if extras is None:
        return content
    content = _EMPTY_LINES.sub(b"\n", extras.sub(b"", content)).lstrip()
    return _compact(content) if name.endswith(".css") else content


def _compact(style_sheet: bytes) -> bytes:
    """Without the space around punctuation, except in strings and URLs."""
    parts = _CSS_STRING.split(style_sheet)
    parts[::2] = [_CSS_SPACE.sub(rb"\1\2", part).replace(b";}", b"}") for part in parts[::2]]
    return b"".join(parts)


@cache
def static_url(name: str) -> str:
    """The URL of a file, with a digest of its content so that browsers can cache it indefinitely."""
    return f"{STATIC_PREFIX}/{name}?v={hashlib.sha256(read_content(name)).hexdigest()[:12]}"


class ConsoleStaticFiles(StaticFiles):
    """The files of STATIC_DIR, at `STATIC_PREFIX/{name}`, with the headers of every response of the console."""

    def __init__(self, public_url: str | None) -> None:
        super().__init__(directory=STATIC_DIR)
        self._public_url = public_url

    def get_path(self, scope: Scope) -> str:
        return scope["path_params"]["name"]

    async def get_response(self, path: str, scope: Scope) -> Response:
        try:
            response = await super().get_response(path, scope)
            if isinstance(response, FileResponse):
                kept = {name: response.headers[name] for name in ("etag", "last-modified")}
                response = Response(read_content(path), headers=kept, media_type=response.media_type)
            response.headers["cache-control"] = IMMUTABLE
        except HTTPException as error:
            response = Response(status_code=error.status_code, headers=error.headers)
        origin = Origin(Request(scope), self._public_url)
        add_common_headers(response, resolve_request_id(read_headers(scope)), origin)
        return response
