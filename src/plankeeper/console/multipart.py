"""Forms that carry a file: multipart/form-data, as browsers send it."""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from python_multipart.exceptions import FormParserError
from python_multipart.multipart import MultipartParser, parse_options_header
from starlette.types import Receive

from plankeeper.console.forms import MAX_FORM_BYTES, Form, Upload, add_fields, read_limited_body
from plankeeper.http.errors import ApiError, ValidationError

if TYPE_CHECKING:
    from python_multipart.multipart import MultipartCallbacks

MAX_FILE_BYTES = 10 * 1024 * 1024  # bytes
_MAX_PARTS = 50
_CONTENT_TYPE = b"multipart/form-data"


class _Part:
    """One field, or the file."""

    def __init__(self) -> None:
        self.headers: dict[bytes, bytes] = {}
        self.data: list[bytes] = []


class _PartCollector:
    """What the parser tells as it goes through a body."""

    def __init__(self) -> None:
        self.parts: list[_Part] = []
        self.is_complete = False
        self._header_name = self._header_value = b""

    @property
    def callbacks(self) -> "MultipartCallbacks":
        return {
            "on_part_begin": self._on_part_begin,
            "on_header_field": self._on_header_field,
            "on_header_value": self._on_header_value,
            "on_header_end": self._on_header_end,
            "on_part_data": self._on_part_data,
            "on_end": self._on_end,
        }

    def _on_part_begin(self) -> None:
        if len(self.parts) == _MAX_PARTS:
            raise ValidationError(form=f"must have at most {_MAX_PARTS} fields")
        self.parts.append(_Part())

    def _on_header_field(self, data: bytes, start: int, end: int) -> None:
        self._header_name += data[start:end]

    def _on_header_value(self, data: bytes, start: int, end: int) -> None:
        self._header_value += data[start:end]

    def _on_header_end(self) -> None:
        self.parts[-1].headers[self._header_name.lower()] = self._header_value
        self._header_name = self._header_value = b""

    def _on_part_data(self, data: bytes, start: int, end: int) -> None:
        self.parts[-1].data.append(data[start:end])

    def _on_end(self) -> None:
        self.is_complete = True


def is_multipart(headers: Mapping[bytes, bytes]) -> bool:
    return headers.get(b"content-type", b"").partition(b";")[0].strip().lower() == _CONTENT_TYPE


async def read_upload(headers: Mapping[bytes, bytes], receive: Receive) -> Form:
    """The form in a body, with its file; raises ApiError and ClientDisconnectedError."""
    max_bytes = MAX_FILE_BYTES + MAX_FORM_BYTES
    too_large = ApiError("body_too_large", "The file is larger than 10 MiB. Use `plankeeper import` for it.")
    length = headers.get(b"content-length", b"0")
    if not length.isdigit() or int(length) > max_bytes:
        raise too_large
    _, options = parse_options_header(headers[b"content-type"])
    return _parse_multipart(options.get(b"boundary", b""), await read_limited_body(receive, max_bytes, too_large))


def _parse_multipart(boundary: bytes, body: bytes) -> Form:
    collector, form = _PartCollector(), Form()
    try:
        parser = MultipartParser(boundary, collector.callbacks)
        parser.write(body)
        parser.finalize()
    except FormParserError:
        collector.is_complete = False
    if not collector.is_complete:
        raise ValidationError(form="must be whole, as a browser sends it")
    pairs: list[tuple[bytes, bytes]] = []
    for part in collector.parts:
        _, disposition = parse_options_header(part.headers.get(b"content-disposition", b""))
        content = b"".join(part.data)
        if b"filename" not in disposition:
            pairs.append((disposition.get(b"name", b""), content))
        elif disposition[b"filename"] and form.upload is None:  # without a name no file was chosen
            form.upload = Upload(_base_name(disposition[b"filename"]), content)
    if sum(map(len, (part for pair in pairs for part in pair))) > MAX_FORM_BYTES:
        raise ApiError("body_too_large", "The form is too long.")
    return add_fields(form, pairs)


def _base_name(name: bytes) -> str:
    """A file's own name, without the way to it."""
    base_name = name.decode("utf-8", "replace").replace("\\", "/").rpartition("/")[2]
    return "".join(each for each in base_name if each.isprintable())[:255] or "file"
