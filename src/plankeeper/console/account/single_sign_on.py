"""Single sign-on: the authorization request, the callback, and linking an identity to an account."""

import logging
from datetime import UTC, datetime
from typing import get_args
from urllib.parse import urlencode, urlsplit
from uuid import UUID

from plankeeper.access.accounts import sessions
from plankeeper.access.accounts import single_sign_on as identities
from plankeeper.access.accounts.audit import ClientInfo
from plankeeper.access.accounts.credentials import LoginError
from plankeeper.access.accounts.single_sign_on import NotAMemberError, SignInClient
from plankeeper.access.single_sign_on import store
from plankeeper.access.single_sign_on.schemas import PendingIdentity, Provider
from plankeeper.access.single_sign_on.service import (
    CALLBACK_PATH,
    FLOW_LIFETIME,
    AuthorizationResponse,
    FailureReason,
    SingleSignOnError,
)
from plankeeper.console.account.sign_in import next_url, signed_in_redirect, wait_sentence
from plankeeper.console.shell.responses import is_local_path
from plankeeper.console.shell.routing import (
    PREFIX,
    HtmlPage,
    PageRequest,
    Pages,
    ProviderRedirect,
    Redirect,
)
from plankeeper.core.errors import ValidationError
from plankeeper.core.metrics import SIGN_IN_FAILURES

pages = Pages()
log = logging.getLogger("plankeeper")

PATH = "/single-sign-on"
MAX_NEXT_LENGTH = 1000
MAX_PARAMETER_LENGTH = 4096


@pages.get(PATH, role="anyone")
async def choose(request: PageRequest) -> HtmlPage | Redirect:
    """The email's domain selects the provider. If there is only one provider, no email is required."""
    providers = await store.list_first(request.db, 2)
    if not providers or request.settings.public_url is None:
        return Redirect(f"{PREFIX}/sign-in")
    if len(providers) == 1:
        return Redirect(start_path(providers[0], request.query.text("next")))
    return await email_form(request)


async def email_form(request: PageRequest) -> HtmlPage:
    return HtmlPage("account/single_sign_on.html", {"next": request.query.text("next") or request.form.text("next")})


@pages.post(PATH, role="anyone", on_error=email_form)
async def find_provider(request: PageRequest) -> HtmlPage:
    """The page that leads to the provider of an email's domain. The response depends only on the domain.

    It isn't a redirect: the content security policy forbids a form to lead to another site.
    """
    domain = request.form.text("email").rpartition("@")[2].lower()
    provider = await store.get_by_domain(request.db, domain)
    if provider is None:
        raise ValidationError(email="has a domain for which single sign-on isn’t set up")
    host = urlsplit(provider.issuer).netloc
    return HtmlPage(
        "account/single_sign_on_continue.html", {"host": host, "path": start_path(provider, request.form.text("next"))}
    )


def start_path(provider: Provider, next_path: str = "") -> str:
    query = f"?{urlencode({'next': next_path})}" if next_path and is_local_path(next_path) else ""
    return f"{PREFIX}{PATH}/{provider.plan_manager_id}/start{query}"


@pages.get(f"{PATH}/{{plan_manager_id}}/start", role="anyone", calls_provider=True)
async def start(request: PageRequest, plan_manager_id: UUID) -> Redirect | ProviderRedirect:
    provider = await store.get(request.db, plan_manager_id)
    if provider is None:
        return failed(request, SingleSignOnError("unavailable", "the plan manager has no provider"))
    next_path = request.query.text("next")
    if not is_local_path(next_path) or len(next_path) > MAX_NEXT_LENGTH:
        next_path = ""
    try:
        authorization = await request.single_sign_on.start(
            request.db, request.settings, provider, next_path, request.query.text("invitation")
        )
    except SingleSignOnError as error:
        return failed(request, error)
    return ProviderRedirect(authorization.url, authorization.token)


