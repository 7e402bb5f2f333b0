"""PDF documents from templates, accessible as PDF/UA-1: tagged, with a title, and without letters that are boxes."""

import re
from datetime import datetime
from functools import lru_cache
from pathlib import Path

import typst
from msgspec import Struct

from plankeeper.core.json import to_json

FONTS = Path(__file__).parent / "fonts"
TEMPLATES = Path(__file__).parent / "templates"
_MISSING = re.compile('the text `"(.+?)"` could not be displayed')
_ESCAPED = re.compile(r"\\u\{([0-9a-f]+)\}")  # a letter that isn't shown, such as one for private use


class UnprintableTextError(ValueError):
    """A text has letters that no font has. `letters` are those, each once."""

    def __init__(self, letters: str) -> None:
        listed = ", ".join(f"{each} (U+{ord(each):04X})" for each in letters)
        super().__init__(f"no font has the letters {listed}: add one with PLANKEEPER_FONTS_FOLDER")
        self.letters = letters


def render(template: str, content: Struct, at: datetime, fonts_folder: Path | None = None) -> bytes:
    """The PDF of a template, for example `remittance_advice`, which reads the content as JSON.

    `fonts_folder` has further fonts. The same arguments always give the same bytes. Raises UnprintableTextError.
    It takes 5 to 20 ms of processor time: run it in a thread.
    """
    inputs = {"content": to_json(content), "fonts": to_json(_families(fonts_folder))}
    try:
        return typst.compile(
            TEMPLATES / f"{template}.typ",
            root=TEMPLATES,
            font_paths=find_fonts(fonts_folder),
            sys_inputs=inputs,
            pdf_standards="ua-1",
            timestamp=int(at.timestamp()),
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
