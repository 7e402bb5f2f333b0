"""The results of page handlers as Starlette responses, with the headers that every response of the console has."""

import asyncio
import re
from collections.abc import AsyncIterator, Collection
from typing import Any

from starlette.requests import Request
from starlette.responses import RedirectResponse, Response, StreamingResponse
from starlette.templating import Jinja2Templates

from plankeeper.access.policy import PERMISSION_LABELS, ROLES
from plankeeper.access.tokens import csrf_token
from plankeeper.console.shell.concurrency import SharedLimitError
from plankeeper.console.shell.cookies import (
    DEVICE_COOKIE_MAX_AGE,
    FLASH_MAX_AGE,
    PREFERENCE_COOKIE_MAX_AGE,
    SINGLE_SIGN_ON_MAX_AGE,
    CsrfError,
    CurrentAccount,
    Flash,
    join_flash,
    mask_token,
    sign,
)
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import (
    PREFIX,
    Download,
    HtmlPage,
    PageRequest,
    PageRoute,
    ProviderRedirect,
    Redirect,
)
from plankeeper.core.errors import DomainError
from plankeeper.database.unavailability import SENTENCES
from plankeeper.http.browsers import (
    HSTS,
    MIN_BYTES,
    VARY,
    accepts_gzip,
    gzip,
)
from plankeeper.http.requests import RequestState
from plankeeper.http.responses import FILE_POLICY, content_disposition, log, log_unavailability

_HOST_PATTERN = re.compile(r"[A-Za-z0-9.\-]+(:[0-9]+)?|\[[0-9a-fA-F:]+\](:[0-9]+)?")


class Origin:
    """The origin of a request's pages: `url` begins links, and `form_origins` are the origins that forms come from."""

    def __init__(self, request: Request, public_url: str | None) -> None:
        scheme, host = request.scope["scheme"], request.headers.get("host", "")
        self.is_secure = public_url is not None or scheme == "https"
        # The host is validated because it is shown in a command that people copy into a shell.
        self.url = public_url or (f"{scheme}://{host}" if _HOST_PATTERN.fullmatch(host) else "https://your-server")
        if public_url:
            self.form_origins = [public_url]
        else:  # a proxy that terminates TLS does not always pass on the scheme
            schemes = ["https"] if self.is_secure else ["http", "https"]
            self.form_origins = [f"{each}://{host}" for each in schemes]

    @property
    def headers(self) -> dict[str, str]:
        """The headers of every response."""
        return {"strict-transport-security": HSTS} if self.is_secure else {}


SECURITY_HEADERS = {
    "content-security-policy": (
        "default-src 'self'; img-src 'self' data:; frame-ancestors 'none'; base-uri 'none'; form-action 'self'"
    ),
    "x-content-type-options": "nosniff",
    "x-frame-options": "DENY",
    "referrer-policy": "same-origin",
    "permissions-policy": "camera=(), geolocation=(), microphone=()",
    "cross-origin-opener-policy": "same-origin",
}
# The pages that contain a secret other than the masked form token. They aren't compressed, because the size of a
# compressed page can reveal something about a secret beside text that another person chose.
SECRET_TEMPLATES = frozenset(
    {
        "account/account_recovery_codes.html",
        "account/account_two_factor.html",
        "developers/api_key_created.html",
        "account/invitation.html",
        "invoices/approval_link.html",
        "people/member_invited.html",
        "account/reset_password.html",
        "developers/webhook_created.html",
    }
)
_LOCAL_PATH = re.compile(rf"{PREFIX}([/?](?!.*\\)[\x21-\x7e]*)?")


def is_local_path(path: str) -> bool:
    """Whether an untrusted path, such as `next` of the sign-in form, is a path of the console."""
    return _LOCAL_PATH.fullmatch(path) is not None


def add_common_headers(response: Response, request_id: bytes, origin: Origin) -> None:
    """Adds the request id and the security headers; caching is off. A response can have other values."""
    response.headers.update(origin.headers | {"x-request-id": request_id.decode("latin-1")})
    for name, text in (SECURITY_HEADERS | {"cache-control": "no-store"}).items():
        response.headers.setdefault(name, text)


def render_page(
    templates: Jinja2Templates,
    request: Request,
    page: HtmlPage,
    account: CurrentAccount,
    page_request: PageRequest | None = None,
) -> Response:
    """The rendered page. `page_request` is null for an error before the handler was called."""
    if page.session_token:
        account.csrf_token = csrf_token(page.session_token)
    context: dict[str, Any] = {
        "session": account.session,
        "has_role": account.has_role,
        "has_permission": account.has_permission,
        "is_limited": account.details.participants_of is not None,
        "csrf": mask_token(account.csrf_token),
        "flash": account.flash,
        "errors": page_request.errors if page_request else {},
        "field_warnings": page_request.warnings if page_request else {},
        "form": page_request.form if page_request else Form(),
        **page.context,
    }
    response = templates.TemplateResponse(request, page.template, context, page.status)
    if page.template not in SECRET_TEMPLATES:
        _compress(response, request.headers.get("accept-encoding", ""))
    account.set_page_cookies(response)
    if page.session_token:
        account.cookies.set(response, "plankeeper", page.session_token)
    if page.home_scope:
        account.cookies.set(response, "plankeeper-home", page.home_scope, PREFERENCE_COOKIE_MAX_AGE)
    return response


def _compress(response: Response, accept_encoding: str) -> None:
    response.headers["vary"] = VARY
    if len(response.body) >= MIN_BYTES and accepts_gzip(accept_encoding.encode("latin-1")):
        response.body = gzip(bytes(response.body))
        response.headers["content-encoding"] = "gzip"
        response.headers["content-length"] = str(len(response.body))


