"""Pages are compressed, except those that show a secret, and form tokens are masked in each response."""

import re
from pathlib import Path

import pytest

from plankeeper.console import csrf, responses
from support.console import Browser

TEMPLATES = Path(responses.__file__).with_name("templates")
PAGES = (
    "/console",
    "/console/participants",
    "/console/participants/new",
    "/console/invoices",
    "/console/providers",
    "/console/activity",
    "/console/search?q=a",
    "/console/settings",
    "/console/settings/people",
    "/console/settings/keys",
    "/console/settings/webhooks",
    "/console/account",
    "/console/imports/new",
    "/console/nothing-here",
)


def tokens_in(page: str) -> set[str]:
    return set(re.findall(r'name="csrf" value="([^"]+)"', page))


def test_pages_are_compressed_for_browsers_that_accept_it(owner: Browser) -> None:
    found = {
        path: (owner.get(path).headers.get("content-encoding"), owner.get(path).headers["vary"].lower())
        for path in PAGES
    }
    assert found == dict.fromkeys(PAGES, ("gzip", "accept-encoding"))
    plain = owner.get("/console", headers={"Accept-Encoding": "identity"})
    assert ("content-encoding" in plain.headers, "</html>" in plain.text) == (False, True)


def test_each_response_has_another_mask_and_all_of_them_work(owner: Browser) -> None:
    page = "/console/note-types/new"
    [first], [second] = (tokens_in(owner.get(page).text) for _ in range(2))
    assert first[:32] != second[:32]
    for token in (first, second):
        form = {"csrf": token, "note_type": f"Type {token[:8]}"}
        assert owner.http.post("/console/note-types", data=form, headers={"Origin": owner.url}).status_code == 303
    changed = first[:-1] + ("0" if first[-1] != "0" else "1")
    form = {"csrf": changed, "note_type": "Forged"}
    assert owner.http.post("/console/note-types", data=form, headers={"Origin": owner.url}).status_code == 403


@pytest.mark.parametrize("token", ["", "x" * 96, "\u00e9" * 96, "0" * 31])
def test_other_texts_are_no_token(token: str) -> None:
    assert not csrf.is_current_token(token, "secret")
    assert not csrf.is_current_token(csrf.mask_token(""), "")


def test_the_pages_with_a_secret_are_listed() -> None:
    """A page that shows a text once, or has a token in its address, isn't compressed."""
    shown = {
        each.name
        for each in TEMPLATES.glob("*.html")
        if re.search(r"copy_block\(|_token \| urlencode", each.read_text())
    }
    assert shown - {"webhook_delivery_page.html"} == responses.SECRET_TEMPLATES  # a delivery's body has no secret


def test_pages_with_a_secret_are_not_compressed(owner: Browser) -> None:
    form = {"name": "Reports", "scope": ["read"], "lasts": ""}
    pages = [owner.get("/console/account/two-factor"), owner.submit("/console/settings/keys", form)]
    assert [each.status_code for each in pages] == [200, 200]
    assert ["content-encoding" in each.headers for each in pages] == [False, False]


def test_unknown_paths_are_a_page_in_a_browser_and_json_for_programs(owner: Browser) -> None:
    html = {"Accept": "text/html,*/*"}
    page, other = owner.get("/nope", headers=html), owner.get("/nope", headers={"Accept": "*/*"})
    assert (page.status_code, "Page not found" in page.text) == (404, True)
    assert "It may have been deleted" not in page.text
    assert (other.status_code, other.json()["success"]) == (404, False)
    assert owner.get("/api/public/v1/nope", headers=html).json()["success"] is False
    record = owner.get("/console/participants/0192f0c5-0000-7000-8000-000000000000")
    assert (record.status_code, "It may have been deleted" in record.text) == (404, True)
