"""Path, query string and body become what a handler's signature names."""

import re
from collections.abc import Callable, Mapping
from datetime import datetime
from decimal import Decimal
from functools import cache
from types import NoneType, UnionType
from typing import Annotated, Any, Generic, Literal, NewType, TypeVar, Union, get_args, get_origin
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec
from msgspec import Struct, UnsetType

from plankeeper.http.errors import FieldError, Invalid, Refusal
from plankeeper.http.schemas import UUID_PATTERN, ListQuery, Query, checked
from plankeeper.http.validation import known_fields, shaped

S = TypeVar("S", bound=Struct)

MAX_BODY = 1024 * 1024
MAX_DEPTH = 32

# The id of a resource whose ids the contract types as plain strings: what is no UUID is simply not found.
LooseId = NewType("LooseId", UUID)

_NOBODY = UUID(int=0)
_UUID = re.compile(UUID_PATTERN)
_NUMBER = re.compile("-?[0-9]{1,40}")
_DECIMAL = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


def uuid_of(text: str) -> UUID | None:
    """A UUID in either case, with its hyphens; null for anything else."""
    return UUID(text) if _UUID.fullmatch(text) else None


def path_id(name: str, kind: Any, text: str) -> UUID | int:
    """A path's id as the handler wants it; raises Invalid naming it."""
    if kind is int:
        if not _NUMBER.fullmatch(text):
            raise Invalid(FieldError(name, "must be a whole number"))
        # Beyond a bigint there is no row: 0 is no row's id either.
        return int(text) if abs(int(text)) < 2**63 else 0
    found = uuid_of(text)
    if kind is LooseId:
        return found or _NOBODY
    if found is None:
        raise Invalid(FieldError(name, "must be a UUID with its hyphens"))
    return found


def parse_query(shape: type[Query] | None, query_string: bytes) -> Query | None:
    """The query parameters; raises Invalid naming every one that is unknown, empty, repeated or wrong."""
    if not query_string:
        return shape() if shape else None
    values, faults = _parameters(shape, query_string)
    parsed, wrong = shaped(shape or Query, values)
    if isinstance(parsed, ListQuery) and parsed.after is not msgspec.UNSET and parsed.offset:
        wrong = [FieldError("offset", "must be 0 or absent together with `after`")]
    if faults or wrong or parsed is None:
        named = {fault.field for fault in faults}
        raise Invalid(*faults, *(fault for fault in wrong if fault.field not in named))
    return parsed if shape else None


def _parameters(shape: type[Query] | None, query_string: bytes) -> tuple[dict[str, Any], list[FieldError]]:
    try:
        pairs = parse_qsl(
            query_string.decode(), keep_blank_values=True, errors="strict", max_num_fields=100
        )  # fmt: skip
    except ValueError:
        raise Invalid(FieldError("query", "must be percent-encoded UTF-8 of at most 100 parameters")) from None
    kinds = _kinds(shape or Query)
    values: dict[str, Any] = {}
    faults: list[FieldError] = []
    for name, text in pairs:
        if name in values:
            faults.append(FieldError(name, "must not be repeated"))
        elif name in kinds and not text:
            faults.append(FieldError(name, "must not be empty"))
        values[name] = from_text(kinds.get(name, str), text)
    return values, faults


@cache
def _kinds(shape: type[Query]) -> Mapping[str, type[Any]]:
    """What the text of each parameter is turned into."""
    return {name: plain_type(field.type) for name, field in known_fields(shape).items()}


def _number(text: str) -> int | str:
    return int(text) if _NUMBER.fullmatch(text) else text


def _boolean(text: str) -> bool | str:
    return {"true": True, "false": False}.get(text, text)


def _decimal(text: str) -> Decimal | str:
    return Decimal(text) if _DECIMAL.fullmatch(text) else text


def _moment(text: str) -> str:
    # A `+` that was not percent-encoded arrives as a space; in a datetime it can only have been a plus.
    return text.replace(" ", "+")


def _plain(text: str) -> str:
    return text


_FROM_TEXT: Mapping[type, Callable[[str], Any]] = {
    int: _number, bool: _boolean, Decimal: _decimal, datetime: _moment, list: lambda text: text.split(","), str: _plain,
}  # fmt: skip


def from_text(kind: type, text: str) -> Any:
    """A text as a value of a plain type; what is none stays a text, for the validation to refuse."""
    return _FROM_TEXT.get(kind, _plain)(text)


def plain_type(annotation: Any) -> type[Any]:
    """The type that stands inside unions, Annotated and Literal: what a text must be turned into."""
    origin = get_origin(annotation)
    if origin is Annotated:
        return plain_type(get_args(annotation)[0])
    if origin is Literal:
        choice: object = get_args(annotation)[0]
        return type(choice)
    if origin in (Union, UnionType):
        return next(plain_type(each) for each in get_args(annotation) if each not in (NoneType, UnsetType))
    return origin or annotation


class BodyParser(Generic[S]):
    """Turns the bytes of a body into a struct: one typed decode, and only a body that fails it is looked at closely."""

    def __init__(self, shape: type[S]) -> None:
        self._shape = shape
        self._decoder = msgspec.json.Decoder(shape, dec_hook=checked)

    def parse(self, body: bytes, own_id: str | None = None) -> S:
        """The struct; raises Refusal `invalid_json`, or Invalid naming every fault.

        An `id` equal to `own_id` is let pass, so that a client can put back what it got.
        """
        try:
            if b"\\u0000" not in body:
                return self._decoder.decode(body)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            pass
        document = json_object(body)
        if own_id is not None and "id" in document and str(document["id"]).lower() == own_id.lower():
            del document["id"]
        parsed, faults = shaped(self._shape, document)
        if parsed is None:
            raise Invalid(*faults)
        return parsed


def json_object(body: bytes) -> dict[str, Any]:
    """A JSON object with exact numbers; raises Refusal `invalid_json` saying what there is instead."""
    if not body:
        raise Refusal("invalid_json", "There is no body; it must be a JSON object.")
    try:
        document: Any = _exact.decode(body)
    except RecursionError:
        raise Refusal("invalid_json", _TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = "it is not UTF-8" if isinstance(error, UnicodeDecodeError) else str(error).lower()
        raise Refusal("invalid_json", f"Not valid JSON: {reason}.") from None
    if depth(document) > MAX_DEPTH:
        raise Refusal("invalid_json", _TOO_DEEP)
    if not isinstance(document, dict):
        raise Refusal("invalid_json", "A JSON object is needed, not another value.")
    return document  # pyright: ignore[reportUnknownVariableType]


_exact = msgspec.json.Decoder(float_hook=Decimal)
_TOO_DEEP = f"Nested more than {MAX_DEPTH} levels deep."


def depth(document: Any) -> int:
    """How many lists and objects stand within one another; a plain value has 0."""
    deepest = 0
    level: list[Any] = _containers([document])
    while level:
        deepest += 1
        level = [inner for each in level for inner in _containers(each)]
    return deepest


def _containers(within: Any) -> list[Any]:
    members: list[Any] = list(within.values() if isinstance(within, dict) else within)  # pyright: ignore[reportUnknownArgumentType]
    return [each for each in members if isinstance(each, dict | list)]


def first_id_at(moment: datetime) -> UUID:
    """The lowest UUID of version 7 of a moment: all that were made from then on are higher."""
    milliseconds = max(0, int(moment.timestamp() * 1000) - 1)
    return UUID(int=milliseconds << 80)
