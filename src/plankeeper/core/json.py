"""The API's JSON: exact numbers, and validated string types such as Email as plain strings."""

import re
from collections.abc import Sequence
from decimal import Decimal, InvalidOperation
from typing import Any, Generic, TypeVar
from uuid import UUID

import msgspec
from msgspec import Struct
from msgspec.structs import replace

from plankeeper.core.bulk import valid_parts
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.fields import decode_custom_type
from plankeeper.core.read_only_fields import remove_read_only_fields
from plankeeper.core.validation import is_any_out_of_range, validate

_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)

encode = _encoder.encode
encode_lines = _encoder.encode_lines


def to_json(value: object) -> str:
    return encode(value).decode()


S = TypeVar("S", bound=Struct)
MAX_DEPTH = 32
BODY = "body"  # the field of an error of the whole body
# Of an invalid body: validating each value takes about a microsecond.
MAX_VALUES = 25_000
# Of any body. They are counted in its JSON text, before it is decoded.
MAX_FIELDS = 100_000
MAX_CONTAINERS = 100_000  # lists and objects
MAX_SEPARATORS = 250_000
MAX_SEARCHED = 2**18  # bytes


class BodyParser(Generic[S]):
    """Turns the bytes of a body into a struct: one typed decode. Only if it fails, each field is validated by itself.

    `read_only` are fields that the body, or an item of a bulk body, can have and that are ignored.
    """

    def __init__(
        self,
        struct_type: type[S],
        read_only: frozenset[str] = frozenset(),
        item_type: type[Struct] | None = None,
    ) -> None:
        self._struct_type = struct_type
        self._read_only = read_only
        self._item_type = item_type
        self._decoder = msgspec.json.Decoder(struct_type, dec_hook=decode_custom_type)

    def parse(self, body: bytes, path_id: UUID | int | None = None, *, suggests: bool = True) -> S:
        """The struct; raises DomainError `invalid_json`, or ValidationError with all errors.

        Raises InvalidItemsError if a bulk body is invalid and has a list of items. `path_id` is the id of the resource
        to update. With `suggests`, the errors of unknown fields name similar ones.
        """
        body = body.removeprefix(_BYTE_ORDER_MARK)
        _require_few_values(body)
        has_nul = b"\\u0000" in body
        try:
            if not has_nul:
                parsed = self._decoder.decode(body)
                if not is_any_out_of_range((parsed,)):
                    return parsed
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidOperation):
            pass
        document = parse_json_object(body)
        id_errors = remove_read_only_fields(document, self._read_only, path_id)
        document = _with_whole_numbers(document)
        parsed, errors = validate(self._struct_type, document, suggests=suggests, has_nul=has_nul)
        if parsed is not None and not id_errors:
            return parsed
        errors = [replace(each, field=each.field or BODY) for each in errors]
        if self._item_type and not any(each.field in ("items", BODY) for each in errors):
            raise InvalidItemsError(errors, valid_parts(self._item_type, document["items"], errors))
        raise ValidationError(*id_errors, *errors)


class InvalidItemsError(ValidationError):
    """A bulk body with a list of items is invalid. `items` have their valid fields."""

    def __init__(self, errors: Sequence[FieldError], items: Sequence[Struct]) -> None:
        super().__init__(*errors)
        self.items = items


def _require_few_values(body: bytes) -> None:
    """Raise ValidationError for a text with too many values, because decoding it would take too long."""
    if len(body) <= MAX_SEPARATORS or not _has_many_values(body):
        return
    # A quote before a colon ends a name or begins a text, unless it is within a text.
    if body.count(b'":') - body.count(rb"\":") > MAX_FIELDS:
        raise _too_many_values()
    # Strings are skipped. They are between quotes that aren't escaped.
    body = body.replace(rb"\\", b"").replace(rb"\"", b"")
    if body.count(b'"') > 2 * MAX_SEPARATORS or _has_many_values(b'"'.join(body.split(b'"')[::2])):
        raise _too_many_values()


def _has_many_values(text: bytes) -> bool:
    return (
        text.count(b",") > MAX_SEPARATORS
        or text.count(b'":') > MAX_FIELDS
        or text.count(b"[") + text.count(b"{") > MAX_CONTAINERS
    )


