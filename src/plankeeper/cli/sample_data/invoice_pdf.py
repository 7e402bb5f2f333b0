"""The documents of sample invoices: PDF files of one page, as a provider would send them, and photos of such pages."""

import io
import zlib
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from decimal import Decimal
from typing import Any

from plankeeper.cli.sample_data.random_values import Row, decompose
from plankeeper.core.formatting import format_abn, format_date, format_decimal, format_money

_WIDTH, _HEIGHT = 595, 842  # A4 in points
_LEFT, _TOP = 56, 780
_COLUMNS = (_LEFT, 110, 224, 390, 434, 486)  # date, item, description, quantity, price, amount
_MAX_DESCRIPTION = 34  # characters that fit
_DESK = (121, 96, 74)  # the colour around a page in a photo
_OBJECTS = (
    b"<</Type/Catalog/Pages 2 0 R>>",
    b"<</Type/Pages/Count 1/Kids[3 0 R]>>",
    b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents 6 0 R/Resources<</Font<</F 4 0 R/B 5 0 R>>>>>>"
    % (_WIDTH, _HEIGHT),
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica/Encoding/WinAnsiEncoding>>",
    b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica-Bold/Encoding/WinAnsiEncoding>>",
)


def invoice_pdf(invoice: Row, provider: Row, participant: Row) -> bytes:
    """The document of an invoice, whose amounts are as the invoice states them. The same rows make the same bytes."""
    content = "\n".join((*_heading(invoice, provider, participant), *_lines(invoice))).encode("cp1252", "replace")
    packed = zlib.compress(content)
    stream = b"<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream" % (len(packed), packed)
    return _file([*_OBJECTS, stream])


def photograph(content: bytes) -> bytes:
    """A JPEG that shows the page of a PDF file as a photo would: at an angle, on a desk."""
    from PIL import Image, ImageOps  # only the first start takes photos
    from pypdfium2 import PdfDocument

    pdf: Any = PdfDocument(content)  # it has no complete types
    page = pdf[0].render(scale=1.4).to_pil().convert("RGB")
    photo = ImageOps.expand(page.rotate(2.5, Image.Resampling.BILINEAR, expand=True, fillcolor=_DESK), 40, _DESK)
    buffer = io.BytesIO()
    photo.save(buffer, "JPEG", quality=75)
    return buffer.getvalue()


def _heading(invoice: Row, provider: Row, participant: Row) -> Iterator[str]:
    yield _text(_LEFT, _TOP, provider["entity_name"] or "", size=18, is_bold=True)
    yield _text(_LEFT, _TOP - 20, f"ABN {format_abn(provider['abn'])}" if provider["abn"] else "")
    yield _text(400, _TOP - 80, "Tax invoice", is_bold=True)
    yield _text(400, _TOP - 96, f"Number {invoice['invoice_number'] or ''}")
    yield _text(400, _TOP - 112, f"Date {_day(invoice['invoice_date'])}")
    yield _text(_LEFT, _TOP - 80, "Services for", is_bold=True)
    yield _text(_LEFT, _TOP - 96, f"{participant['first_name'] or ''} {participant['last_name'] or ''}")
    yield _text(_LEFT, _TOP - 112, f"NDIS number {participant['participant_number'] or ''}")


def _lines(invoice: Row) -> Iterator[str]:
    y = _TOP - 160
    yield _row(y, ("Date", "Item", "Description", "Quantity", "Price", "Amount"), is_bold=True)
    for line in invoice["line_items"]:
        if not line["is_deleted"]:
            y -= 20
            yield _row(y, _line_texts(line))
    y -= 30
    for label in ("subtotal", "tax", "total"):
        if invoice[label] is not None:
            yield _row(y, ("", "", "", "", label.capitalize(), format_money(invoice[label])), is_bold=label == "total")
            y -= 18
    yield _text(_LEFT, 60, "Sample invoice: the provider, the participant and the services are fictitious.", size=8)


def _line_texts(line: Row) -> Sequence[str]:
    description = line["description"] or ""
    if len(description) > _MAX_DESCRIPTION:
        description = description[: _MAX_DESCRIPTION - 1] + "…"
    quantity: Decimal | None = line["quantity"]
    return (
        _day(line["service_date_from"]),
        line["service_item_number"] or "",
        description,
        "" if quantity is None else format_decimal(quantity),
        *("" if line[each] is None else format_money(line[each]) for each in ("unit_price", "total_price")),
    )


def _day(text: str | None) -> str:
    return format_date(date.fromisoformat(text)) if text else ""


def _row(y: int, texts: Sequence[str], *, is_bold: bool = False) -> str:
    return "\n".join(_text(x, y, text, size=9, is_bold=is_bold) for x, text in zip(_COLUMNS, texts, strict=True))


def _text(x: int, y: int, text: str, *, size: int = 10, is_bold: bool = False) -> str:
    known = "".join(each if each.encode("cp1252", "ignore") else decompose(each)[0] for each in text)
    escaped = known.replace("\\", r"\\").replace("(", r"\(").replace(")", r"\)")
    return f"BT /{'B' if is_bold else 'F'} {size} Tf {x} {y} Td ({escaped}) Tj ET"


def _file(objects: Iterable[bytes]) -> bytes:
    """A file with these objects, numbered from 1."""
    file, offsets = b"%PDF-1.4\n", list[int]()
    for number, content in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % each for each in offsets)
    trailer = b"trailer\n<</Size %d/Root 1 0 R>>\nstartxref\n%d\n%%%%EOF\n" % (len(offsets) + 1, len(file))
    return file + b"xref\n0 %d\n0000000000 65535 f \n" % (len(offsets) + 1) + table + trailer
