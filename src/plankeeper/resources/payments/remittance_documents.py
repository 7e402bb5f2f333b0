"""Remittance advices on paper: the PDF of a payment, and the letters that PDFs of a run can't show."""

import asyncio
from collections.abc import Sequence
from datetime import UTC, datetime
from typing import NamedTuple
from uuid import UUID

from plankeeper.core.context import ReadContext
from plankeeper.core.pdf.documents import UnprintableTextError
from plankeeper.resources.payments import remittance_store
from plankeeper.resources.payments.remittance import RemittanceAdvice, remittance_pdf
from plankeeper.resources.payments.remittance_mails import get_advice


class AdviceFile(NamedTuple):
    """The PDF of a payment's remittance advice."""

    name: str
    content: bytes


async def get_pdf(ctx: ReadContext, payment_id: UUID) -> AdviceFile | None:
    """The document, or None for an unknown payment. Raises UnprintableTextError."""
    advice = await get_advice(ctx.db, ctx.plan_manager_id, payment_id)
    if advice is None:
        return None
    content = await asyncio.to_thread(remittance_pdf, advice, datetime.now(UTC), ctx.settings.fonts_folder)
    return AdviceFile(f"remittance-advice-{advice.reference}.pdf", content)


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
    missing = await asyncio.to_thread(_find_missing, ctx, letters) if letters else set[str]()
    if not missing:
        return None
    payees = dict.fromkeys(text.payee_name for each, text in enumerate(texts) if used[each] & missing)
    return UnprintableLetters("".join(sorted(missing)), list(payees))


def _find_missing(ctx: ReadContext, letters: Sequence[str]) -> set[str]:
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
        remittance_pdf(advice, datetime.now(UTC), ctx.settings.fonts_folder)
    except UnprintableTextError as error:
        return set(error.letters) & set(letters)
    return set()
