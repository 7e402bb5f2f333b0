"""The life of a page, on one screen: who asks, whether the form is ours, the transaction, the answer."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from typing import Any
from urllib.parse import quote

from jinja2 import Environment
from starlette.types import Receive, Scope, Send

from plankeeper.accounts import policy, schemas, sessions
from plankeeper.console import responses
from plankeeper.console.concurrency import ConcurrencyLimit
from plankeeper.console.cookies import FORM_COOKIE_MAX_AGE, Cookies, constant_time_compare, new_token, unsign
from plankeeper.console.forms import Form, parse_form, read_form
from plankeeper.console.multipart import is_multipart, read_upload
from plankeeper.console.responses import ConsoleResponse
from plankeeper.console.routing import (
    PREFIX,
    Download,
    FormRequest,
    HtmlPage,
    JsonResult,
    PageRequest,
    PageResult,
    PageRoute,
    Redirect,
)
from plankeeper.console.templating import create_environment
from plankeeper.database.client import Database, is_unavailable
from plankeeper.http.admission import Admission, client_network
from plankeeper.http.errors import ApiError, NotFound
from plankeeper.http.instrumentation import OnResponse
from plankeeper.http.parsing import parse_uuid
from plankeeper.http.requests import ClientDisconnectedError, RequestState
from plankeeper.http.responses import log
from plankeeper.settings import Settings

SIGN_IN, TWO_FACTOR, CHOOSE_PLAN_MANAGER = f"{PREFIX}/sign-in", f"{PREFIX}/two-factor", f"{PREFIX}/plan-managers"
CLIENT_CLOSED_REQUEST = 499  # what the log says where there was nobody left to answer
FORM_ERROR_STATUSES = {
    400: 422,
    409: 409,
    412: 409,
}  # refusals that a form can be mended for, with the status of its page
MAX_DOWNLOADS = 4  # files that one worker sends at a time: each may be of a million events
MAX_UPLOADS = 4  # files that one worker takes in at a time: they are in memory
_HOST_PATTERN = re.compile(r"[A-Za-z0-9.\-]+(:[0-9]+)?|\[[0-9a-fA-F:]+\](:[0-9]+)?")


class CsrfError(Exception):
    """A form that did not come from a page of ours."""


class RoleRequiredError(Exception):
    """A page that needs a role which the account has not."""


class ConsoleDependencies:
    """What all pages share."""

    def __init__(self, db: Database, admission: Admission, on_response: OnResponse, settings: Settings) -> None:
        self.db, self.admission, self.on_response, self.settings = db, admission, on_response, settings
        self.templates: Environment = create_environment(settings.time_zone)
        self.uploads, self.downloads = ConcurrencyLimit(MAX_UPLOADS), ConcurrencyLimit(MAX_DOWNLOADS)


@dataclass(slots=True)
class CurrentUser:
    """Who asks: the session behind the cookie, and the token that forms carry."""

    cookies: Cookies
    session: schemas.Session | None = None
    flash: str | None = None
    csrf: str = ""
    has_form_cookie: bool = False

    async def load_session(self, db: Database) -> None:
        token = self.cookies.get("plankeeper")
        self.session = await sessions.get_session(db, token) if token else None
        if self.session:
            self.csrf = self.session.csrf
            self.flash = unsign(token, self.cookies.get("plankeeper-flash"))
            return
        # Before anybody is signed in, a form carries what a cookie has too: another site can set neither.
        form_token = self.cookies.get("plankeeper-form")
        self.has_form_cookie = bool(form_token)
        self.csrf = form_token or new_token()

    def has_role(self, role: str) -> bool:
        """Whether the account has a role with the plan manager that it chose."""
        session = self.session
        if session is None or session.two_factor_pending or session.plan_manager_id is None:
            return False
        return policy.is_role_at_least(session.roles.get(session.plan_manager_id), role)

    @property
    def set_cookie_headers(self) -> list[bytes]:
        """What every page that is shown sets."""
        headers = list[bytes]()
        if self.csrf and self.session is None and not self.has_form_cookie:
            headers.append(self.cookies.set("plankeeper-form", self.csrf, FORM_COOKIE_MAX_AGE))
        if self.cookies.get("plankeeper-flash"):
            headers.append(self.cookies.set("plankeeper-flash", "", 0))
        return headers


class PageEndpoint:
    """One path with its pages by method: an ASGI application. Without pages it is the one for what is not there."""

    def __init__(self, deps: ConsoleDependencies, path: str | None, routes: Mapping[str, PageRoute]) -> None:
        self._deps, self._path, self._routes = deps, path, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        state = RequestState.from_scope(scope)
        user = CurrentUser(Cookies.parse(state.headers.get(b"cookie", b""), secure=scope["scheme"] == "https"))
        try:
            response = await self._respond(state, user, scope, receive)
        except ClientDisconnectedError:
            self._deps.on_response(state, scope["method"], self._path, CLIENT_CLOSED_REQUEST)
            return
        except Exception as error:  # noqa: BLE001 - whatever happens, somebody looks at a page
            response = responses.render_page(self._deps.templates, _error_page(error, state), None, user)
            response.headers += _error_headers(error, self._routes)
        is_head = scope["method"] == "HEAD"
        if isinstance(response, Download):
            with self._deps.downloads:
                await responses.send_file(response, state.request_id, receive, send, is_head=is_head)
        else:
            await responses.send_response(response, state.request_id, send, is_head=is_head)
        self._deps.on_response(
            state, scope["method"], self._path, 200 if isinstance(response, Download) else response.status
        )

    async def _respond(
        self, state: RequestState, user: CurrentUser, scope: Scope, receive: Receive
    ) -> ConsoleResponse | Download:
        form = await self._read_form(state, user, receive) if scope["method"] == "POST" else Form()
        with self._deps.admission:
            await user.load_session(self._deps.db)
            if user.session:
                state.plan_manager_id = user.session.plan_manager_id
            route = self._select_route(scope)
            if route.method == "POST":
                _verify_csrf(state.headers, scope["scheme"], form.raw("csrf"), user.csrf)
            redirect = _required_redirect(route, user.session, scope)
            if redirect:
                return responses.redirect_response(redirect, user)
            if route.rate_limited:
                await self._deps.admission.limit_login_attempts(scope)
            request = self._build_request(state, user, scope, form)
            if route.role in ("viewer", "manager", "owner") and not request.has_role(route.role):
                raise RoleRequiredError
            result = await self._run_handler(route, request, _parse_path_params(route, scope))
            if isinstance(result, Download):
                self._deps.downloads.require_available()
                return result
            if isinstance(result, Redirect):
                return responses.redirect_response(result, user)
            if isinstance(result, JsonResult):
                return responses.json_response(result)
            return responses.render_page(self._deps.templates, result, request, user)

    async def _read_form(self, state: RequestState, user: CurrentUser, receive: Receive) -> Form:
        route = self._routes.get("POST")
        if route is None or not route.upload or not is_multipart(state.headers):
            return await read_form(state.headers, receive)
        # A file is taken in from who may send one alone. What others sent is not looked at: it is no form of ours.
        with self._deps.admission:
            await user.load_session(self._deps.db)
        if not user.has_role(route.role):
            return Form()
        with self._deps.uploads:
            return await read_upload(state.headers, receive)

    def _select_route(self, scope: Scope) -> PageRoute:
        if b"%2f" in scope.get("raw_path", b"").lower() or not self._routes:
            raise NotFound
        method = "GET" if scope["method"] == "HEAD" else scope["method"]
        if method not in self._routes:
            raise ApiError("method_not_allowed", "This page doesn’t support the request method.")
        return self._routes[method]

    def _build_request(self, state: RequestState, user: CurrentUser, scope: Scope, form: Form) -> PageRequest:
        user_agent = state.headers.get(b"user-agent", b"").decode("latin-1")[:300]
        return PageRequest(
            db=self._deps.db,
            settings=self._deps.settings,
            session=user.session,
            session_token=user.cookies.get("plankeeper"),
            address=client_network(scope),
            user_agent=user_agent,
            request_id=state.request_id.decode(),
            origin=_origin(state.headers, scope["scheme"]),
            query=parse_form(scope["query_string"]),
            form=form,
        )

    async def _run_handler(self, route: PageRoute, request: PageRequest, path_params: Mapping[str, Any]) -> PageResult:
        """The page's handler; what acts has one transaction, and a refused form is shown again after its rollback."""
        try:
            if not route.writes:
                return await route.handler(request, **path_params)
            async with self._deps.db.transaction() as tx:
                values = {each.name: getattr(request, each.name) for each in fields(PageRequest)}
                return await route.handler(FormRequest(**values, tx=tx), **path_params)
        except ApiError as error:
            if route.on_error is None or error.status not in FORM_ERROR_STATUSES:
                raise
            messages = {each.field: each.message for each in error.errors or ()} or {"form": error.detail}
            request.errors = messages
            result = await route.on_error(request, **path_params)
            return replace(result, status=FORM_ERROR_STATUSES[error.status]) if isinstance(result, HtmlPage) else result


