"""The pinned notes that the review queue shows with an invoice."""

from collections.abc import Sequence
from typing import NamedTuple

from plankeeper.console.shell.routing import PageRequest
from plankeeper.resources.invoices.schemas import Invoice


class ReviewNote(NamedTuple):
    """A note about the participant, the provider or the invoice: `about` says which."""

    about: str
    text: str
    author: str


async def notes_for_review(_request: PageRequest, _invoice: Invoice) -> Sequence[ReviewNote]:
    """The pinned notes of the participant and the provider, and those of the invoice: none until there are notes."""
    return []
