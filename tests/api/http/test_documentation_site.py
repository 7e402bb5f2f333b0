"""The documentation site as a server serves it: each address, its policy, the Markdown, and without a build."""

import base64
import hashlib
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import urljoin, urlsplit

import httpx
import pytest
from starlette.responses import PlainTextResponse

from plankeeper.core.errors import CODES
from plankeeper.http.public import documentation
from plankeeper.http.public.documentation import SITE, DocumentationSite
from support.client import DOCUMENT, PREFIX, Client, check_response
from support.documentation import require_site, site_files, site_pages

# Addresses to which pages link, and which aren't part of the site.
OTHER_ADDRESSES = {"/docs/api", "/openapi.json", "/console"}


class LinkParser(HTMLParser):
    """The ids and the addresses of a page."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.ids: set[str] = set()
        self.links: set[str] = set()
        self.handlers: list[str] = []
        self.feed(html)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if name == "id":
                self.ids.add(value or "")
            elif name in ("href", "src"):
                self.links.add(value or "")
            elif name == "style" or name.startswith("on"):
                self.handlers.append(f"{tag} {name}={value}")


@pytest.fixture(scope="module")
def parsed() -> dict[str, LinkParser]:
    """All pages."""
    require_site()
    files = site_files()
    return {path: LinkParser((SITE / files[path][0]).read_text()) for path in site_pages()}


@pytest.fixture(autouse=True)
def _site() -> None:
    require_site()


def test_every_address_of_the_site_responds_with_its_type(api: Client) -> None:
    assert len(site_pages()) > 60
    assert "/docs/assets/LICENSE.txt" in site_files()  # of the theme, as NOTICE says
    for path, (name, media_type) in site_files().items():
        if path != "/docs/404":
            response = api.http.get(path)
            assert (response.status_code, response.headers["content-type"]) == (200, media_type), path
            assert response.content == (SITE / name).read_bytes()


def test_a_page_has_a_policy_that_allows_only_its_own_scripts(api: Client) -> None:
    response = api.http.get("/docs/webhooks")
    policy = {
        name: rest for name, *rest in (part.split() for part in response.headers["content-security-policy"].split(";"))
    }
    inline = re.findall(r"<script>(.*?)</script>", response.text, re.DOTALL)
    hashes = {base64.b64encode(hashlib.sha256(each.encode()).digest()).decode() for each in inline}
    assert policy.pop("script-src")[0] == "'self'"
    assert {f"'sha256-{each}'" for each in hashes} <= set(
        response.headers["content-security-policy"].split(";")[1].split()
    )
    assert policy == {
        "default-src": ["'none'"], "style-src": ["'self'"], "img-src": ["'self'", "data:"], "font-src": ["'self'"],
        "connect-src": ["'self'"], "worker-src": ["'self'"], "frame-ancestors": ["'none'"], "base-uri": ["'none'"],
        "form-action": ["'self'"],
    }  # fmt: skip
    assert response.headers["x-content-type-options"] == "nosniff"
    assert response.headers["referrer-policy"] == "no-referrer"


def test_no_page_has_style_attributes_or_event_handlers(parsed: dict[str, LinkParser]) -> None:
    assert {path: page.handlers for path, page in parsed.items() if page.handlers} == {}


def test_every_link_of_the_site_leads_somewhere(parsed: dict[str, LinkParser]) -> None:
    wrong: list[str] = []
    files = site_files()
    for path, page in parsed.items():
        for link in page.links:
            parts = urlsplit(urljoin(path, link))
            if parts.scheme:
                assert link.startswith(("https://", "data:", "http://127.0.0.1", "http://localhost")), (path, link)
            elif parts.path not in files and parts.path not in OTHER_ADDRESSES:
                wrong.append(f"{path}: {link}")
            elif parts.fragment and parts.path in parsed and parts.fragment not in parsed[parts.path].ids:
                wrong.append(f"{path}: {link}: no such anchor")
    assert wrong == []


def test_the_reference_has_every_operation_and_schema() -> None:
    headings = re.findall(r"^### (.+)$", (SITE / "api/reference.md").read_text(), re.MULTILINE)
    operations = [
        f"{method.upper()} {path.removeprefix(PREFIX)}" for path, item in DOCUMENT["paths"].items() for method in item
    ]
    assert sorted(headings) == sorted([*operations, *(f"{name} schema" for name in DOCUMENT["components"]["schemas"])])


def test_the_documentation_url_of_an_error_leads_to_its_section(api: Client, parsed: dict[str, LinkParser]) -> None:
    path, _, anchor = api.get("/nothing").json()["documentation_url"].partition("#")
    assert anchor == "path_not_found"
    assert parsed[path].ids >= set(CODES)


def test_every_page_is_also_markdown_whose_links_are_markdown(api: Client) -> None:
    for path in site_pages():
        address = "/docs/index.md" if path == "/docs" else f"{path}.md"
        response = api.http.get(address)
        assert (response.status_code, response.headers["content-type"]) == (200, "text/markdown; charset=utf-8")
        text = re.sub(r"^ *```.*?^ *```$", "", response.text, flags=re.MULTILINE | re.DOTALL)
        assert text.startswith("# ")
        for link in re.findall(r"\]\(([^)\s#]+)", text):
            if not link.startswith(("https:", "http:")):
                assert link in site_files() or link in OTHER_ADDRESSES, (path, link)


@pytest.mark.parametrize("path", ["/llms.txt", "/docs/llms.txt"])
def test_the_index_for_language_models_has_every_page_of_the_navigation(api: Client, path: str) -> None:
    text = api.http.get(path).text
    assert text.startswith("# Plankeeper\n\n> ")
    links = re.findall(r"^- \[[^\]]+\]\((/docs/[^)]+)\): \S.+\.$", text, re.MULTILINE)
    assert len(links) == len([line for line in text.splitlines() if line.startswith("- ")])
    pages = {f"{each}.md" for each in site_pages() if each != "/docs"}
    assert {each for each in pages if "/decisions/" not in each} == set(links)


def test_unknown_addresses_show_browsers_a_page_and_programs_json(api: Client) -> None:
    page = api.http.get("/docs/nothing", headers={"Accept": "text/html,*/*;q=0.8"})
    assert (page.status_code, page.headers["content-type"]) == (404, "text/html; charset=utf-8")
    assert "Page not found" in page.text
    again = api.http.get("/docs/nothing", headers={"Accept": "text/html", "If-None-Match": page.headers["etag"]})
    assert again.status_code == 404
    for path in ("/docs/nothing", "/docs/404", "/docs/manifest.json", "/docs/index.html", "/docs/../app.py"):
        response = api.http.get(path)
        check_response(response)
        assert (response.status_code, response.json()["error"]) == (404, "path_not_found")


# Without a build


def build(folder: Path, text: str) -> None:
    folder.mkdir(exist_ok=True)
    (folder / "index.html").write_text(text)
    files = {"/docs": ["index.html", "text/html; charset=utf-8"], "/docs/404": ["index.html", "text/html"]}
    (folder / "manifest.json").write_text(json.dumps({"files": files, "scripts": ["sha256-x"]}))


async def test_until_the_site_is_built_its_address_shows_the_reference(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(documentation, "CHECK_INTERVAL", 0)
    folder = tmp_path / "site"
    site = DocumentationSite(folder, PlainTextResponse("reference"), PlainTextResponse("not found", 404), {})
    browser = {"Accept": "text/html"}
    async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://test") as client:
        assert (await client.get("/docs", headers=browser)).text == "reference"
        assert (await client.get("/docs/webhooks", headers=browser)).text == "not found"
        build(folder, "home")
        response = await client.get("/docs")
        assert (response.text, "'sha256-x'" in response.headers["content-security-policy"]) == ("home", True)
        assert (await client.get("/docs/webhooks", headers=browser)).status_code == 404
        build(folder, "home of the next build")
        assert (await client.get("/docs")).text == "home of the next build"


async def test_the_collection_has_the_public_url(tmp_path: Path) -> None:
    path = "/docs/plankeeper.postman_collection.json"
    collection = {"variable": [{"key": "base_url", "value": "http://127.0.0.1:8000"}, {"key": "api_key", "value": ""}]}
    build(tmp_path, "home")
    (tmp_path / "collection.json").write_text(json.dumps(collection))
    (tmp_path / "manifest.json").write_text(json.dumps({"files": {path: ["collection.json", ""]}, "scripts": []}))
    for public_url, address in [(None, "http://127.0.0.1:8000"), ("https://example.com", "https://example.com")]:
        site = DocumentationSite(tmp_path, PlainTextResponse(""), PlainTextResponse(""), {}, public_url)
        async with httpx.AsyncClient(transport=httpx.ASGITransport(site), base_url="http://test") as client:
            variables = (await client.get(path)).json()["variable"]
        assert variables == [{"key": "base_url", "value": address}, {"key": "api_key", "value": ""}]
