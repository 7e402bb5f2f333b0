"""PDF documents: every bundled script, letters without a font, texts that look like markup, accessibility."""

import asyncio
import shutil
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pypdfium2
import pytest
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.errors import DomainError
from plankeeper.core.pdf import documents
from plankeeper.core.pdf.documents import FONTS, UnprintableError, UnprintableTextError, render
from plankeeper.core.processes import MAX_WAITING_PER_PLAN_MANAGER
from plankeeper.resources.payments.remittance import (
    RemittanceAdvice,
    RemittanceInvoice,
    RemittanceLine,
    remittance_text,
)

AT = datetime(2026, 11, 3, tzinfo=UTC)
LINE = RemittanceLine("Domestic help", "3 Nov 2026", "$120.00", "$110.00", "The agency paid $10.00 less.")
ADVICE = RemittanceAdvice(
    office="Sample Plans",
    office_abn="11 123 456 780",
    payee="Amber Sample Physio",
    reference="P000123-0001",
    paid_on="4 Nov 2026",
    total="$110.00",
    account_ending="678",
    invoices=[RemittanceInvoice("2026/442", "Robin Hale", "$110.00", [LINE])],
)
NAMES = ["Zoë Müller", "Ελένη", "Дмитрий", "מיכל", "สมชาย", "Nguyễn Thị Hoa"]
OFFICE = uuid7()
MIB = 1024**2


def remittance_pdf(advice: RemittanceAdvice, at: datetime, fonts_folder: Path | None) -> bytes:
    return asyncio.run(render(OFFICE, "remittance_advice", advice, at, fonts_folder))


def pages(pdf: bytes) -> Iterator[str]:
    for page in pypdfium2.PdfDocument(pdf):
        yield page.get_textpage().get_text_range()


def test_an_advice_says_what_was_paid_for() -> None:
    [text] = pages(remittance_pdf(ADVICE, AT, None))
    for part in (
        "Sample Plans", "ABN 11 123 456 780", "Amber Sample Physio", "P000123-0001", "4 Nov 2026", "678", "Robin Hale",
        "2026/442", "Domestic help", "3 Nov 2026", "$120.00", "$110.00", "The agency paid $10.00 less.", "Page 1 of 1",
    ):  # fmt: skip
        assert part in text, part


@pytest.mark.parametrize("name", NAMES)
def test_the_bundled_fonts_have_the_letters_of_a_name(name: str) -> None:
    [text] = pages(remittance_pdf(replace(ADVICE, payee=name), AT, None))
    assert name in text or name[::-1] in text  # right to left, in the order of the page


@pytest.mark.parametrize("name", ["محمد عبد الله", "मीना शर्मा"])
def test_letters_that_join_are_drawn(name: str) -> None:
    """They are shaped, so the text of the file differs from the name. Nothing is reported as missing."""
    assert remittance_pdf(replace(ADVICE, payee=name), AT, None).startswith(b"%PDF-1.7")


def test_a_letter_without_a_font_is_an_error_that_names_it() -> None:
    with pytest.raises(
        UnprintableTextError, match=r"漢 \(U\+6F22\), 字 \(U\+5B57\).*PLANKEEPER_FONTS_FOLDER"
    ) as caught:
        remittance_pdf(replace(ADVICE, payee="漢字 and 漢"), AT, None)
    assert caught.value.letters == "漢字"


