"""Processes a request for a page: form, session, CSRF check, role, transaction, handler, response."""

from collections.abc import Mapping
from contextlib import AbstractContextManager, ExitStack
from dataclasses import replace
from typing import Any

from asyncpg import IntegrityConstraintViolationError
from starlette.requests import ClientDisconnect, Request
from starlette.responses import Response
from starlette.templating import Jinja2Templates
from starlette.types import Receive, Scope, Send

from plankeeper.access.accounts import credentials, sessions
from plankeeper.access.accounts.schemas import Session
from plankeeper.access.single_sign_on.service import CALLBACK_PATH, SingleSignOn
from plankeeper.console.shell.concurrency import CredentialCheckLimit, SharedLimit
from plankeeper.console.shell.cookies import (
    Cookies,
    CsrfError,
    CurrentAccount,
    is_current_token,
    require_navigation,
    verify_origin,
)
from plankeeper.console.shell.forms import (
    MAX_FORM_BYTES,
    Form,
    is_upload,
    messages_of,
    parse_form,
    read_form,
    read_upload,
)
from plankeeper.console.shell.record_limits import require_inside
from plankeeper.console.shell.responses import (
    Origin,
    RoleRequiredError,
    add_common_headers,
    download_response,
    error_headers,
    error_page,
    provider_redirect_response,
    redirect_response,
    render_page,
    require_access,
)
from plankeeper.console.shell.routing import (
    PREFIX,
    Download,
    FormRequest,
    HtmlPage,
    PageRequest,
    PageResult,
    PageRoute,
    ProviderRedirect,
    Redirect,
)
from plankeeper.console.shell.sign_in_guard import OUTDATED, SIGN_IN, guard_redirect, sign_in_redirect, without_secrets
from plankeeper.core.context import OnAccess, or_404, report_disclosed, translate_violation
from plankeeper.core.errors import DomainError, NotFound
from plankeeper.core.ids import parse_uuid
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Transaction
from plankeeper.http.admission import Admission, client_network
from plankeeper.http.endpoint import OnWrite
from plankeeper.http.instrumentation import OnResponse
from plankeeper.http.requests import RequestState
from plankeeper.resources.invoices.statistics_cache import StatisticsCache, compute_invoice_statistics
from plankeeper.resources.plans.overview import MANY_PLANS, compute_overview
from plankeeper.resources.service_standard.service import MIN_AGE, compute_numbers

EMAIL_FORM_PATHS = {SIGN_IN, f"{PREFIX}/forgot-password"}  # before sign-in, with an email
CLIENT_CLOSED_REQUEST = 499  # the logged status of a request whose client has closed the connection
FORM_ERROR_STATUSES = {400: 422, 409: 409, 412: 409}  # errors that show the form again, with the status of its page
MAX_CREDENTIAL_FORM_BYTES = 16 * 1024  # of forms with a password or a code, which anybody can send


class ConsoleDependencies:
    """The dependencies of all pages."""

    def __init__(
        self,
        db: Database,
        admission: Admission,
        on_response: OnResponse,
        settings: Settings,
        templates: Jinja2Templates,
        on_access: OnAccess,
        on_write: OnWrite | None = None,
    ) -> None:
        self.db, self.admission, self.on_response, self.settings = db, admission, on_response, settings
        self.on_access, self.on_write = on_access, on_write
        self.templates = templates
        self.downloads = SharedLimit("download", worker=4, plan_manager=2)  # each can have a million events
        self.uploads = SharedLimit("upload", worker=4, plan_manager=2)  # they are held in memory
        # They leave processor time and connections to other requests.
        self.imports = SharedLimit("import", worker=2, plan_manager=1)
        self.credential_checks = CredentialCheckLimit()
        self.single_sign_on = SingleSignOn()
        self.statistics_cache = StatisticsCache(compute_invoice_statistics)
        self.budgets_cache = StatisticsCache(compute_overview, many=MANY_PLANS)
        self.standard_cache = StatisticsCache(compute_numbers, min_age=MIN_AGE)


