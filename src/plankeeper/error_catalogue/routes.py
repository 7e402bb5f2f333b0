"""The error catalogue: made from the same source as the errors themselves."""

from plankeeper.error_catalogue.schemas import CatalogueEntry, CatalogueListQuery
from plankeeper.http.context import Read
from plankeeper.http.errors import CODES
from plankeeper.http.pagination import page_of
from plankeeper.http.routing import READ, Routes
from plankeeper.http.schemas import Page
from plankeeper.invoices.warnings import WARNINGS

ENTRIES = sorted(
    [CatalogueEntry(code, "api", each.status, each.title, each.description) for code, each in CODES.items()]
    + [CatalogueEntry(code, each.applies_to, None, each.title, each.description) for code, each in WARNINGS.items()],
    key=lambda entry: entry.error_code,
)

routes = Routes("error_catalogue")


@routes.get("/error-catalogue", need=READ, extension=True)
async def list_(call: Read, query: CatalogueListQuery) -> Page[CatalogueEntry]:  # noqa: ARG001 - the same for all
    """List every error code with its meaning, ascending by code."""
    following = [entry for entry in ENTRIES if entry.error_code > query.start]
    total = None if query.by_cursor else len(ENTRIES)
    return page_of(query, following[query.offset : query.offset + query.limit + 1], total, "error_code")