def test_an_operator_can_add_fonts(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, folder in (("NotoSans_400Regular.ttf", "bundled"), ("NotoSansThai_400Regular.ttf", "own")):
        (tmp_path / folder).mkdir()
        shutil.copy(FONTS / name, tmp_path / folder)
    monkeypatch.setattr(documents, "FONTS", tmp_path / "bundled")
    documents.find_fonts.cache_clear()
    thai = replace(ADVICE, payee="สมชาย")
    with pytest.raises(UnprintableTextError):
        remittance_pdf(thai, AT, None)
    assert "สมชาย" in next(pages(remittance_pdf(thai, AT, tmp_path / "own")))
    documents.find_fonts.cache_clear()


@pytest.mark.parametrize(
    "text", ['#panic("x")', "*bold* _a_ $x$ <a> @b //c", "\\u{41}", '#import "/etc/passwd": *', "[a] {b}"]
)
def test_a_text_is_no_markup(text: str) -> None:
    [shown] = pages(remittance_pdf(replace(ADVICE, office=text), AT, None))
    assert text in shown


def test_a_document_is_accessible_and_always_the_same() -> None:
    pdf = remittance_pdf(ADVICE, AT, None)
    assert b"<pdfuaid:part>1</pdfuaid:part>" in pdf
    assert b"/Lang" in pdf
    assert pypdfium2.PdfDocument(pdf).get_metadata_value("Title") == "Remittance advice P000123-0001"
    assert pypdfium2.PdfDocument(pdf).is_tagged()
    assert pdf == remittance_pdf(ADVICE, AT, None)
    assert pdf != remittance_pdf(ADVICE, AT + timedelta(days=1), None)


def test_a_long_table_repeats_its_header_on_each_page() -> None:
    long = replace(ADVICE, invoices=[RemittanceInvoice("1", "Robin Hale", "$110.00", [LINE] * 100)])
    found = list(pages(remittance_pdf(long, AT, None)))
    assert len(found) > 2
    assert all("Claimed" in page for page in found)
    assert f"Page 2 of {len(found)}" in found[1]


def test_the_mail_has_the_same_facts_and_the_document() -> None:
    text = remittance_text(ADVICE, b"%PDF")
    assert text.subject == "Remittance advice P000123-0001: $110.00 from Sample Plans"
    for part in (
        "$110.00",
        "Amber Sample Physio",
        "4 Nov 2026",
        "678",
        "claimed $120.00, paid $110.00. The agency paid",
    ):
        assert part in text.body, part
    assert [(each.file_name, each.content) for each in text.attachments] == [
        ("remittance-advice-P000123-0001.pdf", b"%PDF")
    ]


def test_a_mail_lists_the_first_invoices_of_many() -> None:
    many = replace(ADVICE, invoices=[*ADVICE.invoices] * 52)
    assert "and 2 more invoices" in remittance_text(many, b"").body


def test_an_error_of_a_template_is_not_about_letters() -> None:
    with pytest.raises(Exception, match="reference"):
        asyncio.run(render(OFFICE, "remittance_advice", LINE, AT))


def test_a_large_document_is_made_by_a_process_with_limits(monkeypatch: pytest.MonkeyPatch) -> None:
    large = replace(ADVICE, invoices=[RemittanceInvoice("1", "Robin Hale", "$110.00", [LINE] * 300)])
    pdf = remittance_pdf(large, AT, None)
    with pytest.raises(UnprintableTextError, match="U\\+6F22"):
        remittance_pdf(replace(large, payee="漢字"), AT, None)
    for limit, value in (("MAX_MEMORY", 100 * MIB), ("MAX_TIME", 0.01), ("MAX_PDF_BYTES", 1000)):
        with monkeypatch.context() as patch:
            patch.setattr(documents, limit, value)
            with pytest.raises(UnprintableError, match="so many lines"):
                remittance_pdf(large, AT, None)
    monkeypatch.setattr(documents, "MAX_CONTENT_IN_WORKER", MIB)
    assert pdf == remittance_pdf(large, AT, None)  # the process makes the same bytes


async def test_few_large_documents_wait_for_their_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(documents, "MAX_CONTENT_IN_WORKER", 0)
    monkeypatch.setattr(documents, "MAX_TIME", 0.01)
    made = [render(OFFICE, "remittance_advice", ADVICE, AT) for _ in range(MAX_WAITING_PER_PLAN_MANAGER + 2)]
    results = await asyncio.gather(*made, return_exceptions=True)
    rejected = [each for each in results if isinstance(each, DomainError)]
    assert [(each.code, each.retry_after) for each in rejected] == [("service_unavailable", 5)]
