"""The account of the person who is signed in: password, two-factor authentication, sessions."""

import re
from datetime import UTC, datetime

import segno

from plankeeper.access.accounts import self_service, store, totp
from plankeeper.access.accounts.credentials import VerifiedCredentials
from plankeeper.console.shell.routing import (
    PREFIX,
    FormRequest,
    HtmlPage,
    PageRequest,
    Pages,
    Redirect,
)
from plankeeper.core.encryption.cipher import secret_cipher
from plankeeper.core.errors import NotFound

pages = Pages()

ACCOUNT_URL = f"{PREFIX}/account"
_OPERATING_SYSTEMS = {
    "iPhone": "iPhone",
    "iPad": "iPad",
    "Android": "Android",
    "Windows": "Windows",
    "Macintosh": "Mac",
    "CrOS": "Chromebook",
    "Linux": "Linux",
}
# The order matters: most user agents also name the browsers further down.
_BROWSERS = {
    "Edg": "Edge",
    "OPR/": "Opera",
    "SamsungBrowser/": "Samsung Internet",
    "Firefox/": "Firefox",
    "FxiOS/": "Firefox",
    "CriOS/": "Chrome",
    "Chrome/": "Chrome",
    "Safari/": "Safari",
}


@pages.get("/account", role="signed_in")
async def show(request: PageRequest) -> HtmlPage:
    sessions = await store.list_sessions(request.db, request.account.account_id, datetime.now(UTC))
    rows = [
        (each, describe_browser(each.user_agent), each.token_hash == request.account.token_hash)
        for each in sessions
        if request.account.reaches_whole_account or each.token_hash == request.account.token_hash
    ]
    rows.sort(key=lambda each: not each[2])
    codes = (
        await store.count_unused_recovery_codes(request.db, request.account.account_id) if request.account.totp else 0
    )
    return HtmlPage("account/account.html", {"sessions": rows, "codes": codes})


@pages.get("/account/name", role="signed_in")
async def name_form(_request: PageRequest) -> HtmlPage:
    return HtmlPage("account/account_name.html")


@pages.post("/account/name", role="signed_in", on_error=name_form)
async def change_name(request: FormRequest) -> Redirect:
    await self_service.change_name(request.tx, request.settings, request.account, request.form.text("name"))
    return Redirect(ACCOUNT_URL, "Name changed.")


@pages.get("/account/password", role="signed_in")
async def password_form(_request: PageRequest) -> HtmlPage:
    return HtmlPage("account/account_password.html")


@pages.post("/account/password", role="signed_in", on_error=password_form, checks_credentials=True)
async def change_password(request: PageRequest) -> Redirect:
    credentials = await require_password(request)
    async with request.db.transaction() as tx:
        token = await self_service.change_password(
            tx,
            request.settings,
            request.account,
            credentials,
            request.form.raw("new_password"),
            request.device_token,
        )
    return Redirect(ACCOUNT_URL, "Password changed. You are signed out everywhere else.", session_token=token)


@pages.get("/account/two-factor", role="signed_in")
async def enable_two_factor_form(request: PageRequest) -> HtmlPage | Redirect:
    if request.account.totp:
        return Redirect(ACCOUNT_URL)
    secret_cipher(request.settings).require_key()  # before the person sets up an app
    submitted = request.form.text("secret")
    secret = submitted if totp.is_valid_secret(submitted) else totp.new_secret()
    uri = totp.provisioning_uri(secret, request.account.email)
    # Dark on white in both colour schemes, so that a camera can read it.
    qr_code = segno.make(uri, error="m").svg_data_uri(scale=5, border=4, dark="#000", light="#fff")
    grouped_secret = " ".join(re.findall("....", secret))
    return HtmlPage(
        "account/account_two_factor.html", {"secret": secret, "grouped_secret": grouped_secret, "qr_code": qr_code}
    )


