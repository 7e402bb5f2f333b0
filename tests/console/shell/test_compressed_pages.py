"""Pages are compressed, except those that show a secret, and form tokens are masked in each response."""

import re
import time
from collections.abc import Iterator
from pathlib import Path
from typing import get_args, get_type_hints

import httpx
import pytest
from pyotp import TOTP

from plankeeper.console import application
from plankeeper.console.shell import cookies, responses
from plankeeper.console.shell.routing import HtmlPage
from support.console import PASSWORD, Browser, csrf_tokens
from support.factories import PAGES, SeededPlanManager, route_name, seed_plan_manager
from support.form_helpers import form_fields
from support.server import RunningServer

TEMPLATES = sorted(Path(application.__file__).parent.glob("*/templates/*.html"))
HTML_PAGES = [
    each for each in PAGES if HtmlPage in (returned := get_type_hints(each.handler)["return"], *get_args(returned))
]
# The pages with a secret that are shown without sending a form.
SECRET_PAGES = {
    "GET /console/account/two-factor",
    "GET /console/approvals/{approval_token}",
    "GET /console/invitations/{token}",
    "GET /console/reset-password/{reset_token}",
}
# Without a sign-in to complete, a provider for single sign-on and two-factor authentication, these have no page. The
# review queue leads to its first invoice, and what is left out of a batch is shown by reason.
REDIRECTS = {
    "GET /console/account/recovery-codes",
    "GET /console/account/two-factor/off",
    "GET /console/claims/new/left-out",
    "GET /console/review",
    "GET /console/sign-in",
    "GET /console/single-sign-on",
    "GET /console/single-sign-on/link",
    "GET /console/two-factor",
}


@pytest.fixture
def signed_in(filled_office: SeededPlanManager) -> Iterator[Browser]:
    browser = filled_office.browser()
    browser.http.headers["Accept-Encoding"] = "gzip"
    yield browser
    browser.http.close()


def coding(response: httpx.Response) -> str | None:
    """How a page is compressed, which ends as a page does."""
    assert response.text.rstrip().endswith("</html>")
    return response.headers.get("content-encoding")


def test_all_pages_without_a_secret_are_compressed(filled_pages: dict[str, httpx.Response], signed_in: Browser) -> None:
    shown = {name: page for each in HTML_PAGES if (page := filled_pages[name := route_name(each)]).status_code == 200}
    shown["not found"] = signed_in.get("/console/nothing-here")
    found = {name: (coding(each), each.headers.get("vary", "").lower()) for name, each in shown.items()}
    compressed = ("gzip", "accept-encoding")
    assert found == {name: (None, "") if name in SECRET_PAGES else compressed for name in shown}
    assert found.keys() >= SECRET_PAGES
    assert {route_name(each) for each in HTML_PAGES} - found.keys() == REDIRECTS


def test_pages_are_compressed_only_for_browsers_that_accept_it(signed_in: Browser) -> None:
    page = signed_in.get("/console", headers={"Accept-Encoding": "identity"})
    assert (coding(page), page.headers["vary"]) == (None, "accept-encoding")


def test_each_response_has_another_mask_and_all_of_them_work(owner: Browser) -> None:
    page = "/console/note-types/new"
    [first], [second] = (csrf_tokens(owner.get(page).text) for _ in range(2))
    assert first[:32] != second[:32]
    for token in (first, second):
        form = {"csrf": token, "note_type": f"Type {token[:8]}"}
        assert owner.http.post("/console/note-types", data=form, headers={"Origin": owner.url}).status_code == 303
    changed = first[:-1] + ("0" if first[-1] != "0" else "1")
    form = {"csrf": changed, "note_type": "Forged"}
    assert owner.http.post("/console/note-types", data=form, headers={"Origin": owner.url}).status_code == 403


@pytest.mark.parametrize("token", ["", "x" * 96, "\u00e9" * 96, "0" * 31])
def test_other_texts_are_no_token(token: str) -> None:
    assert not cookies.is_current_token(token, "secret")
    assert not cookies.is_current_token(cookies.mask_token(""), "")


def test_the_pages_with_a_secret_are_listed() -> None:
    """A page that shows a text once, or has a token in its address, isn't compressed."""
    shown = {
        f"{each.parent.parent.name}/{each.name}"
        for each in TEMPLATES
        if re.search(r"copy_block\(|_token \| urlencode", each.read_text())
    }
    others = {"components/forms.html", "developers/webhook_delivery_page.html"}  # a delivery's body has no secret
    assert shown - others == responses.SECRET_TEMPLATES


def test_every_page_with_a_secret_shows_it_uncompressed(server: RunningServer) -> None:
    seeded = seed_plan_manager(server)
    signed_in = seeded.browser()
    signed_in.http.headers["Accept-Encoding"] = "gzip"
    key = {"name": "Reports", "scope": ["read"], "lasts": ""}
    invited = {"email": "new@example.com", "role": "viewer"}
    endpoint = form_fields(signed_in, "/console/settings/webhooks/new") | {"url": "https://example.com/secret"}
    setup = signed_in.get("/console/account/two-factor")
    secret = re.findall(r'name="secret" value="([A-Z2-7]{32})"', setup.text)[0]
    code = TOTP(secret).generate_otp(int(time.time()) // 30)
    two_factor = {"secret": secret, "code": code, "password": PASSWORD}
    approval, invitation, reset = (seeded.ids[name] for name in ("approval_token", "token", "reset_token"))
    pages = {
        "account_two_factor": (setup, secret),
        "api_key_created": (signed_in.submit("/console/settings/keys", key), "Authorization: Bearer "),
        "approval_link": (signed_in.get(f"/console/approvals/{approval}"), approval),
        "invitation": (signed_in.get(f"/console/invitations/{invitation}"), invitation),
        "member_invited": (signed_in.submit("/console/settings/people", invited), "/console/invitations/"),
        "reset_password": (signed_in.get(f"/console/reset-password/{reset}"), reset),
        "webhook_created": (signed_in.submit("/console/settings/webhooks", endpoint), "whsec_"),
        # The last one, because it signs the owner in again.
        "account_recovery_codes": (signed_in.submit("/console/account/two-factor", two_factor), "Your recovery codes"),
    }
    assert set(pages) == {Path(each).stem for each in responses.SECRET_TEMPLATES}
    signed_in.http.close()
    seeded.client.http.close()
    found = {name: (page.status_code, text in page.text, coding(page)) for name, (page, text) in pages.items()}
    assert found == dict.fromkeys(pages, (200, True, None))


def test_unknown_paths_are_a_page_in_a_browser_and_json_for_programs(owner: Browser) -> None:
    html = {"Accept": "text/html,*/*"}
    page, other = owner.get("/nope", headers=html), owner.get("/nope", headers={"Accept": "*/*"})
    assert (page.status_code, "Page not found" in page.text) == (404, True)
    assert "It may have been deleted" not in page.text
    assert (other.status_code, other.json()["success"]) == (404, False)
    assert owner.get("/api/public/v1/nope", headers=html).json()["success"] is False
    record = owner.get("/console/participants/0192f0c5-0000-7000-8000-000000000000")
    assert (record.status_code, "It may have been deleted" in record.text) == (404, True)
