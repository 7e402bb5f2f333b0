"""The files of a statement: its page, in large letters, plain words and made for printing, and its PDF.

The PDF is rendered when it is first needed, stored, and the same bytes ever after.
"""

import hashlib
from datetime import UTC, datetime
from functools import cache
from uuid import UUID
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup
from uuid_utils.compat import uuid7

from plankeeper.core.context import or_404
from plankeeper.core.errors import DomainError
from plankeeper.core.files import Download, single_chunk
from plankeeper.core.pdf.documents import render
from plankeeper.core.settings import Settings
from plankeeper.database.client import Executor
from plankeeper.resources.documents.service import UPLOAD_TIME, storage_failed
from plankeeper.resources.documents.storage import StorageError, storage_of
from plankeeper.resources.documents.store import add_object, claim_object
from plankeeper.resources.statements import store
from plankeeper.resources.statements.document import to_document
from plankeeper.resources.statements.schemas import StatementContent, StatementRow

HTML = "text/html"


@cache
def _environment() -> Environment:
    return Environment(
        loader=PackageLoader("plankeeper.resources.statements"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def render_page(statement: StatementContent, zone: ZoneInfo) -> str:
    """A self-contained page. Dates are those of the zone."""
    return _environment().get_template("statement.html").render(statement=to_document(statement, zone))


def render_body(statement: StatementContent, zone: ZoneInfo) -> Markup:
    """The content of the page, for a page of the console."""
    return Markup(_environment().get_template("body.html").render(statement=to_document(statement, zone)))  # noqa: S704 - the template escapes


def to_file(statement: StatementContent, zone: ZoneInfo) -> Download:
    """The page as a file."""
    content = render_page(statement, zone).encode()
    return Download.of_bytes(f"statement-{statement.month}.html", HTML, content)


async def get_pdf(db: Executor, settings: Settings, plan_manager_id: UUID, row: StatementRow) -> bytes:
    """The PDF of a statement, which is rendered and stored the first time.

    Raises DomainError `service_unavailable` without a storage of documents, and UnprintableError.
    """
    if row.pdf_key is None:
        await _make(db, settings, plan_manager_id, row)
        row = or_404(await store.get(db, plan_manager_id, row.id))
    return await _read(settings, str(row.pdf_key))


async def _make(db: Executor, settings: Settings, plan_manager_id: UUID, row: StatementRow) -> None:
    """Render and store the PDF, unless another request has stored it by then."""
    storage = storage_of(settings)
    document = to_document(row.statement, settings.time_zone)
    content = await render(plan_manager_id, "statement", document, row.made_at, settings.fonts_folder)
    key = f"{plan_manager_id}/{uuid7()}.pdf"
    await add_object(db, plan_manager_id, key, datetime.now(UTC) + UPLOAD_TIME)
    try:
        await storage.put(key, single_chunk(content))
    except StorageError as error:
        raise storage_failed(error) from error
    # A server that stops between the two leaves an object over, but never a statement without its object.
    await claim_object(db, plan_manager_id, key)
    if not await store.set_pdf(db, plan_manager_id, row.id, key, hashlib.sha256(content).hexdigest(), len(content)):
        await add_object(db, plan_manager_id, key, datetime.now(UTC))


async def _read(settings: Settings, key: str) -> bytes:
    try:
        return b"".join([chunk async for chunk in storage_of(settings).read(key)])
    except FileNotFoundError:
        detail = "The storage has lost the statement. The operator can restore it from a backup."
        raise DomainError("service_unavailable", detail) from None
    except StorageError as error:
        raise storage_failed(error) from error
