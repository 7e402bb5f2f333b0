"""The print file of a run: its letters as one PDF, an address page before each statement."""

from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from plankeeper.core.context import SYSTEM, ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.pdf.documents import UnprintableError, render
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.documents.print_files import AddressPage, join_documents
from plankeeper.resources.statement_runs import store
from plankeeper.resources.statement_runs.mails import settle
from plankeeper.resources.statement_runs.rules import DIED
from plankeeper.resources.statement_runs.schemas import Letter
from plankeeper.resources.statements.service import record_sent, statement_pdf

PART_SIZE = 100  # letters in a file
STOPPED_BATCH = 100  # letters at a time
MEDIA_TYPE = "application/pdf"


class PrintFile(NamedTuple):
    """A part of the letters of a run."""

    name: str
    content: bytes
    participants: Sequence[UUID]


async def get_print_file(ctx: ReadContext, run_id: UUID, part: int) -> PrintFile:
    """A part of the print file, from 1.

    Raises NotFound without such a part, UnprintableError, and DomainError 503 without a storage of documents.
    """
    run = or_404(await store.get(ctx.db, ctx.plan_manager_id, run_id))
    page = (PART_SIZE, (part - 1) * PART_SIZE)
    letters = await store.list_letters(ctx.db, ctx.plan_manager_id, run_id, "to_print", *page)
    or_404(letters or None)
    documents = list[bytes]()
    for each in letters:
        documents += [await _address_page(ctx, each), await statement_pdf(ctx, each.statement_id)]
    name = f"statements-{run.month}-{part}.pdf"
    return PrintFile(
        name, await join_documents(ctx.plan_manager_id, documents), [each.participant_id for each in letters]
    )


async def _address_page(ctx: ReadContext, letter: Letter) -> bytes:
    page = AddressPage(letter.office, address_lines(letter))
    try:
        return await render(ctx.plan_manager_id, "address_page", page, letter.queued_at, ctx.settings.fonts_folder)
    except UnprintableError as error:
        detail = f"The address of {letter.name} can't be printed: {error}."
        raise DomainError("invalid_transition", detail) from None


def address_lines(letter: Letter) -> list[str]:
    """A name and an address, as on an envelope."""
    place = " ".join(filter(None, (letter.city, letter.state, letter.postcode)))
    return [line for line in (letter.name, letter.address_line_1, letter.address_line_2, place) if line]


async def mark_posted(ctx: WriteContext, run_id: UUID, until: UUID) -> int:
    """The letters to print up to an id are in the post. Returns their number. Raises NotFound."""
    or_404(await store.lock(ctx.tx, ctx.plan_manager_id, run_id))
    now, posted = datetime.now(UTC), 0
    for each in await store.list_letters(ctx.tx, ctx.plan_manager_id, run_id, "to_print"):
        if each.id <= until and await settle(ctx, each.item_id, each.id, "sent", now):
            await record_sent(ctx, each.statement_id, "post", ", ".join(address_lines(each)))
            posted += 1
    return posted


async def stop_letters(db: Database, settings: Settings, now: datetime) -> None:
    """Take the letters to people who have died out of the print file."""
    for each in await store.list_stopped(db, STOPPED_BATCH):
        async with db.transaction() as tx:
            ctx = WriteContext(tx, each.plan_manager_id, settings, SYSTEM)
            await settle(ctx, each.item_id, each.id, "cancelled", now, "deceased", DIED)
