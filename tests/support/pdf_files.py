"""PDF files for tests, with as many pages and objects as a test requires."""

import zlib
from collections.abc import Iterable

A4 = (595, 842)  # points


def pdf_file(objects: Iterable[bytes], trailer: bytes = b"") -> bytes:
    """A file with these objects, numbered from 1. The first one is the catalogue."""
    file, offsets = b"%PDF-1.7\n", list[int]()
    for number, content in enumerate(objects, 1):
        offsets.append(len(file))
        file += b"%d 0 obj\n%s\nendobj\n" % (number, content)
    table = b"".join(b"%010d 00000 n \n" % each for each in offsets)
    size = len(offsets) + 1
    return file + (
        b"xref\n0 %d\n0000000000 65535 f \n%strailer\n<</Size %d/Root 1 0 R%s>>\nstartxref\n%d\n%%%%EOF\n"
        % (size, table, size, trailer, len(file))
    )


def packed_stream(packed: bytes) -> bytes:
    """A stream object with content that zlib has compressed."""
    return b"<</Length %d/Filter/FlateDecode>>\nstream\n%s\nendstream" % (len(packed), packed)


def text_pdf(pages: int = 1, size: tuple[int, int] = A4, trailer: bytes = b"") -> bytes:
    """Pages with a line of text."""
    text = b"BT /F 20 Tf 50 700 Td (Support coordination, level 2) Tj ET"
    return page_pdf(packed_stream(zlib.compress(text)), pages, size, trailer)


def page_pdf(content: bytes, pages: int = 1, size: tuple[int, int] = A4, trailer: bytes = b"") -> bytes:
    """Pages with the same content, a stream object. Its font F is Helvetica."""
    kids = b" ".join(b"%d 0 R" % number for number in range(5, 5 + pages))
    page = b"<</Type/Page/Parent 2 0 R/MediaBox[0 0 %d %d]/Contents 3 0 R/Resources<</Font<</F 4 0 R>>>>>>" % size
    objects = [
        b"<</Type/Catalog/Pages 2 0 R>>",
        b"<</Type/Pages/Count %d/Kids[%s]>>" % (pages, kids),
        content,
        b"<</Type/Font/Subtype/Type1/BaseFont/Helvetica>>",
    ]
    return pdf_file(objects + [page] * pages, trailer)
