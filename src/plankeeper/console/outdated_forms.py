"""Forms of an ended or earlier session. The entered values are shown again, and only the person can send them."""

from collections.abc import Mapping
from typing import Any
from urllib.parse import quote, urlsplit

from starlette.requests import Request

from plankeeper.access.accounts.schemas import Session
from plankeeper.console import drafts
from plankeeper.console.csrf import CsrfError
from plankeeper.console.forms import Form
from plankeeper.console.responses import is_local_path
from plankeeper.console.routing import PageRequest, PageRoute, Redirect
from plankeeper.console.sign_in_guard import CHOOSE_PLAN_MANAGER, SIGN_IN, TWO_FACTOR

DRAFT_PARAM = "draft"
NOT_KEPT = {"csrf", "password", "new_password", "code", "secret"}
OUTDATED = "You signed in again after you opened this form. Nothing is saved yet: check the values, and save again."
RESUMED = "You were signed out before this was saved. Nothing is saved yet: check the values, and save again."
RESUMED_ELSEWHERE = (
    "You were signed out before this was saved, and another plan manager was selected then. Nothing is saved yet."
)


def kept_form(form: Form) -> Form:
    """The form without tokens, passwords and codes."""
    return Form((name, text) for name, text in form.multi_items() if name not in NOT_KEPT)


async def sign_in_redirect(
    route: PageRoute, request: PageRequest, params: Mapping[str, Any], http: Request
) -> Redirect:
    """The sign-in that leads back to the form with the entered values, or to its page if it has passwords or files.

    Raises CsrfError for a form that no page shows again.
    """
    page = SIGN_IN if request.session is None else TWO_FACTOR
    if route.form_path is None:
        next_path = _referring_path(http)
    else:
        next_path = route.form_path.format(**params)
        if not route.checks_credentials and not route.upload:
            fields = kept_form(request.form).multi_items()
            token = await drafts.save(request.db, request.session_token, request.device_token, next_path, fields)
            if token is None:
                raise CsrfError
            next_path = f"{next_path}?{DRAFT_PARAM}={token}"
    return Redirect(f"{page}?next={quote(next_path, safe='/')}")


def _referring_path(request: Request) -> str:
    """The page with the button; raises CsrfError if the browser doesn't say which one it is."""
    address = urlsplit(request.headers.get("referer", ""))
    path = f"{address.path}?{address.query}" if address.query else address.path
    if not is_local_path(path):
        raise CsrfError
    return path


async def resume(request: PageRequest, path: str, session: Session) -> Redirect | None:
    """Fill the form of a page with the values that were entered before the account was signed out, if any."""
    token = request.query.text(DRAFT_PARAM)
    draft = await drafts.get(request.db, token, session.account_id, path) if token else None
    if draft is None:
        return None
    is_elsewhere = draft.plan_manager_id is not None and draft.plan_manager_id != session.plan_manager_id
    if is_elsewhere and draft.plan_manager_id in session.roles:
        return Redirect(f"{CHOOSE_PLAN_MANAGER}?next={quote(f'{path}?{DRAFT_PARAM}={token}', safe='/')}")
    request.form = Form(draft.fields)
    request.errors = {"form": RESUMED_ELSEWHERE if is_elsewhere else RESUMED}
    return None
