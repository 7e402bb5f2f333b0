"""Parse path, query string and body into the types of a handler's parameters."""

import re
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime
from decimal import Decimal, InvalidOperation
from functools import cache, lru_cache
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec
from msgspec import Struct, UnsetType
from msgspec.structs import replace

from plankeeper.http.bulk import valid_parts
from plankeeper.http.errors import ApiError, FieldError, ValidationError, invalid_parameter
from plankeeper.http.pagination import ListQuery, SortableQuery
from plankeeper.http.read_only_fields import remove_read_only_fields
from plankeeper.http.schemas import UUID_PATTERN, Query, decode_custom_type
from plankeeper.http.validation import known_fields, validate

S = TypeVar("S", bound=Struct)

MAX_BODY_BYTES = 1024 * 1024
MAX_DEPTH = 32
BODY = "body"  # the field of an error of the whole body
# Of a body that isn't valid: looking at each value takes about a microsecond.
MAX_VALUES = 25_000
# Of any body. They are counted in its JSON text, before it is decoded.
MAX_FIELDS = 100_000
MAX_CONTAINERS = 100_000  # lists and objects
MAX_SEPARATORS = 250_000
MAX_SEARCHED = 2**18  # bytes
MAX_REMEMBERED_QUERY = 100  # bytes
MAX_REMEMBERED_QUERIES = 1000

# The id of a resource whose ids the contract types as plain strings: anything but a UUID is not found.
UuidOr404 = NewType("UuidOr404", UUID)

_NIL_UUID = UUID(int=0)
_UUID = re.compile(UUID_PATTERN)
_INTEGER = re.compile("-?[0-9]{1,40}")
_PATH_INTEGER = re.compile("-?[0-9]+")
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


def parse_uuid(text: str) -> UUID | None:
    """A UUID with hyphens, in either case, or None."""
    return msgspec.convert(text, UUID) if _UUID.fullmatch(text) else None  # faster than UUID(text)


def parse_path_id(name: str, kind: Any, text: str) -> UUID | int:
    """An id of the path as the handler's type; raises ValidationError."""
    if kind is int:
        if not _PATH_INTEGER.fullmatch(text):
            raise ValidationError(FieldError(name, "must be a whole number", "invalid_format", location="path"))
        # No row has an id beyond bigint, and none has 0.
        return int(text) if len(text) < 19 else 0
    uuid = parse_uuid(text)
    if kind is UuidOr404:
        return uuid or _NIL_UUID
    if uuid is None:
        raise ValidationError(FieldError(name, "must be a UUID with hyphens", "invalid_format", location="path"))
    return uuid


def parse_query(query_type: type[Query] | None, query_string: bytes) -> Query | None:
    """The query parameters; raises ValidationError with all that are unknown, empty, repeated or invalid."""
    if not query_string:
        return query_type() if query_type else None
    if len(query_string) <= MAX_REMEMBERED_QUERY:
        return _parse_and_remember(query_type, query_string)
    return _parse_query(query_type, query_string)


def _parse_query(query_type: type[Query] | None, query_string: bytes) -> Query | None:
    values, errors = _parameters(query_type, query_string)
    parsed, type_errors = validate(query_type or Query, values)
    # Every value of a query is text.
    type_errors = [
        replace(each, message=each.message.removesuffix(", not a string"), location="query") for each in type_errors
    ]
    reported = {each.field for each in errors}
    errors += [each for each in type_errors if each.field.partition("[")[0] not in reported]
    if errors or parsed is None:
        raise ValidationError(*errors)
    if isinstance(parsed, ListQuery) and parsed.after is not msgspec.UNSET and parsed.offset:
        raise invalid_parameter("offset", "must be 0 or absent if `after` is set", "inconsistent")
    if isinstance(parsed, SortableQuery) and parsed.has_cursor_of_another_order:
        message = "must be 0, or the `next_cursor` of a page with the same `sort`"
        raise invalid_parameter("after", message, "inconsistent")
    return parsed if query_type else None


# Clients send the same few queries again and again, such as `limit=100`.
_parse_and_remember = lru_cache(MAX_REMEMBERED_QUERIES)(_parse_query)


def _parameters(query_type: type[Query] | None, query_string: bytes) -> tuple[dict[str, Any], list[FieldError]]:
    try:
        pairs = parse_qsl(query_string.decode(), keep_blank_values=True, errors="strict", max_num_fields=100)
    except ValueError:
        message = "must be percent-encoded UTF-8 of at most 100 parameters"
        raise invalid_parameter("query", message, "invalid_format") from None
    parameter_types = _parameter_types(query_type or Query)
    values: dict[str, Any] = {}
    errors: list[FieldError] = []
    for name, text in pairs:
        kind = parameter_types.get(name, str)
        if name in values and name in parameter_types:
            errors.append(FieldError(name, "must not be repeated", "duplicate", location="query"))
        elif name in parameter_types and not text:
            errors.append(FieldError(name, "must not be empty", "too_short", location="query"))
        elif kind is Decimal and not _DECIMAL.fullmatch(text):  # msgspec takes other forms, such as 1e3
            errors.append(FieldError(name, "must be a number, such as 12.50", "invalid_format", location="query"))
        values[name] = coercion(kind)(text)
    return values, errors


@cache
def _parameter_types(query_type: type[Query]) -> Mapping[str, type[Any]]:
    """The type of each parameter."""
    return {name: unwrap_type(field.type) for name, field in known_fields(query_type).items()}


