"""The documentation: the site, the OpenAPI document and its interactive reference. All files come from this package."""

import mimetypes
from pathlib import Path

from starlette.types import ASGIApp

from plankeeper.http.documentation_site import LLMS_PATH, PATH, SITE, DocumentationSite, content_security_policy
from plankeeper.http.public import PublicEndpoint
from plankeeper.http.public_host import HSTS
from plankeeper.http.static_content import StaticContent

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