@pages.get(CALLBACK_PATH.removeprefix(PREFIX), role="anyone", calls_provider=True)
async def callback(request: PageRequest, plan_manager_id: UUID) -> Redirect:
    """The callback of a provider. It always redirects, so that the code leaves the address bar."""
    state, code, error, issuer = (
        request.query.text(name)[:MAX_PARAMETER_LENGTH] for name in ("state", "code", "error", "iss")
    )
    response = AuthorizationResponse(state, code, error, issuer)
    try:
        flow, provider, identity = await request.single_sign_on.finish(
            request.db, request.settings, plan_manager_id, request.single_sign_on_token, response
        )
        result = await identities.sign_in(
            request.db, request.settings, provider, identity, flow.invitation_token_hash, sign_in_client(request)
        )
    except SingleSignOnError as failure:
        return failed(request, failure)
    except NotAMemberError:
        return failed(request, SingleSignOnError("invitation"))
    if result is None:
        expires_at = datetime.now(UTC) + FLOW_LIFETIME
        token = await identities.begin_linking(request.db, flow, provider, identity, expires_at)
        return Redirect(f"{PREFIX}{PATH}/link", single_sign_on_token=token)
    await end_previous_session(request)
    redirect = signed_in_redirect(
        f"{PREFIX}/two-factor" if result.two_factor_pending else next_url(flow.next_path), result
    )
    redirect.single_sign_on_token = ""
    return redirect


@pages.get(f"{PATH}/link", role="anyone")
async def link_form(request: PageRequest) -> HtmlPage | Redirect:
    pending = await identities.get_pending_identity(request.db, request.single_sign_on_token)
    return link_page(request, pending) if pending else failed(request, SingleSignOnError("expired"))


@pages.post(f"{PATH}/link", role="anyone", checks_credentials=True)
async def link(request: PageRequest) -> HtmlPage | Redirect:
    pending = await identities.get_pending_identity(request.db, request.single_sign_on_token)
    if pending is None:
        return failed(request, SingleSignOnError("expired"))
    password, code = request.form.raw("password"), request.form.text("code")
    try:
        result = await identities.link(request.db, request.settings, pending, password, code, sign_in_client(request))
    except LoginError as error:
        return link_page(request, pending, error)
    except NotAMemberError:
        return failed(request, SingleSignOnError("invitation"))
    if result is None:
        return failed(request, SingleSignOnError("expired"))
    await end_previous_session(request)
    redirect = signed_in_redirect(next_url(pending.next_path), result)
    redirect.single_sign_on_token = ""
    return redirect


def link_page(request: PageRequest, pending: PendingIdentity, error: LoginError | None = None) -> HtmlPage:
    """The same page whether or not the email has an account."""
    if error:
        request.errors = {"password": f"Wrong password or code.{wait_sentence(error)}"}
    return HtmlPage("account/single_sign_on_link.html", {"email": pending.email}, 401 if error else 200)


@pages.get(f"{PATH}/failed", role="anyone")
async def failure(request: PageRequest) -> HtmlPage:
    reason = request.query.text("reason")
    return HtmlPage(
        "account/single_sign_on_failed.html", {"reason": reason if reason in get_args(FailureReason) else "invalid"}
    )


def failed(request: PageRequest, error: SingleSignOnError) -> Redirect:
    SIGN_IN_FAILURES.labels("single_sign_on").inc()
    fields = {"request_id": request.request_id, "reason": error.reason, "explanation": error.explanation}
    log.warning("single sign-on failed", extra=fields)
    return Redirect(f"{PREFIX}{PATH}/failed?reason={error.reason}", single_sign_on_token="")


def sign_in_client(request: PageRequest) -> SignInClient:
    info = ClientInfo.from_request(request.address, request.user_agent)
    return SignInClient(info, request.device_token, request.session)


async def end_previous_session(request: PageRequest) -> None:
    """The browser forgets the token of its previous session, unless that session got a new token."""
    if request.session:
        await sessions.sign_out(request.db, request.session_token)
