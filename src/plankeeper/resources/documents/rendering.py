"""Images of the pages of documents, drawn by a process with limits (`rendering_process`)."""

import asyncio
import os
import sys
from collections import OrderedDict
from contextlib import suppress
from uuid import UUID
from weakref import WeakKeyDictionary

import msgspec
from msgspec import Struct

from plankeeper.core.errors import DomainError, NotFound
from plankeeper.core.settings import Settings
from plankeeper.resources.documents.schemas import MAX_PAGES, DocumentRow, Problem, RenderingResult
from plankeeper.resources.documents.service import open_document

MAX_RENDERINGS = 2  # in progress in one worker
MAX_WAITING = 20  # each occupies one of the worker's requests
MAX_TIME = 30.0  # seconds, with reading the file from the storage
MAX_OUTPUT_BYTES = 8 * 1024**2
MAX_KNOWN_PAGE_COUNTS = 5000
MAX_PREPARED = 10  # images, each of some 100 kB

_PROGRAM = "plankeeper.resources.documents.rendering_process"  # not imported: PDFium and Pillow stay out of workers
# The process needs none of the worker's variables, among which are passwords.
_ENVIRONMENT_VARIABLES = ("PATH", "PYTHONPATH", "PYTHONHOME", "LD_LIBRARY_PATH")


class _Slots(asyncio.Semaphore):
    """The slots of one event loop."""

    def __init__(self) -> None:
        super().__init__(MAX_RENDERINGS)
        self.waiting = 0


_slots: WeakKeyDictionary[asyncio.AbstractEventLoop, _Slots] = WeakKeyDictionary()
_page_counts: dict[UUID, int] = {}  # by document, whose content never changes
# By document and page: images that nobody has seen yet.
_prepared: OrderedDict[tuple[UUID, int], tuple[RenderingResult, bytes]] = OrderedDict()

_SENTENCES: dict[Problem, str] = {
    "encrypted": "The document is protected by a password.",
    "damaged": "The document is damaged.",
    "too_many_pages": f"The document has more than {MAX_PAGES} pages.",
    "too_large": "The image is too large.",
    "failed": "The page takes too much time or memory.",
}
# Without styles, which the content security policy of files forbids.
_PLACEHOLDER = (
    '<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 1240 1754" width="1240" height="1754">'
    '<rect width="1240" height="1754" fill="#f4f4f5"/>'
    '<g font-family="sans-serif" font-size="40" text-anchor="middle" fill="#3f3f46">'
    '<text x="620" y="700">{}</text><text x="620" y="770">Download it to open it in another program.</text></g></svg>'
)


class PageImage(Struct):
    """The image of a page of `pages`; a placeholder that says why, if the page can't be shown."""

    media_type: str
    content: bytes
    pages: int = 1


async def count_pages(settings: Settings, document: DocumentRow) -> int:
    """The number of images that show a document: 1, the placeholder, if it can't be shown."""
    if document.id in _page_counts:
        return _page_counts[document.id]
    result, _ = await _render(settings, document, 0)
    return result.pages


async def prepare_page(settings: Settings, document: DocumentRow, number: int) -> None:
    """Draw a page that somebody probably wants to see soon. It is kept until then, in this worker.

    Does nothing while other pages are being drawn.
    """
    slots = _slots.get(asyncio.get_running_loop())
    if (document.id, number) in _prepared or (slots and slots.locked()):
        return
    with suppress(DomainError):
        drawn = await _render(settings, document, number)
        _prepared[document.id, number] = drawn
        while len(_prepared) > MAX_PREPARED:
            _prepared.popitem(last=False)


async def render_page(settings: Settings, document: DocumentRow, number: int) -> PageImage:
    """The image of a page, from 1. Raises NotFound without such a page.

    Raises DomainError 503 if the storage fails, or if too many images are being drawn.
    """
    if number < 1:
        raise NotFound
    result, image = _prepared.pop((document.id, number), None) or await _render(settings, document, number)
    if result.problem and number == 1:
        return PageImage("image/svg+xml", _PLACEHOLDER.format(_SENTENCES[result.problem]).encode())
    if number > result.pages:
        raise NotFound
    return PageImage("image/jpeg", image, result.pages)


async def _render(settings: Settings, document: DocumentRow, number: int) -> tuple[RenderingResult, bytes]:
    """The result and the image of one process. One that fails, or that takes too long, is killed."""
    slots = _slots.setdefault(asyncio.get_running_loop(), _Slots())
    if slots.locked() and slots.waiting >= MAX_WAITING:
        raise DomainError("service_unavailable", "Too many pages of documents are being drawn.", retry_after=5)
    slots.waiting += 1
    try:
        await slots.acquire()
    finally:
        slots.waiting -= 1
    try:
        output = await _run_process(settings, document, number)
    finally:
        slots.release()
    line, _, image = output.partition(b"\n")
    try:
        result = msgspec.json.decode(line, type=RenderingResult)
    except msgspec.DecodeError:
        return RenderingResult(problem="failed"), b""
    if len(_page_counts) >= MAX_KNOWN_PAGE_COUNTS:
        _page_counts.clear()
    _page_counts[document.id] = result.pages
    return result, image


async def _run_process(settings: Settings, document: DocumentRow, number: int) -> bytes:
    """What the process wrote; empty if it failed."""
    process = await asyncio.create_subprocess_exec(
        *(sys.executable, "-P", "-m", _PROGRAM, document.media_type, str(number)),
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.DEVNULL,
        env={name: os.environ[name] for name in _ENVIRONMENT_VARIABLES if name in os.environ},
    )
    try:
        async with asyncio.timeout(MAX_TIME):
            await _send_file(settings, document, process)
            output = await _read_output(process)
            return output if await process.wait() == 0 else b""
    except TimeoutError:
        return b""
    finally:
        with suppress(ProcessLookupError):
            process.kill()
        await process.wait()


async def _send_file(settings: Settings, document: DocumentRow, process: asyncio.subprocess.Process) -> None:
    stdin = process.stdin
    if stdin is None:
        raise LookupError("the process has no input")
    with suppress(BrokenPipeError, ConnectionResetError):  # the process has ended
        async for chunk in open_document(settings, document).chunks:
            stdin.write(chunk)
            await stdin.drain()
    stdin.close()


async def _read_output(process: asyncio.subprocess.Process) -> bytes:
    """At most MAX_OUTPUT_BYTES; empty if there is more."""
    if process.stdout is None:
        raise LookupError("the process has no output")
    output = b""
    while chunk := await process.stdout.read(2**16):
        output += chunk
        if len(output) > MAX_OUTPUT_BYTES:
            return b""
    return output