class PageEndpoint:
    """The ASGI application of one path, with a route for each method. Without routes, every request is not found."""

    def __init__(self, deps: ConsoleDependencies, path: str | None, routes: Mapping[str, PageRoute]) -> None:
        self._deps, self._path, self._routes = deps, path, routes

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        request, state = Request(scope, receive), RequestState.from_scope(scope)
        origin = Origin(request, self._deps.settings.public_url)
        account = CurrentAccount(Cookies(request, is_secure=origin.is_secure))
        with ExitStack() as download:
            try:
                response = await self._respond(request, state, account, origin, download)
            except ClientDisconnect:
                self._deps.on_response(state, request.method, self._path, CLIENT_CLOSED_REQUEST)
                return
            except Exception as error:  # noqa: BLE001 - every error is shown as a page
                response = render_page(self._deps.templates, request, self._error_page(error, state), account)
                response.headers.update(error_headers(error, self._routes))
            add_common_headers(response, state.request_id, origin)
            await response(scope, receive, send)
        self._deps.on_response(state, request.method, self._path, response.status_code)

    def _error_page(self, error: Exception, state: RequestState) -> HtmlPage:
        return error_page(error, state, names_record="{" in (self._path or ""))

    async def _respond(
        self, request: Request, state: RequestState, account: CurrentAccount, origin: Origin, download: ExitStack
    ) -> Response:
        """The response. That of a download takes its slot, which `download` gives back when it has been sent."""
        form = await self._read_form(request, account) if request.method == "POST" else Form()
        with self._deps.admission:
            await account.load_session(self._deps.db, is_use=self._extends_session(request))
            if account.session:
                state.plan_manager_id, state.account_id = account.session.plan_manager_id, account.session.account_id
            route = self._select_route(request)
            page_request = self._build_page_request(request, state, account, form, origin)
            path_params = _parse_path_params(route, request)
            response = await self._respond_before(route, page_request, path_params, request, account, origin)
            if response:
                return response
            if route.is_download:
                download.enter_context(self._download_slot(account))
            if not route.checks_credentials and not route.calls_provider:
                result = await self._respond_with(route, page_request, path_params)
                return self._build_response(result, request, page_request, account)
            session = None if route.role == "anyone" else account.session  # signing in needs no session
            device = await self._known_device(route, page_request, session)
        # Outside the API's admission, so that sign-in attempts never take capacity from API requests.
        if route.calls_provider:
            if route.path == CALLBACK_PATH:
                await self._deps.admission.limit_login_attempts(request.scope, device)
            else:
                require_navigation(request.headers)
                await self._deps.admission.limit_sign_in_starts(request.scope, device)
                # A sign-in counts once, when it begins.
                await self._deps.admission.limit_all_login_attempts(known_device=device is not None)
            result = await self._respond_with(route, page_request, path_params)
            return self._build_response(result, request, page_request, account)
        async with self._deps.credential_checks.slot(known=session is not None or device is not None):
            if session is None or session.two_factor_pending:
                await self._deps.admission.limit_login_attempts(request.scope, device)
                await self._deps.admission.limit_all_login_attempts(known_device=device is not None)
            result = await self._respond_with(route, page_request, path_params)
            return self._build_response(result, request, page_request, account)

    async def _respond_before(
        self,
        route: PageRoute,
        page_request: PageRequest,
        path_params: Mapping[str, Any],
        request: Request,
        account: CurrentAccount,
        origin: Origin,
    ) -> Response | None:
        """The response to a request before its handler is called: the person has to sign in first, or to check a form.

        Raises CsrfError, RoleRequiredError and NotFound.
        """
        is_form = route.method == "POST"
        if is_form:
            verify_origin(request, origin.form_origins)
        is_outdated = is_form and not is_current_token(page_request.form.raw("csrf"), account.csrf_token)
        redirect = guard_redirect(route, account.session, request)
        if redirect and is_outdated:
            redirect = sign_in_redirect(route, page_request, path_params, request)
        if redirect:
            return redirect_response(redirect, account)
        require_access(route, account)
        await require_inside(page_request, path_params)
        if is_outdated:
            return await self._show_again(route, page_request, path_params, request, account)
        return None

    async def _show_again(
        self,
        route: PageRoute,
        page_request: PageRequest,
        path_params: Mapping[str, Any],
        request: Request,
        account: CurrentAccount,
    ) -> Response:
        """The form of an earlier session, for the person to send again; raises CsrfError if no page shows it."""
        is_shown = route.form_path and route.role != "anyone" and not route.checks_credentials and not route.upload
        if not is_shown or route.on_error is None:
            raise CsrfError
        page_request.form, page_request.errors = without_secrets(page_request.form), {"form": OUTDATED}
        result = await route.on_error(page_request, **path_params)
        if isinstance(result, HtmlPage):
            result = replace(result, status=403)
        return self._build_response(result, request, page_request, account)

    async def _known_device(self, route: PageRoute, request: PageRequest, session: Session | None) -> str | None:
        """The token of the device if it is known to the account of the session, or to the one that signs in.

        Before a provider confirms the account, any account is accepted. A form's email counts only on the pages
        that check this email.
        """
        if route.calls_provider:
            is_known = await credentials.is_known(self._deps.db, None, request.device_token)
        elif session or route.path in EMAIL_FORM_PATHS:
            email = session.email if session else sessions.normalize_email(request.form.text("email"))
            is_known = await credentials.is_known(self._deps.db, email, request.device_token)
        else:
            is_known = False
        return request.device_token if is_known else None

    def _download_slot(self, account: CurrentAccount) -> AbstractContextManager[None]:
        """The slot of a download. Every page with a download requires a role."""
        session = or_404(account.session)
        return self._deps.downloads.slot(session.account_id, session.plan_manager_id)

    def _upload_slot(self, account: CurrentAccount) -> AbstractContextManager[None]:
        session = or_404(account.session)
        return self._deps.uploads.slot(session.account_id, session.plan_manager_id)

    async def _read_form(self, request: Request, account: CurrentAccount) -> Form:
        route = self._routes.get("POST")
        if route is None or not route.upload or not is_upload(request):
            max_bytes = MAX_CREDENTIAL_FORM_BYTES if route and route.checks_credentials else MAX_FORM_BYTES
            return await read_form(request, max_bytes)
        # Only accounts with the role may upload a file: other bodies are not read, and their forms lack a token.
        with self._deps.admission:
            await account.load_session(self._deps.db)
        try:
            require_access(route, account)
        except RoleRequiredError:
            return Form()
        with self._upload_slot(account):
            return await read_upload(request, route.upload)

    def _extends_session(self, request: Request) -> bool:
        route = self._routes.get(request.method)
        return route is None or route.extends_session

    def _select_route(self, request: Request) -> PageRoute:
        if b"%2f" in request.scope.get("raw_path", b"").lower() or not self._routes:
            raise NotFound
        method = "GET" if request.method == "HEAD" else request.method
        if method not in self._routes:
            raise DomainError("method_not_allowed", "This page doesn’t support the request method.")
        return self._routes[method]

    def _build_page_request(
        self, request: Request, state: RequestState, account: CurrentAccount, form: Form, origin: Origin
    ) -> PageRequest:
        return PageRequest(
            db=self._deps.db,
            settings=self._deps.settings,
            session=account.session,
            session_token=account.cookies.get("plankeeper"),
            device_token=account.cookies.get("plankeeper-device"),
            single_sign_on_token=account.cookies.get("plankeeper-sso"),
            home_scope=account.cookies.get("plankeeper-home"),
            address=client_network(request.scope),
            user_agent=request.headers.get("user-agent", "")[:300],
            request_id=state.request_id.decode(),
            origin=origin.url,
            query=parse_form(request.scope["query_string"]),
            import_limit=self._deps.imports,
            single_sign_on=self._deps.single_sign_on,
            on_access=self._deps.on_access,
            limit_wrong_links=lambda: self._deps.admission.limit_wrong_links(request.scope),
            statistics_cache=self._deps.statistics_cache,
            budgets_cache=self._deps.budgets_cache,
            standard_cache=self._deps.standard_cache,
            form=form,
        )

    async def _respond_with(self, route: PageRoute, request: PageRequest, path_params: Mapping[str, Any]) -> PageResult:
        """The result of the handler; after a rollback, a form with errors is shown again."""
        try:
            result = await self._run_handler(route, request, path_params)
        except DomainError as error:
            if route.on_error is None or error.status not in FORM_ERROR_STATUSES:
                raise
            request.errors, request.warnings = messages_of(error)
            result = await route.on_error(request, **path_params)
            if isinstance(result, HtmlPage):
                result = replace(result, status=FORM_ERROR_STATUSES[error.status])
        if route.access_log and isinstance(result, HtmlPage):
            request.record_access("viewed", route.access_log, next(iter(path_params.values())))
        return result

    async def _run_handler(self, route: PageRoute, request: PageRequest, path_params: Mapping[str, Any]) -> PageResult:
        """Run the handler, in one transaction if it writes."""
        if not route.writes:
            async with request.limit_search(is_search=request.is_search):
                return await route.handler(request, **path_params)

        async def attempt(tx: Transaction) -> tuple[FormRequest, PageResult]:
            form_request = request.with_transaction(tx)
            result = await route.handler(form_request, **path_params)
            if self._deps.on_write and request.session and request.session.plan_manager_id:
                await self._deps.on_write(tx, request.session.plan_manager_id, request.request_id)
            return form_request, result

        try:
            form_request, result = await self._deps.db.write(attempt)
        except IntegrityConstraintViolationError as error:
            if not route.constraint_errors:
                raise
            errors = route.constraint_errors
            raise await translate_violation(self._deps.db, request.plan_manager_id, error, errors) from None
        if form_request.disclosed:
            report_disclosed(self._deps.on_access, form_request.write_context)
        return result

    def _build_response(
        self, result: PageResult, request: Request, page_request: PageRequest, account: CurrentAccount
    ) -> Response:
        if isinstance(result, Response):
            return result
        if isinstance(result, Redirect):
            return redirect_response(result, account)
        if isinstance(result, ProviderRedirect):
            return provider_redirect_response(result, account)
        if isinstance(result, Download):
            return download_response(result, is_head=request.method == "HEAD")
        return render_page(self._deps.templates, request, result, account, page_request)


def _parse_path_params(route: PageRoute, request: Request) -> dict[str, Any]:
    """The values of the path's parameters; raises NotFound for an invalid id."""
    texts = request.path_params
    parsed = {name: texts[name] if kind is str else parse_uuid(texts[name]) for name, kind in route.path_params.items()}
    if None in parsed.values():
        raise NotFound
    return parsed
