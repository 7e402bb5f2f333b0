"""The process that makes a large document, with limits on time and memory. Its input is the content as JSON.

It writes the PDF, or the letters that no font has.
"""

import sys
from pathlib import Path

from plankeeper.core.pdf.documents import UnprintableTextError, compile_document
from plankeeper.core.process_limits import set_limits

MAX_CPU_TIME = 60  # seconds


def main(template: str, timestamp: str, max_memory: str, fonts_folder: str = "") -> None:
    """Make the document in the input."""
    set_limits(int(max_memory), MAX_CPU_TIME)
    folder = Path(fonts_folder) if fonts_folder else None
    try:
        output = compile_document(template, sys.stdin.buffer.read().decode(), int(timestamp), folder)
    except UnprintableTextError as error:
        output = error.letters.encode()
    sys.stdout.buffer.write(output)


if __name__ == "__main__":
    main(*sys.argv[1:])