def _origin(headers: Mapping[bytes, bytes], scheme: str) -> str:
    """Of a host that is one: it stands in a command that people copy into a shell."""
    host = headers.get(b"host", b"").decode("latin-1")
    return f"{scheme}://{host}" if _HOST_PATTERN.fullmatch(host) else "https://your-server"


def _parse_path_params(route: PageRoute, scope: Scope) -> dict[str, Any]:
    """The ids in a path; what is no id is no page."""
    texts: dict[str, str] = scope["path_params"]
    parsed = {name: texts[name] if kind is str else parse_uuid(texts[name]) for name, kind in route.path_params.items()}
    if None in parsed.values():
        raise NotFound
    return parsed


def _verify_csrf(headers: Mapping[bytes, bytes], scheme: str, form_token: str, csrf: str) -> None:
    """Raises Forged where a form comes from elsewhere, or without the token of the session."""
    schemes = ("https",) if scheme == "https" else ("http", "https")  # what ends TLS may not say that it did
    origins = [f"{each}://".encode() + headers.get(b"host", b"") for each in schemes]
    if headers.get(b"origin") not in origins or not csrf or not constant_time_compare(form_token, csrf):
        raise CsrfError


def _required_redirect(route: PageRoute, session: schemas.Session | None, scope: Scope) -> Redirect | None:
    """Where who asks must go first; null where nowhere."""
    if route.role == "anyone":
        return None
    if session is None:
        target = scope["path"] + (f"?{scope['query_string'].decode('latin-1')}" if scope["query_string"] else "")
        is_default = target == PREFIX or route.method != "GET"
        return Redirect(SIGN_IN if is_default else f"{SIGN_IN}?next={quote(target, safe='/')}")
    if route.role == "password_verified":
        return None
    if session.two_factor_pending:
        return Redirect(TWO_FACTOR)
    if route.role != "signed_in" and session.plan_manager_id not in session.roles:
        return Redirect(CHOOSE_PLAN_MANAGER)
    return None


