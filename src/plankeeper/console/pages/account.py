"""One's own account: password, second step, sessions."""

import re
from datetime import UTC, datetime

import segno

from plankeeper.accounts import self_service, store, totp
from plankeeper.accounts.credentials import Proof
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.errors import NotFound

pages = Pages()

ACCOUNT = f"{PREFIX}/account"
_SYSTEMS = {
    "iPhone": "iPhone", "iPad": "iPad", "Android": "Android", "Windows": "Windows", "Macintosh": "Mac",
    "CrOS": "Chromebook", "Linux": "Linux",
}  # fmt: skip
# In the order in which they are asked: most say that they are the later ones too.
_BROWSERS = {
    "Edg": "Edge", "OPR/": "Opera", "SamsungBrowser/": "Samsung Internet", "Firefox/": "Firefox", "FxiOS/": "Firefox",
    "CriOS/": "Chrome", "Chrome/": "Chrome", "Safari/": "Safari",
}  # fmt: skip


@pages.get("/account", need="account")
async def show(look: Look) -> Page:
    sessions = await store.open_sessions(look.db, look.account.account_id, datetime.now(UTC))
    shown = [(each, browser_of(each.user_agent), each.token_hash == look.account.token_hash) for each in sessions]
    shown.sort(key=lambda each: not each[2])
    codes = await store.recovery_codes_left(look.db, look.account.account_id) if look.account.totp else 0
    return Page("own.html", {"sessions": shown, "codes": codes})


@pages.get("/account/password", need="account")
async def password_form(_look: Look) -> Page:
    return Page("account_password.html")


@pages.post("/account/password", need="account", again=password_form)
async def change_password(look: Look) -> Redirect:
    proof = await proven(look)
    async with look.db.transaction() as tx:
        await self_service.change_password(tx, look.settings, look.account, proof, look.form.secret("new_password"))
    return Redirect(ACCOUNT, "Your password is changed. Your other sessions have ended.")


@pages.get("/account/second-step", need="account")
async def turn_on_form(look: Look) -> Page | Redirect:
    if look.account.totp:
        return Redirect(ACCOUNT)
    known = look.form.text("secret")
    secret = known if totp.is_secret(known) else totp.new_secret()
    address = totp.address_of(secret, look.account.email)
    # Dark on white in both schemes, or a camera would not see it.
    picture = segno.make(address, error="m").svg_data_uri(scale=5, border=4, dark="#000", light="#fff")
    spaced = " ".join(re.findall("....", secret))
    return Page("account_second_step.html", {"secret": secret, "spaced": spaced, "picture": picture})


@pages.post("/account/second-step", need="account", again=turn_on_form)
async def turn_on(look: Look) -> Page:
    proof = await proven(look)
    secret, code = look.form.text("secret"), look.form.text("code")
    async with look.db.transaction() as tx:
        return codes_page(await self_service.enable_totp(tx, look.settings, look.account, proof, secret, code))


@pages.get("/account/second-step/off", need="account")
async def turn_off_form(look: Look) -> Page | Redirect:
    return Page("account_second_step_off.html") if look.account.totp else Redirect(ACCOUNT)


@pages.post("/account/second-step/off", need="account", again=turn_off_form)
async def turn_off(look: Look) -> Redirect:
    proof = await proven(look)
    async with look.db.transaction() as tx:
        await self_service.disable_totp(tx, look.settings, proof)
    return Redirect(ACCOUNT, "The second step is off. Your password alone signs you in.")


@pages.get("/account/recovery-codes", need="account")
async def codes_form(look: Look) -> Page | Redirect:
    return Page("account_codes_new.html") if look.account.totp else Redirect(ACCOUNT)


@pages.post("/account/recovery-codes", need="account", again=codes_form)
async def renew_codes(look: Look) -> Page:
    proof = await proven(look)
    async with look.db.transaction() as tx:
        return codes_page(await self_service.renew_recovery_codes(tx, look.settings, proof))


@pages.post("/account/sessions/end", need="account")
async def end(act: Act) -> Redirect:
    wanted = act.form.text("session")
    known = re.fullmatch("[0-9a-f]{64}", wanted) and bytes.fromhex(wanted)
    if not known or known == act.account.token_hash:
        raise NotFound  # this one is ended by signing out
    if not await self_service.revoke_session(act.tx, act.settings, act.account, known):
        raise NotFound
    return Redirect(ACCOUNT, "The session has ended.")


@pages.post("/account/sessions/end-others", need="account")
async def end_others(act: Act) -> Redirect:
    ended = await self_service.revoke_other_sessions(act.tx, act.settings, act.account)
    some = {0: "There was no other session.", 1: "1 other session has ended."}
    return Redirect(ACCOUNT, some.get(ended, f"{ended} other sessions have ended."))


async def proven(look: Look) -> Proof:
    """Whose account it is, with the password that was given again; raises Invalid."""
    given = look.form.secret("password")
    return await self_service.proven(look.db, look.settings, look.account, given, look.address, look.user_agent)


def codes_page(codes: list[str]) -> Page:
    """The one page that shows recovery codes: they are not kept."""
    return Page("account_codes.html", {"codes": codes})


def browser_of(agent: str) -> str:
    """A browser in words, as well as what it says of itself allows."""
    browser = next((told for sign, told in _BROWSERS.items() if sign in agent), None)
    system = next((told for sign, told in _SYSTEMS.items() if sign in agent), None)
    if browser is None:
        return "another program"
    return f"{browser} on {system}" if system else browser
