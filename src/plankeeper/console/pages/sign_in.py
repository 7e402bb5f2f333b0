"""Signing in and out, the second step, taking up an invitation, and which plan manager to work for."""

from urllib.parse import quote
from uuid import UUID

from plankeeper.accounts import sessions
from plankeeper.console.responses import is_ours
from plankeeper.console.routing import PREFIX, Act, Look, Page, Pages, Redirect
from plankeeper.http.context import found
from plankeeper.http.parsing import uuid_of

pages = Pages()

HOME = f"{PREFIX}/participants"


@pages.get("", need="account")
async def home(_look: Look) -> Redirect:
    return Redirect(HOME)


@pages.get("/sign-in", need="anyone")
async def sign_in_form(look: Look) -> Page | Redirect:
    if look.session and not look.session.second_step_due:
        return Redirect(onward(look.query.text("next")))
    return Page("sign_in.html", {"next": look.query.text("next") or look.form.text("next"), "wait": None})


@pages.post("/sign-in", need="anyone", guess=True)
async def sign_in(look: Look) -> Page | Redirect:
    email, password, following = look.form.text("email"), look.form.secret("password"), look.form.text("next")
    entered = await sessions.sign_in(look.db, look.settings, email, password, look.address, look.user_agent)
    if isinstance(entered, sessions.Refused):
        return Page("sign_in.html", {"next": following, "wait": entered.seconds}, 401)
    if look.session:  # in the same browser: nothing holds its token any more
        await sessions.sign_out(look.db, look.token)
    if entered.second_step_due:
        return Redirect(f"{PREFIX}/second-step" + next_query(following), token=entered.token)
    return Redirect(onward(following), token=entered.token)


@pages.get("/second-step", need="half")
async def second_step_form(look: Look) -> Page | Redirect:
    if not look.account.second_step_due:
        return Redirect(HOME)
    return Page("second_step.html", {"next": look.query.text("next"), "wait": None})


@pages.post("/second-step", need="half", guess=True)
async def second_step(look: Look) -> Page | Redirect:
    following = look.form.text("next")
    if not look.account.second_step_due:
        return Redirect(onward(following))
    entered = await sessions.second_step(look.db, look.settings, look.token, look.form.text("code"))
    if isinstance(entered, sessions.Refused):
        return Page("second_step.html", {"next": following, "wait": entered.seconds}, 401)
    return Redirect(onward(following), token=entered.token)


@pages.get("/invitations/{token}", need="anyone")
async def invitation(look: Look, token: str) -> Page:
    invited = found(await sessions.invitation(look.db, token))
    return Page("invitation.html", {"invited": invited, "invitation_token": token, "wait": None})


@pages.post("/invitations/{token}", need="anyone", again=invitation, guess=True)
async def accept(look: Look, token: str) -> Page | Redirect:
    name, password = look.form.text("name"), look.form.secret("password")
    invited = found(await sessions.invitation(look.db, token))
    taken = found(await sessions.accept(look.db, look.settings, token, name, password, look.address, look.user_agent))
    if isinstance(taken, sessions.Refused):
        return Page("invitation.html", {"invited": invited, "invitation_token": token, "wait": taken.seconds}, 401)
    following = f"{PREFIX}/second-step" if taken.second_step_due else HOME
    return Redirect(following, f"You work for {invited.plan_manager_name} now.", token=taken.token)


@pages.post("/sign-out", need="half")
async def sign_out(look: Look) -> Redirect:
    await sessions.sign_out(look.db, look.token)
    return Redirect(f"{PREFIX}/sign-in", token="")


@pages.get("/plan-managers", need="account")
async def choices(look: Look) -> Page:
    return Page("plan_managers.html", {"choices": named(look.account)})


@pages.post("/plan-managers", need="account", again=choices)
async def choose(act: Act) -> Page | Redirect:
    wanted = uuid_of(act.form.text("plan_manager_id"))
    if wanted is None or wanted not in act.account.roles:
        # Nothing is told of a plan manager that is none of theirs.
        return Page("plan_managers.html", {"choices": named(act.account)}, 422)
    await sessions.choose(act.tx, act.account, wanted)
    return Redirect(HOME, f"You work for {act.account.plan_manager_names[wanted]} now.")


def named(session: sessions.Session) -> list[tuple[UUID, str, str]]:
    """Plan managers with their names and the role with each, by name."""
    held = [(each, session.plan_manager_names[each], role) for each, role in session.roles.items()]
    return sorted(held, key=lambda each: (each[1].casefold(), each[0]))


def onward(wanted: str) -> str:
    """Where somebody wanted to go, if that is a page of ours."""
    return wanted if is_ours(wanted) and not wanted.startswith((f"{PREFIX}/sign-in", f"{PREFIX}/assets")) else HOME


def next_query(wanted: str) -> str:
    return f"?next={quote(wanted, safe='/')}" if wanted and is_ours(wanted) else ""
