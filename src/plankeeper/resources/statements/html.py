"""The page of a statement: large letters, plain words, and made for printing."""

from functools import cache
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from plankeeper.core.files import Download, single_chunk
from plankeeper.resources.statements.document import to_document
from plankeeper.resources.statements.schemas import StatementContent

HTML = "text/html"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("plankeeper.resources.statements"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(statement: StatementContent, zone: ZoneInfo) -> str:
    """A self-contained page. Dates are those of the zone."""
    return _environment().get_template("statement.html").render(statement=to_document(statement, zone))


def render_body(statement: StatementContent, zone: ZoneInfo) -> Markup:
    """The content of the page, for a page of the console."""
    return Markup(_environment().get_template("body.html").render(statement=to_document(statement, zone)))  # noqa: S704 - the template escapes


def to_file(statement: StatementContent, zone: ZoneInfo) -> Download:
    """The page as a file."""
    content = render_page(statement, zone).encode()
    return Download(f"statement-{statement.month}.html", HTML, len(content), single_chunk(content))
