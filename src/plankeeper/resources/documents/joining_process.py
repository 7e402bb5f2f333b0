"""The process that joins the documents of a print file. In its input, each document has its length before it."""

import io
import os
import struct
import sys
from typing import Any

from pypdfium2 import PdfDocument

from plankeeper.resources.documents.rendering_process import LOWEST_PRIORITY


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
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)
    sys.stdout.buffer.write(join(sys.stdin.buffer.read()))


if __name__ == "__main__":
    main()
