"""The pages for errors."""

from collections.abc import Collection

from plankeeper.console.shell.concurrency import SharedLimitError
from plankeeper.console.shell.cookies import CsrfError
from plankeeper.console.shell.routing import HtmlPage
from plankeeper.core.errors import DomainError
from plankeeper.database.unavailability import SENTENCES
from plankeeper.http.requests import RequestState
from plankeeper.http.responses import log, log_unavailability

_ERROR_PAGES = {"secret_key_missing": "secret_key_missing"}
_STATUS_PAGES = {404: "not_found", 429: "rate_limited", 503: "unavailable"}


class RoleRequiredError(Exception):
    """The account does not have the role that the page requires."""


def error_page(error: Exception, state: RequestState, *, names_record: bool = False) -> HtmlPage:
    """The page for an error. The details of an unexpected error are only logged.

    `names_record` is whether the path names a record, which can have been deleted.
    """
    request_id = state.request_id.decode()
    if isinstance(error, CsrfError):
        kind, status = "csrf_failed", 403
    elif isinstance(error, RoleRequiredError):
        kind, status = "role_required", 403
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
