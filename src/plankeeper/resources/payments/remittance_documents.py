"""Remittance advices on paper: the PDF of a payment, those of a run as one file, and letters that PDFs can't show."""

from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from plankeeper.core.context import ReadContext, or_404
from plankeeper.core.pdf.documents import UnprintableError, UnprintableTextError, render
from plankeeper.resources.documents.print_files import AddressPage, join_documents
from plankeeper.resources.payments import remittance_store
from plankeeper.resources.payments.remittance import RemittanceAdvice, remittance_pdf
from plankeeper.resources.payments.remittance_mails import get_advice
from plankeeper.resources.payments.remittance_store import AdviceLetter
from plankeeper.resources.payments.schemas import PaymentRun

PART_SIZE = 100  # remittance advices in a file


class AdviceFile(NamedTuple):
    """The PDF of a payment's remittance advice."""

    name: str
    content: bytes


async def get_pdf(ctx: ReadContext, payment_id: UUID) -> AdviceFile | None:
    """The document, or None for an unknown payment. Raises UnprintableError."""
    advice = await get_advice(ctx.db, ctx.plan_manager_id, payment_id)
    if advice is None:
        return None
    content = await remittance_pdf(ctx, advice, datetime.now(UTC))
    return AdviceFile(f"remittance-advice-{advice.reference}.pdf", content)


class PrintFile(NamedTuple):
    """A part of the remittance advices of a run as one PDF, with the participants who are payees, and the invoices."""

    name: str
    content: bytes
    participants: Sequence[UUID]
    invoices: Sequence[UUID]


async def get_print_file(ctx: ReadContext, run: PaymentRun, part: int, *, is_of_all: bool) -> PrintFile:
    """A part of the remittance advices to post, from 1: those of payees without an email, or of all payees.

    A page with the address comes first where the payee has one. Advices without a PDF are left out: those with letters
    that no font has (see `find_unprintable`), and those with thousands of lines. Raises NotFound without such a part,
    and DomainError 503 if the file can't be made.
    """
    place = (ctx.db, ctx.plan_manager_id)
    page = (PART_SIZE, (part - 1) * PART_SIZE)
    letters = await remittance_store.list_letters(*place, or_404(run.id), *page, is_of_all=is_of_all)
    at, documents, invoices = run.paid_at or datetime.now(UTC), list[bytes](), list[UUID]()
    for each in or_404(letters or None):
        advice = await get_advice(*place, each.id)
        invoices += [line.invoice_id for line in await remittance_store.list_lines(*place, each.id)]
        if advice:
            with suppress(UnprintableError):
                documents += await _print(ctx, advice, each, at)
    or_404(documents or None)
    name = f"remittance-advices-{run.number}-{part}.pdf"
    people = [each.payee_id for each in letters if each.payee_kind == "participant"]
    return PrintFile(name, await join_documents(ctx.plan_manager_id, documents), people, invoices)


async def _print(ctx: ReadContext, advice: RemittanceAdvice, letter: AdviceLetter, at: datetime) -> list[bytes]:
    """A remittance advice, after the page with the address. Raises UnprintableError."""
    place = " ".join(filter(None, (letter.city, letter.state, letter.postcode)))
    address = [line for line in (letter.address_line_1, letter.address_line_2, place) if line]
    documents = [await remittance_pdf(ctx, advice, at)]
    if address:
        page = AddressPage(advice.office, [letter.payee_name, *address])
        documents.insert(0, await render(ctx.plan_manager_id, "address_page", page, at, ctx.settings.fonts_folder))
    return documents


class UnprintableLetters(NamedTuple):
    """Letters that no font has, and the payees whose remittance advices have them."""

    letters: str
    payees: Sequence[str]

    @property
    def text(self) -> str:
        """The letters with their code points, because fonts of browsers may not have them either."""
        return ", ".join(f"{each} (U+{ord(each):04X})" for each in self.letters)


async def find_unprintable(ctx: ReadContext, run_id: UUID) -> UnprintableLetters | None:
    """The letters for which remittance advices of a run have no PDF; None if there are none."""
    texts = await remittance_store.list_texts(ctx.db, ctx.plan_manager_id, run_id)
    used = {each: {letter for letter in text.text if ord(letter) > 127} for each, text in enumerate(texts)}
    letters = sorted(set[str]().union(*used.values()))
    missing = await _find_missing(ctx, letters) if letters else set[str]()
    if not missing:
        return None
    payees = dict.fromkeys(text.payee_name for each, text in enumerate(texts) if used[each] & missing)
    return UnprintableLetters("".join(sorted(missing)), list(payees))


async def _find_missing(ctx: ReadContext, letters: Sequence[str]) -> set[str]:
    """Those of the letters that no font has, by a document with all of them."""
    advice = RemittanceAdvice(
        office="",
        office_abn=None,
        payee=" ".join(letters),
        reference="",
        paid_on="",
        total="",
        account_ending="",
        invoices=[],
    )
    try:
        await remittance_pdf(ctx, advice, datetime.now(UTC))
    except UnprintableTextError as error:
        return set(error.letters) & set(letters)
    return set()
