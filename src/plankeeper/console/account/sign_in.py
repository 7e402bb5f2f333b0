"""Sign-in and sign-out, two-factor authentication, accepting an invitation, and selecting a plan manager."""

from datetime import UTC, datetime
from math import ceil
from urllib.parse import quote

from plankeeper.access.accounts import invitations, password_reset, sessions
from plankeeper.access.accounts.audit import ClientInfo
from plankeeper.access.accounts.credentials import LoginError
from plankeeper.access.accounts.schemas import LoginResult, OpenInvitation
from plankeeper.access.single_sign_on import store as single_sign_on
from plankeeper.console.components.record_picker import plan_manager_choices
from plankeeper.console.shell.responses import is_local_path
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.context import or_404
from plankeeper.core.errors import NotFound, ValidationError
from plankeeper.core.ids import parse_uuid

pages = Pages()

HOME_URL = PREFIX


@pages.get("/sign-in", role="anyone")
async def sign_in_form(request: PageRequest) -> HtmlPage | Redirect:
    if request.session and not request.session.two_factor_pending:
        return Redirect(next_url(request.query.text("next")))
    return await sign_in_page(request, request.query.text("next") or request.form.text("next"))


async def sign_in_page(request: PageRequest, next_path: str, error: LoginError | None = None) -> HtmlPage:
    providers = await single_sign_on.list_first(request.db, 1) if request.settings.public_url else []
    if error:
        request.errors = {"password": f"Wrong email or password.{wait_sentence(error)}"}
    context = {"next": next_path, "has_single_sign_on": bool(providers)}
    return HtmlPage("account/sign_in.html", context, 401 if error else 200)


@pages.post("/sign-in", role="anyone", checks_credentials=True)
async def sign_in(request: PageRequest) -> HtmlPage | Redirect:
    email, password, next_path = request.form.text("email"), request.form.raw("password"), request.form.text("next")
    try:
        result = await sessions.sign_in(
            request.db, request.settings, email, password, request.address, request.user_agent, request.device_token
        )
    except LoginError as error:
        return await sign_in_page(request, next_path, error)
    if request.session:  # the browser forgets the token of its previous session
        await sessions.sign_out(request.db, request.session_token)
    if result.two_factor_pending:
        return signed_in_redirect(f"{PREFIX}/two-factor" + next_query(next_path), result)
    return signed_in_redirect(next_url(next_path), result)


@pages.get("/two-factor", role="password_verified")
async def two_factor_form(request: PageRequest) -> HtmlPage | Redirect:
    if not request.account.two_factor_pending:
        return Redirect(HOME_URL)
    return HtmlPage("account/two_factor.html", {"next": request.query.text("next")})


@pages.post("/two-factor", role="password_verified", checks_credentials=True)
async def two_factor(request: PageRequest) -> HtmlPage | Redirect:
    next_path = request.form.text("next")
    if not request.account.two_factor_pending:
        return Redirect(next_url(next_path))
    code = request.form.text("code")
    try:
        result = await sessions.verify_two_factor(
            request.db, request.settings, request.session_token, code, request.device_token
        )
    except LoginError as error:
        message = f"Wrong code.{wait_sentence(error)} Each code works once: wait for the app to show a new one."
        request.errors = {"code": message}
        return HtmlPage("account/two_factor.html", {"next": next_path}, 401)
    return signed_in_redirect(next_url(next_path), result)


@pages.get("/invitations/{token}", role="anyone")
async def invitation_form(request: PageRequest, token: str) -> HtmlPage:
    return await invitation_page(request, token, or_404(await invitations.get_open(request.db, token)))


async def invitation_page(
    request: PageRequest, token: str, open_invitation: OpenInvitation, error: LoginError | None = None
) -> HtmlPage:
    provider = await single_sign_on.get(request.db, open_invitation.plan_manager_id)
    domain = open_invitation.invitation.email.rpartition("@")[2].lower()
    has_single_sign_on = provider and request.settings.public_url and domain in provider.allowed_domains
    if error:
        request.errors = {"password": f"Wrong password, or too many attempts.{wait_sentence(error)}"}
    context = {
        "open_invitation": open_invitation,
        "invitation_token": token,
        "has_single_sign_on": bool(has_single_sign_on),
    }
    return HtmlPage("account/invitation.html", context, 401 if error else 200)


@pages.post("/invitations/{token}", role="anyone", on_error=invitation_form, checks_credentials=True)
async def accept(request: PageRequest, token: str) -> HtmlPage | Redirect:
    name, password = request.form.text("name"), request.form.raw("password")
    open_invitation = or_404(await invitations.get_open(request.db, token))
    try:
        result = or_404(
            await invitations.accept(
                request.db,
                request.settings,
                token,
                name,
                password,
                request.address,
                request.user_agent,
                request.device_token,
            )
        )
    except LoginError as error:
        return await invitation_page(request, token, open_invitation, error)
    next_path = f"{PREFIX}/two-factor" if result.two_factor_pending else HOME_URL
    return signed_in_redirect(next_path, result, f"You joined {open_invitation.plan_manager_name}.")