@pages.post("/account/two-factor", role="signed_in", on_error=enable_two_factor_form, checks_credentials=True)
async def enable_two_factor(request: PageRequest) -> HtmlPage:
    credentials = await require_password(request)
    secret, code = request.form.text("secret"), request.form.text("code")
    async with request.db.transaction() as tx:
        codes, token = await self_service.enable_totp(tx, request.settings, request.account, credentials, secret, code)
    return recovery_codes_page(codes, token)


@pages.get("/account/two-factor/off", role="signed_in")
async def disable_two_factor_form(request: PageRequest) -> HtmlPage | Redirect:
    return HtmlPage("account/account_two_factor_off.html") if request.account.totp else Redirect(ACCOUNT_URL)


@pages.post("/account/two-factor/off", role="signed_in", on_error=disable_two_factor_form, checks_credentials=True)
async def disable_two_factor(request: PageRequest) -> Redirect:
    credentials = await require_password(request, request.form.text("code"))
    async with request.db.transaction() as tx:
        token = await self_service.disable_totp(tx, request.settings, request.account, credentials)
    return Redirect(ACCOUNT_URL, "Two-factor authentication turned off.", session_token=token)


@pages.get("/account/recovery-codes", role="signed_in")
async def recovery_codes_form(request: PageRequest) -> HtmlPage | Redirect:
    return HtmlPage("account/account_recovery_codes_new.html") if request.account.totp else Redirect(ACCOUNT_URL)


@pages.post("/account/recovery-codes", role="signed_in", on_error=recovery_codes_form, checks_credentials=True)
async def renew_recovery_codes(request: PageRequest) -> HtmlPage:
    credentials = await require_password(request, request.form.text("code"))
    async with request.db.transaction() as tx:
        return recovery_codes_page(await self_service.renew_recovery_codes(tx, request.settings, credentials))


@pages.post("/account/sessions/end", role="signed_in")
async def end_session(request: FormRequest) -> Redirect:
    _require_whole_account(request)
    submitted = request.form.text("session")
    token_hash = re.fullmatch("[0-9a-f]{64}", submitted) and bytes.fromhex(submitted)
    if not token_hash or token_hash == request.account.token_hash:
        raise NotFound  # signing out ends the current session
    if not await self_service.revoke_session(request.tx, request.settings, request.account, token_hash):
        raise NotFound
    return Redirect(ACCOUNT_URL, "Session signed out.")


@pages.post("/account/sessions/end-others", role="signed_in")
async def end_other_sessions(request: FormRequest) -> Redirect:
    _require_whole_account(request)
    ended = await self_service.revoke_other_sessions(request.tx, request.settings, request.account)
    messages = {0: "There are no other sessions.", 1: "1 other session signed out."}
    return Redirect(ACCOUNT_URL, messages.get(ended, f"{ended} other sessions signed out."))


def _require_whole_account(request: FormRequest) -> None:
    if not request.account.reaches_whole_account:
        raise NotFound  # the same response as without other sessions


async def require_password(request: PageRequest, code: str | None = None) -> VerifiedCredentials:
    """Checks the password, and a code unless it is null, before a sensitive change; raises ValidationError."""
    password = request.form.raw("password")
    return await self_service.reauthenticate(
        request.db, request.settings, request.account, password, request.address, request.user_agent, code
    )


def recovery_codes_page(codes: list[str], session_token: str | None = None) -> HtmlPage:
    """The only page that shows recovery codes, because only their hashes are stored."""
    return HtmlPage("account/account_recovery_codes.html", {"codes": codes}, session_token=session_token)


def describe_browser(agent: str) -> str:
    """The browser and operating system that a user agent names."""
    browser = next((name for marker, name in _BROWSERS.items() if marker in agent), None)
    system = next((name for marker, name in _OPERATING_SYSTEMS.items() if marker in agent), None)
    if browser is None:
        return "Unknown browser"
    return f"{browser} on {system}" if system else browser
