"""The process that joins the documents of a print file. In its input, each document has its length before it."""

import io
import struct
import sys
from typing import Any

from pypdfium2 import PdfDocument

from plankeeper.core.process_limits import set_limits

MAX_MEMORY = 1024**3  # bytes of address space: 100 letters of ordinary size take less than a tenth
MAX_CPU_TIME = 60  # seconds


def join(content: bytes) -> bytes:
    """One PDF of all documents, in their order."""
    joined: Any = PdfDocument.new()
    position = 0
    while position < len(content):
        (length,) = struct.unpack_from(">Q", content, position)
        position += 8
        joined.import_pages(PdfDocument(content[position : position + length]))
        position += length
    output = io.BytesIO()
    joined.save(output)
    return output.getvalue()


def main() -> None:
    """Join the documents in the input."""
    set_limits(MAX_MEMORY, MAX_CPU_TIME)
    sys.stdout.buffer.write(join(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
