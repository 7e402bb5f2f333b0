"""Images of the pages of documents, drawn by a process with limits (`rendering_process`)."""

import time
from collections import OrderedDict
from contextlib import suppress
from uuid import UUID

import msgspec
from msgspec import Struct

from plankeeper.core.errors import DomainError, NotFound
from plankeeper.core.processes import ProcessSlots, run_process
from plankeeper.core.settings import Settings
from plankeeper.resources.documents.schemas import MAX_PAGES, DocumentRow, Problem, RenderingResult
from plankeeper.resources.documents.service import open_document

MAX_RENDERINGS = 2  # in progress in one worker
MAX_TIME = 30.0  # seconds, with reading the file from the storage
MAX_OUTPUT_BYTES = 8 * 1024**2
MAX_KNOWN_PAGE_COUNTS = 5000
MAX_FAILED = 5000
RETRY_DELAY = 60.0  # seconds, for a page that took too much time or memory
MAX_PREPARED = 10  # images, each of some 100 kB

_PROGRAM = "plankeeper.resources.documents.rendering_process"  # not imported: PDFium and Pillow stay out of workers
_slots = ProcessSlots(MAX_RENDERINGS, "Too many pages of documents are being drawn.")
_page_counts: dict[UUID, int] = {}  # by document, whose content never changes
# By document and page: images that nobody has seen yet.
_prepared: OrderedDict[tuple[UUID, int], tuple[RenderingResult, bytes]] = OrderedDict()
_failed: dict[tuple[UUID, int], float] = {}  # by document and page: when it is tried again

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


async def count_pages(settings: Settings, plan_manager_id: UUID, document: DocumentRow) -> int:
    """The number of images that show a document: 1, the placeholder, if it can't be shown."""
    if document.id in _page_counts:
        return _page_counts[document.id]
    result, _ = await _render(settings, plan_manager_id, document, 0)
    return result.pages


async def prepare_page(settings: Settings, plan_manager_id: UUID, document: DocumentRow, number: int) -> None:
    """Draw a page that somebody probably wants to see soon. It is kept until then, in this worker.

    Does nothing while other pages of the plan manager are being drawn, or many of others.
    """
    if (document.id, number) in _prepared or not _slots.is_free(plan_manager_id):
        return
    with suppress(DomainError):
        drawn = await _render(settings, plan_manager_id, document, number)
        _prepared[document.id, number] = drawn
        while len(_prepared) > MAX_PREPARED:
            _prepared.popitem(last=False)


async def render_page(settings: Settings, plan_manager_id: UUID, document: DocumentRow, number: int) -> PageImage:
    """The image of a page, from 1. Raises NotFound without such a page.

    Raises DomainError 503 if the storage fails, or if too many images are being drawn.
    """
    if number < 1:
        raise NotFound
    result, image = _prepared.pop((document.id, number), None) or await _render(
        settings, plan_manager_id, document, number
    )
    if result.problem and number == 1:
        return PageImage("image/svg+xml", _PLACEHOLDER.format(_SENTENCES[result.problem]).encode())
    if number > result.pages:
        raise NotFound
    return PageImage("image/jpeg", image, result.pages)


async def _render(
    settings: Settings, plan_manager_id: UUID, document: DocumentRow, number: int
) -> tuple[RenderingResult, bytes]:
    """The result and the image of one process. One that fails, or that takes too long, is killed."""
    failed = (document.id, number)
    if _failed.get(failed, 0.0) > time.monotonic():
        return RenderingResult(problem="failed"), b""
    async with _slots.slot(plan_manager_id):
        output = await run_process(
            *(_PROGRAM, document.media_type, str(number)),
            content=open_document(settings, document).chunks,
            max_time=MAX_TIME,
            max_output=MAX_OUTPUT_BYTES,
        )
    line, _, image = output.partition(b"\n")
    try:
        result = msgspec.json.decode(line, type=RenderingResult)
    except msgspec.DecodeError:
        if len(_failed) >= MAX_FAILED:
            _failed.clear()
        _failed[failed] = time.monotonic() + RETRY_DELAY
        return RenderingResult(problem="failed"), b""
    if len(_page_counts) >= MAX_KNOWN_PAGE_COUNTS:
        _page_counts.clear()
    _page_counts[document.id] = result.pages
    return result, image
