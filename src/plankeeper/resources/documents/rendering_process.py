"""The process that draws one page of a document, with limits on time and memory. Files can be damaged, or hostile.

It reads the file from its input. It writes a `RenderingResult` as a line of JSON and, if there is no problem, a JPEG.
"""

import io
import sys
from typing import Any

import msgspec
from PIL import Image, ImageOps
from pypdfium2 import PdfDocument, PdfiumError

from plankeeper.core.process_limits import set_limits
from plankeeper.resources.documents.schemas import MAX_PAGES, Problem, RenderingResult

MAX_SIDE = 1800  # pixels of the JPEG: A4 at 150 dots per inch has 1240 by 1754
MAX_PIXELS = 50_000_000  # of a PNG or JPEG, before it is reduced
Image.MAX_IMAGE_PIXELS = None  # instead of Pillow's own limit
DOTS_PER_POINT = 150 / 72
JPEG_QUALITY = 85


class UnreadableError(Exception):
    """The document can't be shown."""

    def __init__(self, problem: Problem) -> None:
        self.problem: Problem = problem
        super().__init__(problem)


def open_pdf(content: bytes) -> Any:
    """A `PdfDocument`, which has no complete types."""
    try:
        pdf = PdfDocument(content)
    except PdfiumError as error:
        raise UnreadableError("encrypted" if "password" in str(error) else "damaged") from None
    if not 1 <= len(pdf) <= MAX_PAGES:
        raise UnreadableError("too_many_pages" if len(pdf) else "damaged")
    return pdf


def draw_page(pdf: Any, number: int) -> Image.Image:
    """The image of a page, with the values of its form fields. Scripts don't run."""
    pdf.init_forms()
    page = pdf[number - 1]
    return page.render(scale=min(DOTS_PER_POINT, MAX_SIDE / max(page.get_size()))).to_pil().convert("RGB")


def reduce_image(content: bytes) -> Image.Image:
    """A PNG or JPEG, upright and opaque."""
    image = Image.open(io.BytesIO(content), formats=("PNG", "JPEG"))
    if image.width * image.height > MAX_PIXELS:
        raise UnreadableError("too_large")
    image.draft("RGB", (MAX_SIDE, MAX_SIDE))  # a large JPEG is decoded at a fraction of its size
    image.thumbnail((MAX_SIDE, MAX_SIDE))
    image = ImageOps.exif_transpose(image)
    if not image.has_transparency_data:
        return image.convert("RGB")
    image = image.convert("RGBA")
    return Image.alpha_composite(Image.new("RGBA", image.size, "white"), image).convert("RGB")


def render(media_type: str, number: int, content: bytes) -> tuple[RenderingResult, bytes]:
    """The JPEG of a page, without metadata. For a number beyond the last page, and for 0, it is empty."""
    buffer = io.BytesIO()
    try:
        pdf = open_pdf(content) if media_type == "application/pdf" else None
        result = RenderingResult(len(pdf) if pdf else 1)
        if 1 <= number <= result.pages:
            image = draw_page(pdf, number) if pdf else reduce_image(content)
            image.info.clear()
            image.save(buffer, "JPEG", quality=JPEG_QUALITY)
    except UnreadableError as error:
        return RenderingResult(problem=error.problem), b""
    except (PdfiumError, OSError, SyntaxError, ValueError, ZeroDivisionError):  # what the libraries raise
        return RenderingResult(problem="damaged"), b""
    return result, buffer.getvalue()


def main(media_type: str, number: str) -> None:
    """Draw the file in the input. Number 0 counts its pages."""
    set_limits()
    result, image = render(media_type, int(number), sys.stdin.buffer.read())
    sys.stdout.buffer.write(msgspec.json.encode(result) + b"\n" + image)


if __name__ == "__main__":
    main(*sys.argv[1:])
