"""The error catalogue, generated from the tables of errors and warnings."""

from plankeeper.core.context import ReadContext
from plankeeper.core.errors import CODES
from plankeeper.core.lists import Page, build_page, cut_page
from plankeeper.http.routing import READ, Router
from plankeeper.resources.error_catalogue.schemas import ErrorCatalogueEntry, ErrorCatalogueListQuery
from plankeeper.resources.invoices.warnings import WARNINGS

ENTRIES = sorted(
    [ErrorCatalogueEntry(code, "api", each.status, each.title, each.description) for code, each in CODES.items()]
    + [
        ErrorCatalogueEntry(code, each.applies_to, None, each.title, each.description)
        for code, each in WARNINGS.items()
    ],
    key=lambda entry: entry.error_code,
)

router = Router("error_catalogue")


@router.get("/error-catalogue", scope=READ, extension=True)
async def list_(ctx: ReadContext, query: ErrorCatalogueListQuery) -> Page[ErrorCatalogueEntry]:  # noqa: ARG001 - the same for every plan manager
    """List the error catalogue. It contains every error code and every warning of invoices, in ascending order."""
    entries = [entry for entry in ENTRIES if entry.error_code > query.start]
    total = None if query.uses_cursor else len(ENTRIES)
    rows = cut_page(entries[query.offset :], query.limit, "error_code")
    return build_page(query, rows, total)
