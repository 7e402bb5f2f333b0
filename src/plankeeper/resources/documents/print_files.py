"""Files to print: several PDF documents as one, with the page that shows an address before a letter."""

import asyncio
import os
import struct
import sys
from collections.abc import Sequence
from contextlib import suppress

from msgspec import Struct

from plankeeper.core.errors import DomainError

MAX_TIME = 120.0  # seconds for joining the documents
_PROGRAM = "plankeeper.resources.documents.joining_process"  # not imported: PDFium stays out of workers
_ENVIRONMENT_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")


class AddressPage(Struct, frozen=True):
    """The page before a letter. The address fits the window of an envelope."""

    office: str
    lines: Sequence[str]


async def join_documents(documents: Sequence[bytes]) -> bytes:
    """One PDF of several, joined by a process of its own. Raises DomainError 503 if it fails."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _PROGRAM),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT_VARIABLES if name in os.environ},
    )
    content = b"".join(struct.pack(">Q", len(each)) + each for each in documents)
    try:
        async with asyncio.timeout(MAX_TIME):
            output, _ = await process.communicate(content)
    except TimeoutError:
        output = b""
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()
    if not output.startswith(b"%PDF-"):
        raise DomainError("service_unavailable", "The print file couldn't be made. Try again.")
    return output
