"""The OpenAPI document and its interactive page, served from the package alone."""

from pathlib import Path
from typing import Any

from starlette.responses import FileResponse, Response
from starlette.routing import BaseRoute, Route

from plankeeper.http.openapi import render_document
from plankeeper.http.public import PublicEndpoint

_STATIC = Path(__file__).with_name("static")
_SECURITY_HEADERS = {
    # Swagger UI sets style attributes and shows its icons as data addresses; scripts come from here alone.
    "content-security-policy": "default-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:;"
    " frame-ancestors 'none'; base-uri 'none'; form-action 'self'",
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "no-referrer",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
}


def documentation_routes(openapi: dict[str, Any]) -> list[BaseRoute]:
    """`/openapi.json`, `/docs` and the files that the page needs."""
    openapi_response = Response(render_document(openapi), media_type="application/json", headers=_SECURITY_HEADERS)
    files = {"/docs": "docs.html"} | {
        f"/docs/{name}": name for name in ("docs.js", "swagger-ui.css", "swagger-ui-bundle.js")
    }
    static_routes = [
        Route(path, PublicEndpoint(FileResponse(_STATIC / name, headers=_SECURITY_HEADERS)))
        for path, name in files.items()
    ]
    return [Route("/openapi.json", PublicEndpoint(openapi_response)), *static_routes]
