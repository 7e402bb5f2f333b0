"""Images of the pages of documents: of PDFs and images, and placeholders for damaged and hostile files."""

import io
import zlib
from collections.abc import Callable
from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import psutil
import pytest
from PIL import Image
from uuid_utils.compat import uuid7

from plankeeper.core.errors import NotFound
from plankeeper.core.files import MediaType
from plankeeper.core.settings import Settings
from plankeeper.resources.documents import rendering, rendering_process
from plankeeper.resources.documents.rendering import PageImage, count_pages, render_page
from plankeeper.resources.documents.schemas import DocumentRow, RenderingResult
from support.pdf_files import packed_stream, page_pdf, pdf_file, text_pdf
from support.program import command_line

OFFICE = uuid7()
Store = Callable[[bytes, MediaType], DocumentRow]


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    return replace(Settings.read({}), documents_url=tmp_path.as_uri())


@pytest.fixture
def store(tmp_path: Path) -> Store:
    def store_file(content: bytes, media_type: MediaType = "application/pdf") -> DocumentRow:
        key = f"{uuid7()}.bin"
        (tmp_path / key).write_bytes(content)
        return DocumentRow(
            id=uuid7(), invoice_id=uuid7(), object_key=key, file_name="a", media_type=media_type, size=len(content),
            sha256="", created_at=datetime.now(UTC), created_by="test",
        )  # fmt: skip

    return store_file


def image_of(page: PageImage) -> Image.Image:
    assert page.media_type == "image/jpeg", page.content.decode()
    return Image.open(io.BytesIO(page.content), formats=["JPEG"])


def encoded(image: Image.Image, kind: str, **options: Any) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, kind, **options)
    return buffer.getvalue()


async def test_the_pages_of_a_pdf_are_images(settings: Settings, store: Store) -> None:
    document = store(text_pdf(pages=3), "application/pdf")
    assert await count_pages(settings, OFFICE, document) == 3
    image = image_of(await render_page(settings, OFFICE, document, 3))
    assert image.size == (1240, 1755)
    darkest, lightest = image.convert("L").getextrema()
    assert (darkest < 100, lightest) == (True, 255)  # text on paper
    for number in (0, 4):
        with pytest.raises(NotFound):
            await render_page(settings, OFFICE, document, number)


async def test_large_pages_are_reduced(settings: Settings, store: Store) -> None:
    document = store(text_pdf(size=(14_400, 7_200)), "application/pdf")
    assert image_of(await render_page(settings, OFFICE, document, 1)).size == (1800, 900)


async def test_images_are_upright_opaque_and_without_metadata(settings: Settings, store: Store) -> None:
    photograph = Image.new("RGB", (4000, 2000), "red")
    exif = Image.Exif()
    exif[0x0112], exif[0x010F] = 6, "Camera of Jane"  # to be rotated by 90 degrees; the maker
    jpeg = store(encoded(photograph, "JPEG", exif=exif), "image/jpeg")
    image = image_of(await render_page(settings, OFFICE, jpeg, 1))
    assert (image.size, dict(image.getexif())) == ((900, 1800), {})
    png = store(encoded(Image.new("RGBA", (100, 50), (0, 0, 0, 0)), "PNG"), "image/png")
    image = image_of(await render_page(settings, OFFICE, png, 1))
    assert (image.size, image.getpixel((50, 25)), await count_pages(settings, OFFICE, png)) == (
        (100, 50),
        (255,) * 3,
        1,
    )


ENCRYPTION = b"/Encrypt<</Filter/Standard/V 1/R 2/P -4/O(%s)/U(%s)>>/ID[(a)(a)]" % (b"o" * 32, b"u" * 32)
DEEP_PAGES = pdf_file([b"<</Type/Catalog/Pages 2 0 R>>", b"<</Type/Pages/Count 1/Kids[2 0 R]>>"])


def zip_bomb(size: int) -> bytes:
    """A page whose content is `size` MiB of spaces."""
    compressor = zlib.compressobj(9)
    header = compressor.compress(b"")
    block = compressor.compress(b" " * 2**20) + compressor.flush(zlib.Z_FULL_FLUSH)  # independent of what precedes it
    return page_pdf(packed_stream(header + block * size))


async def test_files_that_cannot_be_shown_have_a_placeholder(settings: Settings, store: Store) -> None:
    png = encoded(Image.new("RGB", (300, 300), "red"), "PNG")
    files: dict[str, list[tuple[bytes, MediaType]]] = {
        "protected by a password": [(text_pdf(trailer=ENCRYPTION), "application/pdf")],
        "more than 200 pages": [(text_pdf(pages=10_000), "application/pdf")],
        "damaged": [
            (DEEP_PAGES, "application/pdf"),
            (png[: len(png) // 2], "image/png"),
        ],
        "image is too large": [(encoded(Image.new("1", (9000, 9000)), "PNG"), "image/png")],
        "too much time or memory": [(zip_bomb(1200), "application/pdf")],
    }
    failures: list[str] = []
    for sentence, contents in files.items():
        for content, media_type in contents:
            document = store(content, media_type)
            page, pages = (
                await render_page(settings, OFFICE, document, 1),
                await count_pages(settings, OFFICE, document),
            )
            if page.media_type != "image/svg+xml" or sentence not in page.content.decode() or pages != 1:
                failures.append(f"{sentence}: {content[:20]}: {pages} {page.media_type} {page.content[-200:]}")
    assert failures == []


@pytest.mark.parametrize(
    "content, media_type",
    [
        (b"%PDF-1.7\n", "application/pdf"),
        (text_pdf()[:300], "application/pdf"),
        (b"\xff\xd8\xff\xe0", "image/jpeg"),
        (b"GIF89a", "image/png"),
    ],
)
def test_other_damaged_files(content: bytes, media_type: MediaType) -> None:
    """What the process writes for them; it isn't started, because a start takes 0.2 s of processor time."""
    assert rendering_process.render(media_type, 1, content) == (RenderingResult(problem="damaged"), b"")


async def test_a_process_that_takes_too_long_is_killed(
    settings: Settings, store: Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(rendering, "MAX_TIME", 0.01)
    document = store(text_pdf())
    assert b"too much time" in (await render_page(settings, OFFICE, document, 1)).content
    commands = [command_line(each) for each in psutil.Process().children()]
    assert [each for each in commands if rendering._PROGRAM in each] == []  # noqa: SLF001
    monkeypatch.undo()
    image_of(await render_page(settings, OFFICE, store(text_pdf()), 1))
    with monkeypatch.context() as patch:
        patch.setattr(rendering, "run_process", None)  # it isn't started again at once
        assert b"too much time" in (await render_page(settings, OFFICE, document, 1)).content
