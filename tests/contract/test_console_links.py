"""The addresses in the console's templates are those of its pages."""

import asyncio
import re
from pathlib import Path
from typing import Any, NamedTuple

from starlette.types import ASGIApp

from plankeeper.console import application
from plankeeper.console.application import page_routes
from plankeeper.core.ids import parse_uuid
from plankeeper.http.routing import PathRouter

TEMPLATES = sorted(Path(application.__file__).parent.glob("*/templates/*.html"))
# An address with its attribute, in an expression, or in a block of `shell/form_page.html`. One that an expression
# continues with `~` isn't complete, unless only an id follows.
ADDRESS = re.compile(
    r'(\w*)="(/console(?:\{\{.*?\}\}|\{%.*?%\}|[^"{])*)"'
    r'|"(/console[^"{]*)"(?: ~ [\w.]+\.id\b)?(?! ~)'
    r"|\{% block action %\}(/console.*?)\{% endblock %\}"
)
SEGMENT = "01900000-0000-7000-8000-000000000000"  # an id, which can stand for a text, too
# Addresses with an expression for a segment that isn't an id, with the reason.
COMPUTED = {
    "components/spend.html: /console/{{ other }}s/{{ other_id }}": "a participant or a provider",
    "people/account_managers.html: /console/account-managers/{{ account_manager.id }}"
    "/{{ 'deactivate' if account_manager.active else 'activate' }}": "two actions",
}


class Link(NamedTuple):
    """An address in a template. `attribute` is empty in an expression."""

    template: str
    attribute: str
    address: str

    @property
    def path(self) -> str:
        """With an id for each expression that begins a segment. Other expressions and statements add a query."""
        text = re.sub(r"\{%.*?%\}", "", self.address)
        text = re.sub(r"/\{\{.*?\}\}|/$", f"/{SEGMENT}", text)
        return re.split(r"[?#]", re.sub(r"\{\{.*?\}\}", "", text))[0]


def find_links() -> list[Link]:
    return [
        Link(f"{each.parts[-3]}/{each.name}", attribute, "".join(addresses))
        for each in TEMPLATES
        for attribute, *addresses in ADDRESS.findall(each.read_text())
    ]


def app_of(path: str | None) -> ASGIApp:
    """An application that leaves its path in the scope."""

    async def app(scope: Any, _receive: Any, _send: Any) -> None:
        scope["page"] = path

    return app


def leads_to_page(link: Link, router: PathRouter) -> bool:
    """Whether the router and the types of the parameters accept the path; that of a link, for GET."""
    scope: Any = {"type": "http", "path": link.path, "path_params": {}}
    asyncio.run(router(scope, None, None))  # type: ignore[arg-type]
    routes = [each for each in page_routes() if each.path == scope["page"]]
    return any(
        all(kind is str or parse_uuid(scope["path_params"][name]) for name, kind in each.path_params.items())
        for each in routes
        if each.method == "GET" or link.attribute != "href"
    )


def test_every_address_in_a_template_is_that_of_a_page() -> None:
    router, links = PathRouter({each.path: app_of(each.path) for each in page_routes()}, app_of(None)), find_links()
    assert len(links) > 300
    broken = {f"{each.template}: {each.address}" for each in links if not leads_to_page(each, router)}
    assert broken == set(COMPUTED)
