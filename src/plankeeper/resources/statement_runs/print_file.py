"""The print file of a run: its letters as one PDF, an address page before each statement."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from msgspec.structs import replace

from plankeeper.core.context import ReadContext, WriteContext, or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.pdf.documents import UnprintableTextError, render
from plankeeper.resources.documents.print_files import AddressPage, join_documents
from plankeeper.resources.statement_runs import store
from plankeeper.resources.statement_runs.rules import sum_up
from plankeeper.resources.statement_runs.schemas import Letter
from plankeeper.resources.statements.service import record_sent, statement_pdf

PART_SIZE = 100  # letters in a file
MEDIA_TYPE = "application/pdf"


class PrintFile(NamedTuple):
    """A part of the letters of a run."""

    name: str
    content: bytes
    participants: Sequence[UUID]


async def get_print_file(ctx: ReadContext, run_id: UUID, part: int, *, posted: bool = False) -> PrintFile:
    """A part of the print file, from 1; with `posted`, of the letters that are in the post already.

    Raises NotFound without such a part, UnprintableTextError, and DomainError 503 without a storage of documents.
    """
    run = or_404(await store.get(ctx.db, ctx.plan_manager_id, run_id))
    state = "sent" if posted else "to_print"
    page = (PART_SIZE, (part - 1) * PART_SIZE)
    letters = await store.list_letters(ctx.db, ctx.plan_manager_id, run_id, state, *page)
    or_404(letters or None)
    documents = list[bytes]()
    for each in letters:
        documents += [await _address_page(ctx, each), await statement_pdf(ctx, each.statement_id)]
    name = f"statements-{run.month}-{part}.pdf"
    return PrintFile(name, await join_documents(documents), [each.participant_id for each in letters])


async def _address_page(ctx: ReadContext, letter: Letter) -> bytes:
    page = AddressPage(letter.office, address_lines(letter))
    try:
        return await asyncio.to_thread(render, "address_page", page, letter.queued_at, ctx.settings.fonts_folder)
    except UnprintableTextError as error:
        detail = f"The address of {letter.name} can't be printed: {error}."
        raise DomainError("service_unavailable", detail) from None


def address_lines(letter: Letter) -> list[str]:
    """A name and an address, as on an envelope."""
    place = " ".join(filter(None, (letter.city, letter.state, letter.postcode)))
    return [line for line in (letter.name, letter.address_line_1, letter.address_line_2, place) if line]


async def mark_posted(ctx: WriteContext, run_id: UUID, until: UUID) -> int:
    """The letters to print up to an id are in the post. Returns their number. Raises NotFound."""
    or_404(await store.lock(ctx.tx, ctx.plan_manager_id, run_id))
    now, letters = datetime.now(UTC), await store.list_letters(ctx.tx, ctx.plan_manager_id, run_id, "to_print")
    posted = [each for each in letters if each.id <= until]
    for each in posted:
        item = await store.lock_item(ctx.tx, ctx.plan_manager_id, each.item_id)
        rows = await store.list_recipients(ctx.tx, ctx.plan_manager_id, [each.item_id])
        after = [replace(row, state="sent") if row.id == each.id and item else row for row in rows]
        await store.set_recipient(ctx.tx, ctx.plan_manager_id, next(row for row in after if row.id == each.id), now)
        await store.set_outcome(ctx.tx, ctx.plan_manager_id, each.item_id, sum_up(after), now)
        await record_sent(ctx, each.statement_id, "post", ", ".join(address_lines(each)))
    return len(posted)
