"""The documentation site, which `make docs` builds: each page and file at its address below /docs."""

import mimetypes
import time
from collections.abc import Mapping
from pathlib import Path

import msgspec
from starlette.types import ASGIApp, Receive, Scope, Send

from plankeeper.http.browsers import HSTS
from plankeeper.http.public.front_page import PublicEndpoint
from plankeeper.http.public.static_content import StaticContent
from plankeeper.http.requests import read_headers

SITE = Path(__file__).with_name("static") / "site"
PATH = "/docs"
LLMS_PATH = "/llms.txt"
NOT_FOUND_PATH = "/docs/404"
COLLECTION_PATH = "/docs/plankeeper.postman_collection.json"
CHECK_INTERVAL = 1.0  # seconds between two checks for another build


class Manifest(msgspec.Struct, frozen=True):
    """The manifest of `make docs`: the file and the media type of each address, and the hashes of inline scripts."""

    files: Mapping[str, tuple[str, str]]
    scripts: list[str]


class DocumentationSite:
    """Serves the site. Until it is built, `reference` serves /docs, and `not_found` all other addresses.

    A file is read when it is first requested. After another build, all are read again. The collection for Postman has
    the public URL of the server as its address.
    """

    def __init__(
        self,
        folder: Path,
        reference: ASGIApp,
        not_found: ASGIApp,
        headers: Mapping[str, str],
        public_url: str | None = None,
    ) -> None:
        self._folder, self._public_url = folder, public_url
        self._reference, self._not_found = reference, not_found
        self._headers = dict(headers)
        self._manifest = Manifest({}, [])
        self._built_at: int = 0  # the time of the manifest, in ns
        self._check_at = 0.0
        self._contents: dict[str, ASGIApp] = {}

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        self._check_build()
        path: str = scope["path"]
        if path in self._manifest.files and path != NOT_FOUND_PATH:
            app = self._content(path)
        elif path == PATH:
            app = self._reference
        elif self._manifest.files and scope["method"] in ("GET", "HEAD") and _accepts_html(scope):
            app = self._content(NOT_FOUND_PATH)
        else:
            app = self._not_found
        await app(scope, receive, send)

    def _check_build(self) -> None:
        """Read the manifest if it is new. At most once in CHECK_INTERVAL."""
        if time.monotonic() < self._check_at:
            return
        self._check_at = time.monotonic() + CHECK_INTERVAL
        file = self._folder / "manifest.json"
        try:
            built_at = file.stat().st_mtime_ns
        except FileNotFoundError:
            return
        if built_at != self._built_at:
            self._manifest, self._built_at = msgspec.json.decode(file.read_bytes(), type=Manifest), built_at
            self._headers["content-security-policy"] = content_security_policy(self._manifest.scripts)
            self._contents.clear()

    def _content(self, path: str) -> ASGIApp:
        if path not in self._contents:
            name, media_type = self._manifest.files[path]
            body = (self._folder / name).read_bytes()
            if path == COLLECTION_PATH and self._public_url:
                body = _with_address(body, self._public_url)
            status = 404 if path == NOT_FOUND_PATH else 200
            self._contents[path] = PublicEndpoint(StaticContent(body, media_type, self._headers, status=status))
        return self._contents[path]


def _with_address(collection: bytes, address: str) -> bytes:
    """A collection of requests whose variable `base_url` is the address."""
    document = msgspec.json.decode(collection)
    for variable in document["variable"]:
        if variable["key"] == "base_url":
            variable["value"] = address
    return msgspec.json.encode(document)


def _accepts_html(scope: Scope) -> bool:
    """Browsers name text/html in `Accept`; programs usually accept everything."""
    return b"text/html" in read_headers(scope).get(b"accept", b"")


def content_security_policy(script_hashes: list[str]) -> str:
    """Everything comes from this origin. The only inline scripts are those of the theme, which have these hashes."""
    scripts = " ".join(["'self'", *(f"'{each}'" for each in script_hashes)])
    return (
        f"default-src 'none'; script-src {scripts}; style-src 'self'; img-src 'self' data:; font-src 'self';"
        " connect-src 'self'; worker-src 'self'; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    )


REFERENCE_PATH = f"{PATH}/api"

_STATIC = Path(__file__).with_name("static")
_SECURITY_HEADERS = {
    "content-security-policy": content_security_policy([]),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
}


def documentation_endpoints(openapi_document: str, public_url: str | None, not_found: ASGIApp) -> dict[str, ASGIApp]:
    """`/openapi.json`, `/llms.txt`, the documentation site and the reference with their files.

    The site also serves the addresses below `/docs` that aren't here. Unknown ones go to `not_found`.
    """
    headers = _SECURITY_HEADERS | ({"strict-transport-security": HSTS} if public_url else {})
    files = {REFERENCE_PATH: "reference.html"} | {
        f"{PATH}/{name}": name for name in ("reference.css", "reference.js", "swagger-ui.css", "swagger-ui-bundle.js")
    }
    endpoints: dict[str, ASGIApp] = {}
    for path, name in files.items():
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        endpoints[path] = PublicEndpoint(StaticContent((_STATIC / name).read_bytes(), media_type, headers))
    openapi = StaticContent(openapi_document.encode(), "application/json", headers)
    site = DocumentationSite(SITE, endpoints[REFERENCE_PATH], not_found, headers, public_url)
    return endpoints | {"/openapi.json": PublicEndpoint(openapi), PATH: site, LLMS_PATH: site}
