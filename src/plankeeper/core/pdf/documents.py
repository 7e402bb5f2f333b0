"""PDF documents from templates, accessible as PDF/UA-1: tagged, with a title, and without letters that are boxes."""

import asyncio
import re
from datetime import datetime
from functools import lru_cache
from pathlib import Path
from uuid import UUID

import typst
from msgspec import Struct

from plankeeper.core.files import single_chunk
from plankeeper.core.json import to_json
from plankeeper.core.processes import ProcessSlots, run_process

FONTS = Path(__file__).parent / "fonts"
TEMPLATES = Path(__file__).parent / "templates"
MAX_CONTENT_IN_WORKER = 32 * 1024  # bytes: some 100 lines; a document of more is made by a process of its own
# Of that process: enough for some 5,000 lines, each of which takes 60 to 170 KB, and 1 to 3 ms.
MAX_MEMORY = 1024**3  # bytes of address space
MAX_TIME = 120.0  # seconds
MAX_PDF_BYTES = 64 * 1024**2

_PROGRAM = "plankeeper.core.pdf.rendering_process"
_MISSING = re.compile('the text `"(.+?)"` could not be displayed')
_ESCAPED = re.compile(r"\\u\{([0-9a-f]+)\}")  # a letter that isn't shown, such as one for private use


class UnprintableError(ValueError):
    """There is no PDF of a content. The text says why."""


class UnprintableTextError(UnprintableError):
    """A text has letters that no font has. `letters` are those, each once."""

    def __init__(self, letters: str) -> None:
        listed = ", ".join(f"{each} (U+{ord(each):04X})" for each in letters)
        super().__init__(f"no font has the letters {listed}: add one with PLANKEEPER_FONTS_FOLDER")
        self.letters = letters


_slots = ProcessSlots(1, "Too many large documents are being made.")


async def render(
    plan_manager_id: UUID, template: str, content: Struct, at: datetime, fonts_folder: Path | None = None
) -> bytes:
    """The PDF of a template, for example `remittance_advice`, which reads the content as JSON.

    `fonts_folder` has further fonts. The same arguments always give the same bytes. Raises UnprintableError, and
    DomainError 503 if the plan manager or the worker makes too many large documents already.
    """
    data, timestamp = to_json(content), int(at.timestamp())
    if len(data) <= MAX_CONTENT_IN_WORKER:
        return await asyncio.to_thread(compile_document, template, data, timestamp, fonts_folder)
    async with _slots.slot(plan_manager_id):
        output = await run_process(
            *(_PROGRAM, template, str(timestamp), str(MAX_MEMORY), str(fonts_folder or "")),
            content=single_chunk(data.encode()),
            max_time=MAX_TIME,
            max_output=MAX_PDF_BYTES,
        )
    if not output:
        raise UnprintableError("no PDF can have so many lines")
    if not output.startswith(b"%PDF-"):
        raise UnprintableTextError(output.decode())
    return output


def compile_document(template: str, content: str, timestamp: int, fonts_folder: Path | None) -> bytes:
    """The PDF of a content as JSON, made in this thread. Raises UnprintableTextError.

    It takes 5 to 20 ms of processor time for a page or two.
    """
    try:
        return typst.compile(
            TEMPLATES / f"{template}.typ",
            root=TEMPLATES,
            font_paths=find_fonts(fonts_folder),
            sys_inputs={"content": content, "fonts": to_json(_families(fonts_folder))},
            pdf_standards="ua-1",
            timestamp=timestamp,
        )
    except typst.TypstError as error:
        missing = _ESCAPED.sub(lambda match: chr(int(match[1], 16)), "".join(_MISSING.findall(error.diagnostic)))
        letters = "".join(dict.fromkeys(missing))
        if not letters:
            raise
        raise UnprintableTextError(letters) from None


@lru_cache(maxsize=2)
def find_fonts(folder: Path | None) -> typst.Fonts:
    """The bundled fonts, and those of a folder. Fonts that are added later take effect with the next start."""
    paths = [FONTS, *([folder] if folder else [])]
    return typst.Fonts(include_system_fonts=False, include_embedded_fonts=False, font_paths=paths)


def _families(folder: Path | None) -> list[str]:
    """The names of the fonts: Noto Sans, whose letters are preferred, and then the others."""
    names = find_fonts(folder).families()
    return sorted(names, key=lambda name: (name != "Noto Sans", name))
