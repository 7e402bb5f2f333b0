"""The pages that come before others, such as the sign-in page, and forms of an ended or earlier session.

Such a form is not saved: the person signs in, checks the form and sends it again.
After a sign-in, the script `drafts.js` shows what was entered, which it keeps in the browser's tab.
"""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request

from plankeeper.access.accounts.schemas import Session
from plankeeper.console.shell.cookies import CsrfError
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.responses import is_local_path
from plankeeper.console.shell.routing import PREFIX, PageRequest, PageRoute, Redirect

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


NOT_SHOWN_AGAIN = {"csrf", "password", "new_password", "code", "secret"}
OUTDATED = "You signed in again after you opened this form. Nothing is saved yet: check the values, and save again."


def without_secrets(form: Form) -> Form:
    """The form without tokens, passwords and codes."""
    return Form((name, text) for name, text in form.multi_items() if name not in NOT_SHOWN_AGAIN)


def sign_in_redirect(route: PageRoute, request: PageRequest, params: Mapping[str, Any], http: Request) -> Redirect:
    """The sign-in page, which says that the form wasn't saved and leads back to the page of the form.

    Raises CsrfError for a form that no page shows again.
    """
    page = SIGN_IN if request.session is None else TWO_FACTOR
    next_path = _referring_path(http) if route.form_path is None else route.form_path.format(**params)
    return Redirect(f"{page}?unsaved=1&next={quote(next_path, safe='/')}")


def _referring_path(request: Request) -> str:
    """The page with the button; raises CsrfError if the browser doesn't say which one it is."""
    address = urlsplit(request.headers.get("referer", ""))
    path = f"{address.path}?{address.query}" if address.query else address.path
    if not is_local_path(path):
        raise CsrfError
    return path