@pages.post("/sign-out", role="password_verified")
async def sign_out(request: PageRequest) -> Redirect:
    await sessions.sign_out(request.db, request.session_token)
    return Redirect(f"{PREFIX}/sign-in", session_token="")


@pages.get("/plan-managers", role="signed_in")
async def choose_form(request: PageRequest) -> HtmlPage:
    return choose_page(request)


def choose_page(request: PageRequest, status: int = 200) -> HtmlPage:
    next_path = request.query.text("next") or request.form.text("next")
    return HtmlPage(
        "account/plan_managers.html", {"choices": plan_manager_choices(request.account), "next": next_path}, status
    )


@pages.post("/plan-managers", role="signed_in", on_error=choose_form)
async def choose(request: FormRequest) -> HtmlPage | Redirect:
    plan_manager_id = parse_uuid(request.form.text("plan_manager_id"))
    if plan_manager_id is None or plan_manager_id not in request.account.roles:
        # The response does not reveal whether a plan manager of others exists.
        return choose_page(request, 422)
    await sessions.switch_plan_manager(request.tx, request.settings, request.account, plan_manager_id)
    return Redirect(
        next_url(request.form.text("next")), f"Switched to {request.account.plan_manager_names[plan_manager_id]}."
    )


def signed_in_redirect(path: str, result: LoginResult, flash: str | None = None) -> Redirect:
    """Redirect with the cookies of a new session and, if it is complete, of the device.

    If a plan manager requires two-factor authentication, the next page turns it on.
    """
    path = f"{PREFIX}/account/two-factor" if result.two_factor_required else path
    return Redirect(path, flash, session_token=result.token, device_token=result.device_token)


def wait_sentence(error: LoginError) -> str:
    """A sentence with the time until the next attempt, after a space; empty if it is possible now."""
    return f" Wait {describe_delay(error.retry_after)} before trying again." if error.retry_after >= 1 else ""


def describe_delay(seconds: float) -> str:
    """`45 seconds`, or minutes from 90 seconds on."""
    return f"{ceil(seconds / 60)} minutes" if seconds > 90 else f"{ceil(seconds)} seconds"


def next_url(path: str) -> str:
    """The page to continue with after sign-in: `path` if it is a page of the console, otherwise the first page."""
    return path if is_local_path(path) and not path.startswith((f"{PREFIX}/sign-in", f"{PREFIX}/assets")) else HOME_URL


def next_query(path: str) -> str:
    return f"?next={quote(path, safe='/')}" if path and is_local_path(path) else ""


NOT_FOUND, TOO_MANY_REQUESTS = 404, 429


@pages.get("/forgot-password", role="anyone")
async def request_form(_request: PageRequest) -> HtmlPage:
    return HtmlPage("account/forgot_password.html")


@pages.post("/forgot-password", role="anyone", on_error=request_form, checks_credentials=True)
async def request_link(request: PageRequest) -> HtmlPage:
    """The response is the same whether or not the email has an account."""
    if request.settings.smtp_server is None:
        raise NotFound
    email = sessions.normalize_email(request.form.text("email"))
    if "@" not in email:
        raise ValidationError(email="must be an email address")
    try:
        await password_reset.request_link(request.db, email)
    except LoginError as error:
        request.errors = {
            "email": "A link was requested for this email a moment ago. Look for it in your mail, also in the spam"
            f" folder, or wait {describe_delay(error.retry_after)} before requesting another."
        }
        return HtmlPage("account/forgot_password.html", status=TOO_MANY_REQUESTS)
    return HtmlPage("account/forgot_password_sent.html", {"email": email})


@pages.get("/reset-password/{reset_token}", role="anyone")
async def reset_form(request: PageRequest, reset_token: str) -> HtmlPage:
    """Opening the link doesn't use it: mail filters open links too."""
    if not await password_reset.is_open(request.db, reset_token, datetime.now(UTC)):
        return HtmlPage("account/reset_password_expired.html", status=NOT_FOUND)
    return HtmlPage("account/reset_password.html", {"reset_token": reset_token})


@pages.post("/reset-password/{reset_token}", role="anyone", on_error=reset_form, checks_credentials=True)
async def reset(request: FormRequest, reset_token: str) -> HtmlPage:
    client = ClientInfo.from_request(request.address, request.user_agent)
    password, now = request.form.raw("password"), datetime.now(UTC)
    if not await password_reset.use_link(request.tx, request.settings, reset_token, password, client, now):
        return HtmlPage("account/reset_password_expired.html", status=NOT_FOUND)
    return HtmlPage("account/reset_password_done.html")
