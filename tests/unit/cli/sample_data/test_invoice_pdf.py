"""The documents of sample invoices: what a reader of the PDF finds."""

import io
from decimal import Decimal

import pypdfium2
from PIL import Image

from plankeeper.cli.sample_data import plan_managers, records
from plankeeper.cli.sample_data.invoice_pdf import invoice_pdf, photograph
from plankeeper.core.formatting import format_abn, format_money
from support.pdf_files import text_pdf


def test_the_document_of_an_invoice_states_its_number_names_and_amounts() -> None:
    rows = {resource: list(each) for resource, each in records(plan_managers()[1].id)}
    people, providers = ({row["id"]: row for row in rows[each]} for each in ("participants", "providers"))
    known = [row for row in rows["invoices"] if row["participant_id"] in people and row["pm_provider_id"] in providers]
    for invoice in known[-20:]:
        participant, provider = people[invoice["participant_id"]], providers[invoice["pm_provider_id"]]
        content = invoice_pdf(invoice, provider, participant)
        assert content == invoice_pdf(invoice, provider, participant)
        document = pypdfium2.PdfDocument(content)
        assert len(document) == 1
        text = document[0].get_textpage().get_text_range()
        amounts = [
            amount
            for line in invoice["line_items"]
            if not line["is_deleted"]
            for amount in (line["unit_price"], line["total_price"])
        ]
        shown = [format_money(each) for each in (*amounts, invoice["total"]) if isinstance(each, Decimal)]
        numbers = (invoice["invoice_number"], participant["participant_number"], format_abn(provider["abn"]))
        names = (provider["entity_name"], "Sample invoice")
        assert [each for each in (*numbers, *names, *shown) if each and each not in text] == []


def test_texts_with_brackets_and_unusual_letters_are_shown() -> None:
    line = {
        "is_deleted": False, "description": "A (b) \\ " + "c" * 60, "service_item_number": None, "quantity": None,
        "total_price": None, "unit_price": None, "service_date_from": None,
    }  # fmt: skip
    invoice = {
        "invoice_number": None, "invoice_date": None, "subtotal": None, "tax": None, "total": None, "line_items": [line]
    }  # fmt: skip
    participant = {"first_name": "Zoë", "last_name": "Đặng", "participant_number": None}
    content = invoice_pdf(invoice, {"entity_name": None, "abn": None}, participant)
    text = pypdfium2.PdfDocument(content)[0].get_textpage().get_text_range()
    # The fonts have no letters of Vietnamese.
    assert [each for each in ("Zoë Dang", "A (b) \\ ccc", "…") if each not in text] == []


def test_a_photo_shows_the_page_on_a_desk() -> None:
    photo = photograph(text_pdf())
    assert photo == photograph(text_pdf())
    image = Image.open(io.BytesIO(photo))
    assert image.format == "JPEG"
    shades = image.convert("L")
    width, height = shades.size
    corner, paper = shades.getpixel((5, 5)), shades.getpixel((width // 2, height // 2))
    assert isinstance(corner, int)
    assert isinstance(paper, int)
    assert (corner < 128, paper > 240) == (True, True)
