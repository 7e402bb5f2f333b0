"""Forms and queries as they were sent: names with their texts."""

from collections.abc import Iterable, Mapping
from typing import NamedTuple, TypeVar
from urllib.parse import parse_qsl

from msgspec import Struct
from starlette.types import Receive

from plankeeper.http.errors import ApiError, ValidationError
from plankeeper.http.requests import ClientDisconnectedError
from plankeeper.http.validation import validate

S = TypeVar("S", bound=Struct)

MAX_FORM_BYTES = 256 * 1024  # bytes of a form: the longest note, each of its characters nine bytes, and the rest
_FORM_CONTENT_TYPE = b"application/x-www-form-urlencoded"


class Upload(NamedTuple):
    """A file that came with a form: its name, without the way to it, and what is in it."""

    name: str
    content: bytes


class Form(dict[str, list[str]]):
    """The texts of each name, and the file if there is one."""

    upload: Upload | None = None

    def text(self, name: str) -> str:
        """The only text of a name without the spaces around it; empty where there is none."""
        values = self.get(name, [])
        return values[0].strip() if len(values) == 1 else ""

    def raw(self, name: str) -> str:
        """A text as it was typed."""
        values = self.get(name, [])
        return values[0] if len(values) == 1 else ""

    def getlist(self, name: str) -> list[str]:
        return self.get(name, [])


def parse_form(text: bytes) -> Form:
    """What stands in a query or in the body of a form; raises ValidationError."""
    try:
        pairs = parse_qsl(text.decode(), keep_blank_values=True, errors="strict", max_num_fields=200)
    except ValueError:
        raise ValidationError(form="must be percent-encoded UTF-8") from None
    return _add_pairs(Form(), pairs)


def add_fields(form: Form, pairs: Iterable[tuple[bytes, bytes]]) -> Form:
    """The form with further texts; raises ValidationError."""
    try:
        return _add_pairs(form, [(name.decode(), value.decode()) for name, value in pairs])
    except UnicodeDecodeError:
        raise ValidationError(form="must be UTF-8") from None


def _add_pairs(form: Form, pairs: Iterable[tuple[str, str]]) -> Form:
    for name, value in pairs:
        if "\0" in name or "\0" in value:
            raise ValidationError(form="must not contain the character NUL")
        form.setdefault(name, []).append(value)
    return form


async def read_form(headers: Mapping[bytes, bytes], receive: Receive) -> Form:
    """The form in a body; raises ApiError and ClientDisconnectedError."""
    if headers.get(b"content-type", b"").partition(b";")[0].strip().lower() != _FORM_CONTENT_TYPE:
        raise ApiError("unsupported_media_type", "The body is not a form.")
    return parse_form(
        await read_limited_body(receive, MAX_FORM_BYTES, ApiError("body_too_large", "The form is too long."))
    )


async def read_limited_body(receive: Receive, max_bytes: int, too_large: ApiError) -> bytes:
    """A body of at most so many bytes."""
    body = bytearray()
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            raise ClientDisconnectedError
        body += message.get("body", b"")
        if len(body) > max_bytes:
            raise too_large
        if not message.get("more_body"):
            return bytes(body)


def validate_struct(struct_type: type[S], values: Mapping[str, object]) -> S:
    """Values as the API would take them; raises ValidationError naming every fault."""
    parsed, errors = validate(struct_type, values)
    if parsed is None:
        raise ValidationError(*errors)
    return parsed
