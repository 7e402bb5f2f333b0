"""A forgotten password: request a link by mail, and choose a new password with it."""

from datetime import UTC, datetime

from plankeeper.access.accounts import password_reset, sessions
from plankeeper.access.accounts.audit import ClientInfo
from plankeeper.access.accounts.credentials import LoginError
from plankeeper.console.pages.sign_in import describe_delay
from plankeeper.console.routing import FormRequest, HtmlPage, PageRequest, Pages
from plankeeper.core.errors import NotFound, ValidationError

pages = Pages()

NOT_FOUND, TOO_MANY_REQUESTS = 404, 429


@pages.get("/forgot-password", role="anyone")
async def request_form(_request: PageRequest) -> HtmlPage:
    return HtmlPage("forgot_password.html")


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
        return HtmlPage("forgot_password.html", status=TOO_MANY_REQUESTS)
    return HtmlPage("forgot_password_sent.html", {"email": email})


@pages.get("/reset-password/{reset_token}", role="anyone")
async def reset_form(request: PageRequest, reset_token: str) -> HtmlPage:
    """Opening the link doesn't use it: mail filters open links too."""
    if not await password_reset.is_open(request.db, reset_token, datetime.now(UTC)):
        return HtmlPage("reset_password_expired.html", status=NOT_FOUND)
    return HtmlPage("reset_password.html", {"reset_token": reset_token})


@pages.post("/reset-password/{reset_token}", role="anyone", on_error=reset_form, checks_credentials=True)
async def reset(request: FormRequest, reset_token: str) -> HtmlPage:
    client = ClientInfo.from_request(request.address, request.user_agent)
    password, now = request.form.raw("password"), datetime.now(UTC)
    if not await password_reset.use_link(request.tx, request.settings, reset_token, password, client, now):
        return HtmlPage("reset_password_expired.html", status=NOT_FOUND)
    return HtmlPage("reset_password_done.html")
