"""Hooks of MkDocs for `make docs`: what the site contains, its addresses, and the files beside its pages.

The pages are the Markdown files of the project, as they are. They also have to be readable in a repository, so they
use only plain Markdown and links between files. The hooks turn consecutive samples into tabs, and links into addresses
below /docs. The server learns from `manifest.json` which file belongs to an address.
"""

import base64
import hashlib
import json
import mimetypes
import posixpath
import re
import shutil
import tempfile
import textwrap
from importlib.metadata import distribution
from pathlib import Path
from typing import Any
from urllib.parse import urljoin

import postman
import reference
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.structure.files import Files
from mkdocs.structure.nav import Navigation, Section
from mkdocs.structure.pages import Page

PROJECT = Path(__file__).parents[2]
PREFIX = "/docs"
# Files outside `docs` to which pages link.
LINKED_FILES = (
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE",
    "NOTICE",
    "SECURITY.md",
    "benchmarks/README.md",
    "packaging/Containerfile",
    "packaging/compose/compose.yaml",
    "packaging/environment.example",
    "packaging/plankeeper-backup.timer",
    "packaging/plankeeper.service",
    "packaging/grafana/dashboard.json",
    "packaging/prometheus/alerts.yml",
)
# Pages whose address isn't their path. `/docs/api` is the reference, so its overview has another address.
NAMES = {
    "docs/README.md": "index",
    "docs/api/README.md": "api/overview",
    "docs/decisions/README.md": "decisions",
    "docs/operations/README.md": "operations",
    "benchmarks/README.md": "benchmarks",
    "CHANGELOG.md": "changelog",
    "CONTRIBUTING.md": "contributing",
    "SECURITY.md": "security-policy",  # docs/security.md is `security`
}
# Parts of the theme that the site doesn't use: search in other languages, source maps, an index for crawlers.
UNUSED = ("assets/javascripts/lunr", "**/*.map", "sitemap.xml", "sitemap.xml.gz")
# What the theme lacks for screen readers: one landmark for a whole navigation, a name for the search, and cells that
# aren't headings where a column has none.
ACCESSIBILITY_FIXES = {
    r'(<nav class="md-nav" data-md-level="[1-9]") aria-labelledby="\w+" aria-expanded="\w+"': r'\1 role="presentation"',
    r'(<div class="md-search" data-md-component="search" role="dialog")': r'\1 aria-label="Search"',
    r"<th></th>": "<td></td>",
}
# Readers look for what they can do before they look for reasons. 1 is the default.
SEARCH_BOOSTS = {
    "docs/api/reference.md": 0.5,
    "docs/decisions/": 0.1,
    "benchmarks/": 0.1,
    "docs/api/": 3,
    "docs/webhooks.md": 4,
    "docs/console.md": 4,
    "docs/command-line.md": 2,
    "docs/keep-a-copy.md": 4,
    "docs/errors-and-retries.md": 4,
}
TABS = {"sh": "curl", "python": "Python", "js": "JavaScript"}

_SAMPLE = r"```(?:sh|python|js)\n(?:(?!```).*\n)*```\n"
_SAMPLES = re.compile(rf"^{_SAMPLE}(?:{_SAMPLE})+", re.MULTILINE)
_FENCE = re.compile(r"^```(\w*)\n(.*?)^```\n", re.MULTILINE | re.DOTALL)
_FENCE_OR_TEXT = re.compile(r"(^```.*?^```$)", re.MULTILINE | re.DOTALL)
# Also within a list.
_ANY_FENCE_OR_TEXT = re.compile(r"(^ *```.*?^ *```$)", re.MULTILINE | re.DOTALL)
_LINK = re.compile(r"(?<=\]\()([^)\s]+)(?=\))")
_NESTED_LIST = re.compile(r"^ {2,3}(?=[*-] )", re.MULTILINE)
_ADDRESS = re.compile(r'\b(href|src)="([^"]*)"')
_CONFIG = re.compile(r'(<script id="__config" type="application/json">)(.*?)(</script>)', re.DOTALL)
_INLINE_SCRIPT = re.compile(r"<script>(.*?)</script>", re.DOTALL)