def _error_page(error: Exception, state: RequestState) -> HtmlPage:
    """The page for whatever went wrong; what was not foreseen is logged, and told to nobody else."""
    request_id = state.request_id.decode()
    if isinstance(error, CsrfError):
        kind, status = "csrf_failed", 403
    elif isinstance(error, RoleRequiredError):
        kind, status = "role_required", 403
    elif isinstance(error, ApiError):
        kind, status = (
            {404: "not_found", 429: "rate_limited", 503: "unavailable"}.get(error.status, "rejected"),
            error.status,
        )
    elif is_unavailable(error):
        log.warning("request %s: the database is not available: %r", request_id, error)
        kind, status = "unavailable", 503
    else:
        log.error("request %s failed", request_id, exc_info=error)
        kind, status = "internal_error", 500
    detail = error.detail if isinstance(error, ApiError) else ""
    return HtmlPage("error.html", {"kind": kind, "detail": detail, "request_id": request_id}, status)


def _error_headers(error: Exception, routes: Mapping[str, PageRoute]) -> list[tuple[bytes, bytes]]:
    if isinstance(error, ApiError) and error.status == 405:
        return [(b"allow", ", ".join(sorted([*routes, "HEAD"] if "GET" in routes else routes)).encode())]
    if isinstance(error, ApiError) and error.status in (429, 503):
        return [(b"retry-after", (error.headers or {}).get("retry-after", "1").encode())]
    return []
