"""Redirects to a page that has to come first, such as the sign-in page."""

from urllib.parse import quote

from starlette.requests import Request

from plankeeper.access.accounts.schemas import Session
from plankeeper.console.shell.routing import PREFIX, PageRoute, Redirect

SIGN_IN, TWO_FACTOR, CHOOSE_PLAN_MANAGER = f"{PREFIX}/sign-in", f"{PREFIX}/two-factor", f"{PREFIX}/plan-managers"
ENABLE_TWO_FACTOR = f"{PREFIX}/account/two-factor"


def guard_redirect(route: PageRoute, session: Session | None, request: Request) -> Redirect | None:
    """The redirect to the page that has to come first, such as the sign-in page; null if there is none."""
    if route.role == "anyone":
        return None
    if session is None:
        query = request.scope["query_string"].decode("latin-1")
        target = request.scope["path"] + (f"?{query}" if query else "")
        is_default = target == PREFIX or route.method != "GET"
        return Redirect(SIGN_IN if is_default else f"{SIGN_IN}?next={quote(target, safe='/')}")
    if route.role == "password_verified":
        return None
    if session.two_factor_pending:
        return Redirect(TWO_FACTOR)
    if route.role != "signed_in" and session.plan_manager_id not in session.roles:
        return Redirect(ENABLE_TWO_FACTOR if session.two_factor_required_by else CHOOSE_PLAN_MANAGER)
    return None
