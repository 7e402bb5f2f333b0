"""The account of a request: the session of the cookie, and the CSRF token of its forms."""

from dataclasses import dataclass

from starlette.responses import Response

from plankeeper.access import policy
from plankeeper.access.accounts import sessions
from plankeeper.access.accounts.schemas import Session
from plankeeper.console.cookies import FORM_COOKIE_MAX_AGE, Cookies, split_flash, unsign
from plankeeper.console.csrf import new_csrf_token
from plankeeper.database.client import Database


@dataclass(slots=True)
class CurrentAccount:
    """The account that a browser is signed in to. Until `load_session` is called, `session` is null."""

    cookies: Cookies
    session: Session | None = None
    flash: str | None = None
    flash_undo: str | None = None
    csrf_token: str = ""

    async def load_session(self, db: Database, *, is_use: bool = True) -> None:
        token = self.cookies.get("plankeeper")
        self.session = await sessions.verify_session(db, token, is_use=is_use) if token else None
        if self.session:
            self.csrf_token = self.session.csrf
            flash = unsign(token, self.cookies.get("plankeeper-flash"))
            self.flash, self.flash_undo = split_flash(flash) if flash else (None, None)
        else:
            self.csrf_token = self.cookies.get("plankeeper-form") or new_csrf_token()

    def has_role(self, role: str) -> bool:
        """Whether the account has at least this role with the selected plan manager."""
        session = self.session
        if session is None or session.two_factor_pending or session.plan_manager_id is None:
            return False
        return policy.is_role_at_least(session.roles.get(session.plan_manager_id), role)

    def set_page_cookies(self, response: Response) -> None:
        """Sets the cookies that belong to every page: the CSRF token before sign-in, and no flash message any more."""
        if self.csrf_token and self.session is None and not self.cookies.get("plankeeper-form"):
            self.cookies.set(response, "plankeeper-form", self.csrf_token, FORM_COOKIE_MAX_AGE)
        if self.cookies.get("plankeeper-flash"):
            self.cookies.delete(response, "plankeeper-flash")