def _too_many_values() -> ValidationError:
    return ValidationError(FieldError(BODY, f"has more than {MAX_VALUES:,} values", "too_long"))


def parse_json_object(body: bytes) -> dict[str, Any]:
    """A JSON object with exact numbers; raises DomainError `invalid_json`."""
    if not body:
        raise DomainError("invalid_json", "The body is empty; it must be a JSON object.")
    try:
        document: Any = _exact_decoder.decode(body)
    except RecursionError:
        raise DomainError("invalid_json", _TOO_DEEP) from None
    except InvalidOperation:
        raise DomainError("invalid_json", "The exponent of a number is out of range.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DomainError("invalid_json", f"Not valid JSON: {_decoding_error(error, body)}.") from None
    if nesting_depth(document) > MAX_DEPTH:
        raise DomainError("invalid_json", _TOO_DEEP)
    if not isinstance(document, dict):
        raise DomainError("invalid_json", "The body must be a JSON object.")
    return document  # pyright: ignore[reportUnknownVariableType]


def canonical_json(body: bytes) -> bytes:
    """A JSON text without white space and with sorted fields, or the body itself if it isn't JSON."""
    try:
        return _canonical_encoder.encode(_exact_decoder.decode(body.removeprefix(_BYTE_ORDER_MARK)))
    except (msgspec.MsgspecError, UnicodeError, RecursionError, InvalidOperation):
        return body


def _decoding_error(error: Exception, body: bytes) -> str:
    if isinstance(error, UnicodeDecodeError):
        return "it is not UTF-8"
    # msgspec takes it for the end of the body. The search is slow, so it ends before the end of a long body.
    may_have_one = "truncated" in str(error) or "surrogate" in str(error)
    if may_have_one and (surrogate := _LONE_SURROGATE.search(body, 0, MAX_SEARCHED)):
        return f"the escape {(surrogate[1] or surrogate[2]).decode()} is half of a surrogate pair"
    found = _JSON_ERROR.fullmatch(str(error))
    if found is None:
        return "it ends too early"  # "Input data was truncated"
    before = body[: int(found["at"])]
    line, column = before.count(b"\n") + 1, len(before) - before.rfind(b"\n")
    return f"{found['what']} at line {line}, column {column}"


def _with_whole_numbers(value: Any) -> Any:
    """A document with numbers such as 1.0 as integers, which they are in JSON Schema."""
    if isinstance(value, dict):
        return {name: _with_whole_numbers(field) for name, field in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    is_whole = isinstance(value, Decimal) and value.is_finite() and value.copy_abs() < 2**63 and value == int(value)
    return int(value) if is_whole else value


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
# A high surrogate without a low one, or a low one without a high one, after an even number of backslashes.
_LONE_SURROGATE = re.compile(
    rb"(?<!\\)(?:\\\\)*(\\u[dD][89abAB][0-9a-fA-F]{2})(?!\\u[dD][c-fC-F])"
    rb"|(?<!\\u[dD][89abAB][0-9a-fA-F]{2})(?<!\\)(?:\\\\)*(\\u[dD][c-fC-F][0-9a-fA-F]{2})"
)
# The text of msgspec: tests/unit/http/test_json_errors.py has examples.
_JSON_ERROR = re.compile(r"JSON is malformed: (?P<what>.*) \(byte (?P<at>\d+)\)")
_canonical_encoder = msgspec.json.Encoder(decimal_format="number", order="sorted")
_exact_decoder = msgspec.json.Decoder(float_hook=Decimal)
_TOO_DEEP = f"The body is nested more than {MAX_DEPTH} levels deep."


def nesting_depth(document: Any) -> int:
    """The number of nested lists and objects of a document, 0 for a plain value.

    Raises ValidationError if it has more than MAX_VALUES values, before it validates them.
    """
    depth = values = 0
    level: list[Any] = _containers([document])
    while level:
        depth += 1
        values += sum(map(len, level))
        if values > MAX_VALUES:
            raise _too_many_values()
        level = [inner for each in level for inner in _containers(each)]
    return depth


def _containers(container: Any) -> list[Any]:
    values: list[Any] = list(container.values() if isinstance(container, dict) else container)  # pyright: ignore[reportUnknownArgumentType]
    return [each for each in values if isinstance(each, dict | list)]
