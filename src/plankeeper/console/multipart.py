"""Forms that carry a file: multipart/form-data, as browsers send it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Receive

from plankeeper.console.forms import MOST, Form, Upload, received, texts_of
from plankeeper.http.errors import Invalid, Refusal

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MOST_OF_A_FILE = 10 * 1024 * 1024  # bytes
_MOST_PARTS = 50
_KIND = b"multipart/form-data"


class _Part:
    """One field, or the file."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.data: list[bytes] = []


class _Parts:
    """What the parser tells as it goes through a body."""

    def __init__(self) -> None:
        self.found: list[_Part] = []
        self.whole = False
        self._name = self._value = b""

    @property
    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._begin, "on_header_field": self._field, "on_header_value": self._more,
            "on_header_end": self._header, "on_part_data": self._data, "on_end": self._end,
        }  # fmt: skip

    def _begin(self) -> None:
        if len(self.found) == _MOST_PARTS:
            raise Invalid(form=f"must have at most {_MOST_PARTS} fields")
        self.found.append(_Part())

    def _field(self, data: bytes, start: int, end: int) -> None:
        self._name += data[start:end]

    def _more(self, data: bytes, start: int, end: int) -> None:
        self._value += data[start:end]

    def _header(self) -> None:
        self.found[-1].headers[self._name.lower()] = self._value
        self._name = self._value = b""

    def _data(self, data: bytes, start: int, end: int) -> None:
        self.found[-1].data.append(data[start:end])

    def _end(self) -> None:
        self.whole = True


def carries_files(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == _KIND


async def read_upload(headers: Mapping[bytes, bytes], receive: Receive) -> Form:
    """The form in a body, with its file; raises Refusal and ClientGone."""
    most = MOST_OF_A_FILE + MOST
    too_large = Refusal("body_too_large", "The file is larger than 10 MiB. Use `plankeeper import` for it.")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > most:
        raise too_large
    _, options = parse_options_header(headers[b"content-type"])
    return _formed(options.get(b"boundary", b""), await received(receive, most, too_large))


def _formed(boundary: bytes, body: bytes) -> Form:
    parts, form = _Parts(), Form()
    try:
        parser = MultipartParser(boundary, parts.callbacks)
        parser.write(body)
        parser.finalize()
    except FormParserError:
        parts.whole = False
    if not parts.whole:
        raise Invalid(form="must be whole, as a browser sends it")
    pairs: list[tuple[bytes, bytes]] = []
    for part in parts.found:
        _, said = parse_options_header(part.headers.get(b"content-disposition", b""))
        content = b"".join(part.data)
        if b"filename" not in said:
            pairs.append((said.get(b"name", b""), content))
        elif said[b"filename"] and form.upload is None:  # without a name no file was chosen
            form.upload = Upload(_base(said[b"filename"]), content)
    if sum(map(len, (part for pair in pairs for part in pair))) > MOST:
        raise Refusal("body_too_large", "The form is too long.")
    return texts_of(form, pairs)


def _base(name: bytes) -> str:
    """A file's own name, without the way to it."""
    last = name.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
    return "".join(each for each in last if each.isprintable())[:255] or "file"
