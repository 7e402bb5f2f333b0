"""The way back to the review queue, for forms that were opened from it."""

from typing import NamedTuple
from urllib.parse import quote
from uuid import UUID

from plankeeper.console.shell.routing import PREFIX, PageRequest

MAX_PART_LENGTH = 200  # of the query of a part of the review queue


class ReviewPage(NamedTuple):
    """The page of an invoice in the review queue, that of the next one, and the query of a form that leads back."""

    url: str
    next_url: str
    suffix: str


def review_page(request: PageRequest, invoice_id: UUID) -> ReviewPage | None:
    """The page that a form was opened from, if it was that of the review queue."""
    if "review" not in request.query:
        return None
    part = request.query.raw("review")[:MAX_PART_LENGTH]
    query = f"?{quote(part, safe='=&')}" if part else ""
    next_url = f"{PREFIX}/review{query}{'&' if query else '?'}after={invoice_id}"
    return ReviewPage(f"{PREFIX}/review/{invoice_id}{query}", next_url, f"?review={quote(part, safe='')}")
