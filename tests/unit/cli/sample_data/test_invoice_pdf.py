"""The documents of sample invoices: what a reader of the PDF finds."""

from decimal import Decimal

import pypdfium2

from plankeeper.cli.sample_data import plan_managers, records
from plankeeper.cli.sample_data.invoice_pdf import invoice_pdf
from plankeeper.core.formatting import format_money


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
        amounts = [line["total_price"] for line in invoice["line_items"] if not line["is_deleted"]]
        shown = [format_money(each) for each in (*amounts, invoice["total"]) if isinstance(each, Decimal)]
        numbers = (invoice["invoice_number"], participant["participant_number"], provider["entity_name"])
        assert [each for each in (*numbers, *shown) if each and each not in text] == []


def test_texts_with_brackets_and_unusual_letters_are_shown() -> None:
    line = {
        "is_deleted": False, "description": "A (b) \\ " + "c" * 60, "service_item_number": None, "quantity": None,
        "total_price": None, "service_date_from": None,
    }  # fmt: skip
    invoice = {
        "invoice_number": None, "invoice_date": None, "subtotal": None, "tax": None, "total": None, "line_items": [line]
    }  # fmt: skip
    participant = {"first_name": "Zoë", "last_name": "Đặng", "participant_number": None}
    content = invoice_pdf(invoice, {"entity_name": None, "abn": None}, participant)
    text = pypdfium2.PdfDocument(content)[0].get_textpage().get_text_range()
    assert ("Zoë" in text, "A (b) \\ ccc" in text, "…" in text) == (True, True, True)
