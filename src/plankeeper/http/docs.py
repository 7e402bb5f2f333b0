"""The OpenAPI document and its interactive page. All files come from this package."""

import mimetypes
from pathlib import Path

from starlette.types import ASGIApp

from plankeeper.http.public import PublicEndpoint
from plankeeper.http.public_host import HSTS
from plankeeper.http.static_content import StaticContent

_STATIC = Path(__file__).with_name("static")
_SECURITY_HEADERS = {
    # Swagger UI sets style attributes and has its icons in data URLs; scripts come only from this origin.
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
}


def documentation_endpoints(openapi_document: str, public_url: str | None) -> dict[str, ASGIApp]:
    """`/openapi.json`, `/docs` and the files of that page."""
    headers = _SECURITY_HEADERS | ({"strict-transport-security": HSTS} if public_url else {})
    openapi = StaticContent(openapi_document.encode(), "application/json", headers)
    files = {"/docs": "docs.html"} | {
        f"/docs/{name}": name for name in ("docs.js", "swagger-ui.css", "swagger-ui-bundle.js")
    }
    endpoints: dict[str, ASGIApp] = {"/openapi.json": PublicEndpoint(openapi)}
    for path, name in files.items():
        media_type = mimetypes.guess_type(name)[0] or "application/octet-stream"
        endpoints[path] = PublicEndpoint(StaticContent((_STATIC / name).read_bytes(), media_type, headers))
    return endpoints