_state: dict[str, Any] = {}


def name_of(source: str) -> str:
    """The address of a page below /docs: `api/lists` for docs/api/lists.md."""
    return NAMES.get(source) or source.removeprefix("docs/").removesuffix(".md")


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Copy what the site contains into a folder of its own, with the same paths as in the project."""
    folder = Path(tempfile.mkdtemp())
    shutil.copytree(PROJECT / "docs", folder / "docs")
    for name in LINKED_FILES:
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(PROJECT / name, folder / name)
    config.docs_dir = str(folder)
    document = json.loads((PROJECT / "openapi.json").read_text())
    (folder / "docs/api/reference.md").write_text(reference.reference(document))
    _state.update(document=document, folder=folder, pages={}, sections=[], scripts=set())
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:  # noqa: ARG001 - the signature of the hook
    for file in files.documentation_pages():
        name = name_of(file.src_uri)
        file.dest_uri = f"{name}.html"
        file.url = "./" if name == "index" else name
    for file in files.media_files():
        file.url = file.src_uri.removeprefix("docs/")
        # Python files within the package would look like modules of it.
        file.dest_uri = f"{file.url}.txt" if file.url.endswith(".py") else file.url
    return files


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> Navigation:  # noqa: ARG001 - likewise
    _state["sections"] = [
        (item.title, [page for page in item.children if isinstance(page, Page)])
        for item in nav.items
        if isinstance(item, Section)
    ]
    return nav


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:  # noqa: ARG001 - likewise
    _state["pages"][page.file.src_uri] = page
    page.meta["description"] = summary(markdown)
    boosts = [boost for prefix, boost in SEARCH_BOOSTS.items() if page.file.src_uri.startswith(prefix)]
    page.meta["search"] = {"boost": boosts[0] if boosts else 1}
    parts = _FENCE_OR_TEXT.split(markdown)
    # Python-Markdown indents nested lists by four spaces, other tools by two.
    nested = "".join(part if part.startswith("```") else _NESTED_LIST.sub("    ", part) for part in parts)
    return _SAMPLES.sub(lambda match: tabs(match[0]), nested)


def tabs(samples: str) -> str:
    """Consecutive samples in different languages as tabs; several in one language stay as they are."""
    blocks = _FENCE.findall(samples)
    languages = [language for language, _ in blocks]
    if len(set(languages)) < len(languages):
        return samples
    return "".join(
        f'=== "{TABS[language]}"\n\n' + textwrap.indent(f"```{language}\n{code}```\n\n", "    ")
        for language, code in blocks
    )


def summary(markdown: str) -> str:
    """The first sentence of a page, without markup."""
    paragraphs = [each for each in markdown.split("\n\n") if re.match(r"[^#|`<*\s!-]", each)]
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", paragraphs[0]) if paragraphs else ""
    sentence = re.match(r"(.+?[.:])(\s|$)", " ".join(text.replace("`", "").replace("**", "").split()))
    return sentence[1].rstrip(":.") + "." if sentence else text


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:  # noqa: ARG001 - likewise
    # MkDocs computes relative addresses as if each page were a folder.
    return finish_page(output, urljoin(f"{PREFIX}/", f"{page.url}/" if page.url else ""))


def on_post_template(output_content: str, template_name: str, config: MkDocsConfig) -> str:  # noqa: ARG001 - likewise
    return finish_page(output_content, f"{PREFIX}/") if template_name == "404.html" else output_content


def finish_page(html: str, base: str) -> str:
    """A page with absolute addresses, so that it doesn't matter that /docs has no slash at its end."""

    def absolute(match: re.Match[str]) -> str:
        name, address = match.groups()
        if re.match(r"[a-z]+:|#|/(?:docs|openapi\.json|console)\b", address):
            return match[0]
        joined = urljoin(base, address.removeprefix("/"))
        return f'{name}="{joined.rstrip("/") or PREFIX}"'

    def configure(match: re.Match[str]) -> str:
        found = json.loads(match[2])
        search = urljoin(base, found["search"].removeprefix("/"))
        return match[1] + json.dumps(found | {"base": f"{PREFIX}/", "search": search}) + match[3]

    html = _CONFIG.sub(configure, _ADDRESS.sub(absolute, html))
    for pattern, replacement in ACCESSIBILITY_FIXES.items():
        html = re.sub(pattern, replacement, html)
    _state["scripts"] |= {_hash(script) for script in _INLINE_SCRIPT.findall(html)}
    return html


