"""Parses forms and queries: names with their texts, and uploaded files."""

import re
from collections.abc import AsyncGenerator, Callable, Iterable, Mapping, Sequence
from decimal import Decimal
from typing import NamedTuple
from urllib.parse import parse_qsl

from starlette.datastructures import ImmutableMultiDict, UploadFile
from starlette.formparsers import MultiPartException, MultiPartParser
from starlette.requests import Request

from plankeeper.core.errors import DomainError, FieldError, ValidationError

MAX_FORM_BYTES = 256 * 1024  # the longest note, with nine bytes for each of its characters, and the other fields
MAX_FIELDS = 1500  # of a form without a file: the 100 lines of an invoice, and its other fields
MAX_UPLOAD_FIELDS = 50
MAX_MEMORY_BYTES = 32 * 1024 * 1024  # more than the limit of any form
_AMOUNT = re.compile(r"-?\$?(?:[0-9]{1,3}(?:,[0-9]{3})+|[0-9]{1,12})(?:\.[0-9]{1,10})?|-?\.[0-9]{1,10}")
_FORM_TOO_LONG = "The form is too long."


class FieldWarning(NamedTuple):
    """A warning about a value of a form. `token` identifies the warning and the value when it is confirmed.

    `url` leads to another record that the message is about.
    """

    message: str
    token: str
    url: str = ""
    link_text: str = ""


class FormError(ValidationError):
    """The errors of a form, and its warnings. One of the two may be empty."""

    def __init__(self, errors: Iterable[FieldError], warnings: Mapping[str, FieldWarning]) -> None:
        super().__init__(*errors)
        self.warnings = warnings


class Upload(NamedTuple):
    """An uploaded file: its name without a path, and its content."""

    name: str
    content: bytes


class UploadLimits(NamedTuple):
    """How much a form may upload: `max_bytes` of all files together. `too_large` is the error beyond it."""

    max_files: int
    max_bytes: int
    too_large: str


class Form(ImmutableMultiDict[str, str]):
    """The fields of a form or a query, and its files."""

    def __init__(self, fields: Iterable[tuple[str, str]] = (), uploads: Sequence[Upload] = ()) -> None:
        super().__init__(list(fields))
        self.uploads = uploads

    def text(self, name: str) -> str:
        """The text of a field that occurs once, without surrounding spaces; otherwise an empty string."""
        return self.raw(name).strip()

    def multiline_text(self, name: str) -> str:
        """As `text`. A line break is one character, as a browser counts it, although it sends two."""
        return self.text(name).replace("\r\n", "\n")

    def raw(self, name: str) -> str:
        """The text of a field that occurs once, exactly as it was typed; otherwise an empty string."""
        texts = self.getlist(name)
        return texts[0] if len(texts) == 1 else ""


class _UploadParser(MultiPartParser):
    """Keeps the files in memory, so that personal data never reaches the disk, and detects truncated bodies."""

    spool_max_size = MAX_MEMORY_BYTES
    is_complete = False

    def on_end(self) -> None:
        self.is_complete = True


def parse_form(encoded: bytes) -> Form:
    """The fields of a query or of an URL-encoded form; raises ValidationError."""
    try:
        fields = parse_qsl(encoded.decode(), keep_blank_values=True, errors="strict", max_num_fields=MAX_FIELDS)
    except ValueError:
        raise ValidationError(form="must be percent-encoded UTF-8") from None
    return Form(_require_no_nul(fields))


async def read_form(request: Request, max_bytes: int = MAX_FORM_BYTES) -> Form:
    """The URL-encoded form in a body; raises DomainError and ClientDisconnect."""
    if _media_type(request) != "application/x-www-form-urlencoded":
        raise DomainError("unsupported_media_type", "The body is not a form.")
    return parse_form(b"".join([chunk async for chunk in _limited_stream(request, max_bytes, _FORM_TOO_LONG)]))


