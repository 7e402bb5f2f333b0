"""The way back to the review queue, for forms that were opened from it."""

from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from plankeeper.console.shell.routing import PREFIX, PageRequest

MAX_PART_LENGTH = 200  # of the query of a part of the review queue


class ReviewPage(NamedTuple):
    """The page of an invoice in the review queue, and the query with which a form leads back to it."""

    url: str
    suffix: str


def review_page(request: PageRequest, invoice_id: UUID) -> ReviewPage | None:
    """The page that a form was opened from, if it was that of the review queue."""
    if "review" not in request.query:
        return None
    part = request.query.raw("review")[:MAX_PART_LENGTH]
    query = f"?{quote(part, safe='=&')}" if part else ""
    return ReviewPage(f"{PREFIX}/review/{invoice_id}{query}", f"?review={quote(part, safe='')}")