def _hash(script: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(script.encode()).digest()).decode()


def on_post_build(config: MkDocsConfig) -> None:
    site = Path(config.site_dir)
    for pattern in UNUSED:
        for path in site.glob(pattern):
            shutil.rmtree(path) if path.is_dir() else path.unlink()
    for source in _state["pages"]:
        target = site / f"{name_of(source)}.md"
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_text(markdown_page(source))
    theme = distribution("mkdocs-material")
    [licence] = [file for file in theme.files or [] if file.match("*.dist-info/**/LICENSE")]
    shutil.copy(str(theme.locate_file(licence)), site / "assets/LICENSE.txt")
    (site / "llms.txt").write_text(llms_text(config))
    (site / "plankeeper.postman_collection.json").write_text(
        json.dumps(postman.collection(_state["document"]), indent=1)
    )
    (site / "manifest.json").write_text(json.dumps(manifest(site), indent=1))
    shutil.rmtree(_state["folder"])


def markdown_page(source: str) -> str:
    """The Markdown of a page, with links to the Markdown of other pages."""

    def absolute(match: re.Match[str]) -> str:
        path, separator, anchor = match[1].partition("#")
        if not path or re.match(r"[a-z]+:|/", path):
            return match[1]
        target = posixpath.normpath(posixpath.join(posixpath.dirname(source), path))
        address = f"{name_of(target)}.md" if target.endswith(".md") else target.removeprefix("docs/")
        return f"{PREFIX}/{address}{separator}{anchor}"

    parts = _ANY_FENCE_OR_TEXT.split((_state["folder"] / source).read_text())
    return "".join(part if part.lstrip().startswith("```") else _LINK.sub(absolute, part) for part in parts)


def llms_text(config: MkDocsConfig) -> str:
    """An index of the Markdown pages for language models (llmstxt.org)."""
    lines = [f"# {config.site_name}", "", f"> {config.site_description}", ""]
    lines += [
        "The OpenAPI document is at [/openapi.json](/openapi.json). Neither it nor these pages require a key.",
        "",
    ]
    for title, pages in _state["sections"]:
        lines += [f"## {title}", ""]
        lines += [
            f"- [{page.title}]({PREFIX}/{name_of(page.file.src_uri)}.md): {page.meta['description']}" for page in pages
        ]
        lines.append("")
    return "\n".join(lines)


def manifest(site: Path) -> dict[str, Any]:
    """The file and the media type of each address, and the hashes of the scripts within pages."""
    files: dict[str, list[str]] = {}
    for path in sorted(site.rglob("*")):
        name = path.relative_to(site).as_posix()
        if path.is_dir() or name == "manifest.json":
            continue
        address = f"{PREFIX}/{name}"
        if name.endswith(".html"):
            address = PREFIX if name == "index.html" else address.removesuffix(".html")
        files[address.replace(".py.txt", ".py")] = [name, media_type(name)]
    files["/llms.txt"] = files[f"{PREFIX}/llms.txt"]
    return {"files": files, "scripts": sorted(_state["scripts"])}


def media_type(name: str) -> str:
    types = {".md": "text/markdown", ".service": "text/plain", ".mjs": "text/javascript", ".yml": "text/plain"}
    types |= dict.fromkeys([".yaml", ".example", ".timer"], "text/plain")
    guessed = types.get(Path(name).suffix) or mimetypes.guess_type(name)[0] or "text/plain"
    return f"{guessed}; charset=utf-8" if guessed.startswith("text/") else guessed