def is_upload(request: Request) -> bool:
    return _media_type(request) == "multipart/form-data"


async def read_upload(request: Request, limits: UploadLimits) -> Form:
    """The multipart form in a body, with its files; raises DomainError and ClientDisconnect."""
    length, max_bytes = request.headers.get("content-length", "0"), limits.max_bytes + MAX_FORM_BYTES
    if not length.isdigit() or int(length) > max_bytes:
        raise DomainError("body_too_large", limits.too_large)
    parser = _UploadParser(
        request.headers,
        _limited_stream(request, max_bytes, limits.too_large),
        max_files=limits.max_files,
        max_fields=MAX_UPLOAD_FIELDS,
        max_part_size=max_bytes,  # the fields together are limited below, with an error of their own
    )
    try:
        parts = await parser.parse()
    except MultiPartException as error:
        raise ValidationError(form=f"must be valid multipart/form-data: {error.message}") from None
    if not parser.is_complete:
        raise ValidationError(form="must be complete multipart/form-data")
    fields = [(name, part) for name, part in parts.multi_items() if isinstance(part, str)]
    if sum(len(name.encode()) + len(text.encode()) for name, text in fields) > MAX_FORM_BYTES:
        raise DomainError("body_too_large", _FORM_TOO_LONG)
    files = [part for _, part in parts.multi_items() if isinstance(part, UploadFile) and part.filename]
    return Form(_require_no_nul(fields), [await _read_file(each) for each in files])


async def _read_file(file: UploadFile) -> Upload:
    """The uploaded file, with the printable characters of its name and without the path that some browsers send."""
    name = (file.filename or "").replace("\\", "/").rpartition("/")[2]
    printable_name = "".join(character for character in name if character.isprintable())[:255] or "file"
    content = await file.read()
    await file.close()
    return Upload(printable_name, content)


async def _limited_stream(request: Request, max_bytes: int, detail: str) -> AsyncGenerator[bytes, None]:
    """The chunks of the body; raises DomainError with this detail as soon as it has more than `max_bytes`."""
    size = 0
    async for chunk in request.stream():
        size += len(chunk)
        if size > max_bytes:
            raise DomainError("body_too_large", detail)
        yield chunk


def _media_type(request: Request) -> str:
    return request.headers.get("content-type", "").partition(";")[0].strip().lower()


def _require_no_nul(fields: list[tuple[str, str]]) -> list[tuple[str, str]]:
    if any("\0" in text for field in fields for text in field):
        raise ValidationError(form="must not contain the character NUL")
    return fields


def parse_amount(text: str) -> Decimal | None:
    """The amount in `1000`, `1,000.50`, `$1,000` or `.5`; null for any other text."""
    compact = text.replace(" ", "")
    return Decimal(compact.replace("$", "").replace(",", "")) if _AMOUNT.fullmatch(compact) else None


def parse_number(text: str, most: int) -> int | None:
    """The whole number from 0 to `most`, with no more digits than `most` has; null for any other text."""
    is_number = text.isascii() and text.isdigit() and len(text) <= len(str(most))
    return int(text) if is_number and int(text) <= most else None


def without_spaces(form: Form, name: str, before: Form, is_valid: Callable[[str], bool]) -> Form:
    """The form with a field's changed number without its spaces, if it is valid then."""
    digits = form.text(name).replace(" ", "")
    if form.text(name) == before.text(name) or not is_valid(digits):
        return form
    return Form((each, digits if each == name else text) for each, text in form.multi_items())


def messages_of(error: DomainError) -> tuple[Mapping[str, str], Mapping[str, FieldWarning]]:
    """The error messages by field, with `form` for one about the form as a whole, and the warnings by field."""
    warnings: Mapping[str, FieldWarning] = error.warnings if isinstance(error, FormError) else {}
    errors = {each.field.partition("[")[0]: each.message for each in reversed(error.errors)}
    return errors or ({} if warnings else {"form": error.detail}), warnings