def _coerce_integer(text: str) -> int | str:
    return int(text) if _INTEGER.fullmatch(text) else text


def _coerce_boolean(text: str) -> bool | str:
    return _BOOLEANS.get(text, text)


def _coerce_decimal(text: str) -> Decimal | str:
    return Decimal(text) if _DECIMAL.fullmatch(text) else text


def _coerce_datetime(text: str) -> str:
    # An unencoded `+` arrives as a space, which a datetime cannot contain.
    return text.replace(" ", "+")


def _keep_text(text: str) -> str:
    return text


_BOOLEANS = {"true": True, "false": False}
_COERCIONS: Mapping[type, Callable[[str], Any]] = {
    int: _coerce_integer,
    bool: _coerce_boolean,
    Decimal: _coerce_decimal,
    datetime: _coerce_datetime,
    list: lambda text: [part.strip(" ") for part in text.split(",")],
    str: _keep_text,
}


def coercion(kind: type) -> Callable[[str], Any]:
    """The function that converts a text to a plain type. It returns invalid text unchanged; validation rejects it."""
    return _COERCIONS.get(kind, _keep_text)


def unwrap_type(annotation: Any) -> type[Any]:
    """The plain type within unions, Annotated and Literal."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return unwrap_type(get_args(annotation)[0])
    if origin is Literal:
        choice: object = get_args(annotation)[0]
        return type(choice)
    if origin in (Union, UnionType):
        return next(unwrap_type(each) for each in get_args(annotation) if each not in (NoneType, UnsetType))
    return origin or annotation


class BodyParser(Generic[S]):
    """Turns the bytes of a body into a struct: one typed decode, and only a body that fails it is looked at closely.

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
        """The struct; raises ApiError `invalid_json`, or ValidationError with all errors.

        Raises InvalidItemsError if only items of a bulk body are invalid. `path_id` is the id of the resource to
        update. With `suggests`, the errors of unknown fields name similar ones.
        """
        body = body.removeprefix(_BYTE_ORDER_MARK)
        _require_few_values(body)
        has_nul = b"\\u0000" in body
        try:
            if not has_nul:
                return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, InvalidOperation):
            pass
        document = parse_json_object(body)
        id_errors = remove_read_only_fields(document, self._read_only, path_id)
        document = _with_whole_numbers(document)
        parsed, errors = validate(self._struct_type, document, suggests=suggests, has_nul=has_nul)
        if parsed is not None and not id_errors:
            return parsed
        if self._item_type and all(each.field.startswith("items[") for each in errors):
            raise InvalidItemsError(errors, valid_parts(self._item_type, document["items"], errors))
        raise ValidationError(*id_errors, *(replace(each, field=each.field or BODY) for each in errors))


class InvalidItemsError(ValidationError):
    """Items of a bulk body are invalid. `items` have their valid fields."""

    def __init__(self, errors: Sequence[FieldError], items: Sequence[Struct]) -> None:
        super().__init__(*errors)
        self.items = items


def _require_few_values(body: bytes) -> None:
    """Raise ValidationError for a text that decoding would take long for."""
    if len(body) <= MAX_SEPARATORS or not _has_many_values(body):
        return
    # A quote before a colon ends a name or begins a text, unless it is within a text.
    if body.count(b'":') - body.count(rb"\":") > MAX_FIELDS:
        raise _too_many_values()
    # What is within texts doesn't count. They stand between quotes that aren't escaped.
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
    """A JSON object with exact numbers; raises ApiError `invalid_json`."""
    if not body:
        raise ApiError("invalid_json", "The body is empty; it must be a JSON object.")
    try:
        document: Any = _exact_decoder.decode(body)
    except RecursionError:
        raise ApiError("invalid_json", _TOO_DEEP) from None
    except InvalidOperation:
        raise ApiError("invalid_json", "The exponent of a number is out of range.") from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise ApiError("invalid_json", f"Not valid JSON: {_decoding_error(error, body)}.") from None
    if nesting_depth(document) > MAX_DEPTH:
        raise ApiError("invalid_json", _TOO_DEEP)
    if not isinstance(document, dict):
        raise ApiError("invalid_json", "The body must be a JSON object.")
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
        return {name: _with_whole_numbers(member) for name, member in value.items()}  # pyright: ignore[reportUnknownVariableType]
    if isinstance(value, list):
        return [_with_whole_numbers(item) for item in value]  # pyright: ignore[reportUnknownVariableType]
    is_whole = isinstance(value, Decimal) and value.is_finite() and abs(value) < 2**63 and value == int(value)
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

    Raises ValidationError if it has more than MAX_VALUES values, without looking at them.
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
    members: list[Any] = list(container.values() if isinstance(container, dict) else container)  # pyright: ignore[reportUnknownArgumentType]
    return [each for each in members if isinstance(each, dict | list)]


UUID7_PER_SECOND = 1000 << 80  # the difference of two UUIDs of version 7 that were generated a second apart


def uuid7_lower_bound(at: datetime) -> UUID:
    """The lowest UUID of version 7 at a time: ids generated at or after it are higher."""
    milliseconds = max(0, int(at.timestamp() * 1000) - 1)
    return UUID(int=milliseconds << 80)


def uuid7_upper_bound(at: datetime) -> UUID:
    """A UUID of version 7 a second after a time: ids generated before the time are lower."""
    return UUID(int=uuid7_lower_bound(at).int + UUID7_PER_SECOND)