def redirect_response(redirect: Redirect, account: CurrentAccount) -> Response:
    """Redirects with GET to a page of the console, and sets the cookies of a new session and of the flash message."""
    if not is_local_path(redirect.path):
        raise ValueError("the redirect leaves the console")
    response = RedirectResponse(redirect.path, status_code=303)
    cookies, session_token = account.cookies, account.cookies.get("plankeeper")
    if redirect.session_token is not None:
        session_token = redirect.session_token
        if session_token:
            cookies.set(response, "plankeeper", session_token)
        else:
            cookies.delete(response, "plankeeper")
            # Not "cookies": it would also delete those of other hosts of the domain.
            response.headers["clear-site-data"] = '"cache", "storage"'
        cookies.delete(response, "plankeeper-form")
    if redirect.device_token:
        cookies.set(response, "plankeeper-device", redirect.device_token, DEVICE_COOKIE_MAX_AGE)
    if redirect.single_sign_on_token:
        cookies.set(response, "plankeeper-sso", redirect.single_sign_on_token, SINGLE_SIGN_ON_MAX_AGE)
    elif redirect.single_sign_on_token is not None:
        cookies.delete(response, "plankeeper-sso")
    if redirect.flash and session_token:
        cookies.set(
            response,
            "plankeeper-flash",
            sign(session_token, join_flash(Flash(redirect.flash, redirect.undo, redirect.link))),
            FLASH_MAX_AGE,
        )
    return response


def provider_redirect_response(redirect: ProviderRedirect, account: CurrentAccount) -> Response:
    """Redirects to a single sign-on provider, whose address comes from its discovery document."""
    response = RedirectResponse(redirect.url, status_code=303)
    account.cookies.set(response, "plankeeper-sso", redirect.single_sign_on_token, SINGLE_SIGN_ON_MAX_AGE)
    return response


def download_response(download: Download, *, is_head: bool) -> StreamingResponse:
    """A file that is streamed while the browser reads it."""
    headers = {"content-disposition": content_disposition(download.file_name), "content-security-policy": FILE_POLICY}
    if download.size is not None:
        headers["content-length"] = str(download.size)
    chunks = _no_chunks() if is_head else _cancellable(download.chunks)
    return StreamingResponse(chunks, headers=headers, media_type=download.media_type)


async def _no_chunks() -> AsyncIterator[bytes]:
    for chunk in ():
        yield chunk


async def _cancellable(chunks: AsyncIterator[bytes]) -> AsyncIterator[bytes]:
    async for chunk in chunks:
        yield chunk
        # Sending to a closed connection returns immediately: let the disconnect be noticed, which ends the response.
        await asyncio.sleep(0)


_ERROR_PAGES = {"secret_key_missing": "secret_key_missing"}
_STATUS_PAGES = {404: "not_found", 429: "rate_limited", 503: "unavailable"}


class RoleRequiredError(Exception):
    """The account does not have the role or the permission that the page requires. The message says who can give it."""


def require_access(route: PageRoute, account: CurrentAccount) -> None:
    """Raise RoleRequiredError unless the account can open a page, whichever record it shows."""
    if route.role not in ROLES:
        return
    if not account.has_role(route.role):
        raise RoleRequiredError("An owner of the plan manager can change your role.")
    if route.permission and not account.has_permission(route.permission):
        label = PERMISSION_LABELS[route.permission].lower()
        raise RoleRequiredError(f"An owner of the plan manager can give you the permission to {label}.")
    details = account.details
    if details.participants_of and not route.is_limited:
        raise RoleRequiredError(
            "Your account is limited to the participants of one account manager. An owner of the plan manager can"
            " remove the limit."
        )
    if not details.can_download and route.path.endswith((".csv", ".xlsx")):
        raise RoleRequiredError(
            "Your account can’t download CSV and XLSX files. An owner of the plan manager can allow it."
        )


def error_page(error: Exception, state: RequestState, *, names_record: bool = False) -> HtmlPage:
    """The page for an error. The details of an unexpected error are only logged.

    `names_record` is whether the path names a record, which can have been deleted.
    """
    request_id = state.request_id.decode()
    if isinstance(error, CsrfError):
        kind, status = "csrf_failed", 403
    elif isinstance(error, RoleRequiredError):
        context = {"kind": "role_required", "detail": str(error), "request_id": request_id}
        return HtmlPage("shell/error.html", context, 403)
    elif isinstance(error, SharedLimitError):
        return HtmlPage("shell/error.html", {"kind": "rejected", "detail": str(error), "request_id": request_id}, 429)
    elif isinstance(error, DomainError):
        kind = _ERROR_PAGES.get(error.code) or _STATUS_PAGES.get(error.status, "rejected")
        status = error.status
    elif cause := log_unavailability(error, request_id):
        context = {"kind": "unavailable", "detail": SENTENCES[cause], "request_id": request_id}
        return HtmlPage("shell/error.html", context, 503)
    else:
        log.error("the request failed", extra={"request_id": request_id}, exc_info=error)
        kind, status = "internal_error", 500
    detail = error.detail if isinstance(error, DomainError) else ""
    context = {"kind": kind, "detail": detail, "request_id": request_id, "names_record": names_record}
    return HtmlPage("shell/error.html", context, status)


def error_headers(error: Exception, methods: Collection[str]) -> dict[str, str]:
    """The headers of an error's page. `methods` are those of the path."""
    if isinstance(error, DomainError) and error.status == 405:
        return {"allow": ", ".join(sorted([*methods, "HEAD"] if "GET" in methods else methods))}
    if isinstance(error, SharedLimitError):
        return {"retry-after": "5"}
    if isinstance(error, DomainError) and error.status in (429, 503):
        return {"retry-after": str(error.retry_after or 1)}
    return {}
