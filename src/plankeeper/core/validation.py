"""Convert decoded JSON and query parameters to structs, and find all errors by field.

msgspec decides whether a value is valid. The rules below find each error of an invalid value: msgspec reports only
the first one, and only as a text.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import MAXYEAR, MINYEAR, UTC, date, datetime
from decimal import Decimal
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import islice
from operator import attrgetter
from types import NoneType, UnionType
from typing import Annotated, Any, Literal, NamedTuple, TypeVar, Union, cast, get_args, get_origin
from uuid import UUID

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import FieldInfo, astuple, fields

from plankeeper.core.errors import FieldError, FieldErrorSummary, ValidationError
from plankeeper.core.fields import CUSTOM_TYPES, InvalidValueError, Query, decode_custom_type

S = TypeVar("S", bound=Struct)

# Limits the cost of an invalid body: a suggestion takes up to 200 µs.
MAX_SUGGESTIONS = 20
MAX_UNKNOWN_FIELDS = 200
SIMILARITY = 0.75  # of the name of an unknown field to the one that is suggested

_TYPE_NAMES: Mapping[type, str] = {
    str: "a string",
    int: "a whole number",
    float: "a number",
    Decimal: "a number",
    bool: "true or false",
    list: "a list",
    dict: "an object",
    NoneType: "null",
    date: "a date, YYYY-MM-DD",
    datetime: "a datetime with a time zone, YYYY-MM-DDTHH:MM:SSZ",
    UUID: "a UUID with hyphens",
}
# Of values that can be of subclasses. A bool is an int, too.
_BASE_TYPES: tuple[type[Any], ...] = (bool, int, str, list, dict)
# Fields that clients expect, and where they have to send them instead.
_ELSEWHERE = {"plan_manager_id": "the header X-Plan-Manager-Id says it"}

# Limits of the errors in the request log.
MAX_LOGGED_ERRORS = 20
MAX_LOGGED_FIELD_LENGTH = 100  # characters
HIDDEN_NAME = "…"
_BULK_ITEM = re.compile(r"items\[[0-9]{1,4}\]\.")
_AMOUNT_LIMIT = Decimal(10) ** 12
MAX_DECIMAL_PLACES = 10  # of numbers that aren't in dollars and cents


def validate(
    struct_type: type[S], values: Mapping[str, Any], *, suggests: bool = True, has_nul: bool = True
) -> tuple[S | None, list[FieldError]]:
    """`values` as a `struct_type`, or all errors.

    An object with too many unknown fields has one error without a field. With `suggests`, the errors of a few unknown
    fields name similar ones. Without `has_nul`, no text contains U+0000: searching all values for it takes longest.
    """
    parsed = _convert(struct_type, values, has_nul=has_nul)
    if parsed is not None:
        return parsed, []
    search = _Search(MAX_SUGGESTIONS if suggests else 0, is_query=issubclass(struct_type, Query))
    errors = list(search.in_struct(struct_type, values, ""))
    if errors:
        return None, errors
    return msgspec.convert(dict(values), struct_type, dec_hook=decode_custom_type), []


def validate_struct(struct_type: type[S], values: Mapping[str, Any]) -> S:
    """`values` as a `struct_type`; raises ValidationError with all errors."""
    parsed, errors = validate(struct_type, values)
    if parsed is None:
        raise ValidationError(*errors)
    return parsed


def _convert(struct_type: type[S], values: Mapping[str, Any], *, has_nul: bool) -> S | None:
    if has_nul and _contains_nul(values):
        return None
    try:
        parsed = msgspec.convert(values, struct_type, dec_hook=decode_custom_type)
    except msgspec.ValidationError:
        return None
    if isinstance(parsed, Query):
        return None if any(map(_is_beyond_the_calendar, astuple(parsed))) else parsed
    return None if is_any_out_of_range((parsed,)) else parsed


def is_any_out_of_range(values: Iterable[Any]) -> bool:
    """Whether any of these values, or a value within them, is a number or a datetime for which arithmetic can fail.

    Numbers in the range can be rounded to ten decimal places in 28 digits, and datetimes are in the calendar in every
    time zone. This function is in the path of every request with a body, so it calls itself only for objects and lists.
    """
    for value in values:
        kind: type = type(value)  # pyright: ignore[reportUnknownVariableType]
        is_out = False
        if kind is Decimal:
            is_out = not (_MIN_EXPONENT < value.adjusted() < _MAX_EXPONENT and value.is_finite())
        elif kind is datetime:
            is_out = not MINYEAR < value.year < MAXYEAR
        elif kind is list:
            is_out = is_any_out_of_range(value)
        elif kind is dict:
            is_out = is_any_out_of_range(value.values())
        elif read := _ranged_values(kind):  # faster than isinstance
            is_out = is_any_out_of_range(read(value))
        if is_out:
            return True
    return False


_MIN_EXPONENT, _MAX_EXPONENT = -100, 18


def _is_beyond_the_calendar(value: Any) -> bool:
    """Whether a datetime in UTC is beyond the calendar. Filters need no more: they aren't shown in a time zone."""
    try:
        if isinstance(value, datetime):
            value.astimezone(UTC)
    except OverflowError:
        return True
    return False


@cache
def _ranged_values(kind: type[Any]) -> Callable[[Any], tuple[Any, ...]] | None:
    """The function that reads a struct's fields that can be, or contain, numbers and datetimes; None without any."""
    names = _ranged_names(kind) if is_struct(kind) else ()
    if not names:
        return None
    read = attrgetter(*names)
    return read if len(names) > 1 else lambda value: (read(value),)


def _ranged_names(struct_type: type[Struct]) -> tuple[str, ...]:
    return tuple(each.name for each in known_fields(struct_type).values() if _has_range(each.type))


def _has_range(annotation: Any) -> bool:
    if is_struct(annotation):
        return bool(_ranged_names(annotation))
    return annotation in (Decimal, datetime) or any(map(_has_range, get_args(annotation)))


@cache
def known_fields(struct_type: type[Struct]) -> Mapping[str, FieldInfo]:
    """The fields of a struct by name. Cached, because msgspec resolves the annotations on each call."""
    return {field.encode_name: field for field in fields(struct_type)}


def _contains_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_contains_nul(key) or _contains_nul(inner) for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
    return isinstance(value, list) and any(_contains_nul(inner) for inner in value)  # pyright: ignore[reportUnknownVariableType]


class _Rule(NamedTuple):
    """The requirements of one choice of a type."""

    kind: type[Any]  # a key of `_TYPE_NAMES`, a struct or a custom type
    metas: tuple[Meta, ...] = ()
    allowed: tuple[Any, ...] = ()  # the values of a Literal
    item: Any = None  # the type of a list's items or of an object's values

    @property
    def json_types(self) -> tuple[type, ...]:
        """The types of decoded JSON that can be valid."""
        if self.kind is Decimal:
            return (int, float, Decimal, str)
        if self.kind is float:
            return (int, float, Decimal)
        if self.kind is Any:
            return (bool, int, Decimal, float, str, list, dict, NoneType)
        if self.kind in (date, datetime, UUID, *CUSTOM_TYPES):
            return (str,)
        return (dict,) if is_struct(self.kind) else (self.kind,)

    @property
    def name(self) -> str:
        if self.allowed:
            return f"one of {', '.join(map(str, self.allowed))}"
        if is_struct(self.kind):
            return "an object"
        return _TYPE_NAMES.get(self.kind, "a string")


@cache
def _rules(annotation: Any, metas: tuple[Meta, ...] = ()) -> tuple[_Rule, ...]:
    """The choices of a type."""
    origin, arguments = get_origin(annotation), get_args(annotation)
    if origin is Annotated:
        return _rules(arguments[0], metas + tuple(each for each in arguments[1:] if isinstance(each, Meta)))
    if origin in (Union, UnionType):
        return tuple(rule for each in arguments if each is not UnsetType for rule in _rules(each, metas))
    if origin is Literal:
        return (_Rule(type(arguments[0]), metas, allowed=arguments),)
    if origin in (list, dict):
        return (_Rule(origin, metas, item=arguments[-1]),)
    return (_Rule(annotation, metas),)


class _Search:
    """Finds the errors of a value."""

    def __init__(self, suggestions: int, *, is_query: bool) -> None:
        self._suggestions = suggestions
        self._is_query = is_query

    def in_struct(self, struct_type: type[Struct], values: Mapping[str, Any], path: str) -> Iterator[FieldError]:
        known = known_fields(struct_type)
        if struct_type.__struct_config__.forbid_unknown_fields:
            unknown = list(islice((name for name in values if name not in known), MAX_UNKNOWN_FIELDS + 1))
            if len(unknown) > MAX_UNKNOWN_FIELDS:
                message = f"has {len(values):,} fields, of which more than {MAX_UNKNOWN_FIELDS} are unknown"
                yield FieldError(path, message, "unknown")
                return
            for name in unknown:
                yield FieldError(_join(path, _printable(name)), self._unknown_message(name, struct_type), "unknown")
        for name, field in known.items():
            if name in values:
                yield from self.in_value(field.type, values[name], _join(path, name))
            elif field.required:
                yield FieldError(_join(path, name), "is required", "required")

    def _unknown_message(self, name: str, struct_type: type[Struct]) -> str:
        known = known_fields(struct_type)
        if not known:
            return f"is unknown; no {'parameters' if issubclass(struct_type, Query) else 'fields'} are supported"
        if name in _ELSEWHERE:
            return f"is unknown; {_ELSEWHERE[name]}"
        self._suggestions -= 1
        similar = _similar_field(name, struct_type) if self._suggestions >= 0 else None
        return f"is unknown; did you mean {similar}?" if similar else f"is unknown; expected one of {', '.join(known)}"

    def in_value(self, annotation: Any, value: Any, path: str) -> Iterator[FieldError]:
        """The errors of a value; of a union, those with the first choice for values of its type."""
        rules = _rules(annotation)
        fitting = [each for each in rules if _json_type(value) in each.json_types]
        if not fitting:
            yield _type_error(rules, value, path)
            return
        errors = [list(self._in_choice(each, value, path)) for each in fitting]
        if all(errors):
            yield from errors[0]

    def _in_choice(self, rule: _Rule, value: Any, path: str) -> Iterator[FieldError]:
        if is_struct(rule.kind):
            yield from self.in_struct(rule.kind, value, path)
        elif rule.kind is dict:
            for name, each in value.items():
                yield from self.in_value(rule.item, each, _join(path, _printable(name)))
        elif error := _find_error(rule, value, path, is_query=self._is_query):
            yield error
        elif rule.kind is list:
            for index, each in enumerate(value):
                yield from self.in_value(rule.item, each, f"{path}[{index}]")


def summarize(errors: Sequence[FieldError]) -> FieldErrorSummary:
    """The errors for the request log: without messages, and without names that a client has chosen."""
    kept = [(each.location, _logged_field(each), each.code) for each in errors[:MAX_LOGGED_ERRORS]]
    return FieldErrorSummary(len(errors), kept)


def _logged_field(error: FieldError) -> str:
    """The field. The name of an unknown one is hidden, because it can be a person's name, email or number: clients send
    objects whose keys are data. It stays if the message has a suggestion, because then it is a misspelt field.
    """
    is_known = error.code != "unknown" or error.message.endswith((*_ELSEWHERE.values(), "?"))
    if is_known:
        return error.field[:MAX_LOGGED_FIELD_LENGTH]
    item = _BULK_ITEM.match(error.field)
    return f"{item[0] if item else ''}{HIDDEN_NAME}"


def _find_error(  # noqa: PLR0911 - one return for each error
    rule: _Rule, value: Any, path: str, *, is_query: bool
) -> FieldError | None:
    """The error of a value that has the right type of JSON."""
    if isinstance(value, str) and "\0" in value:
        return FieldError(path, "must not contain the character U+0000", "invalid_format")
    if rule.allowed:
        return None if value in rule.allowed else _not_allowed(rule.allowed, f"must be {rule.name}", path)
    if rule.kind in CUSTOM_TYPES:
        try:
            decode_custom_type(rule.kind, value)
        except InvalidValueError as error:
            return FieldError(path, str(error), error.code, allowed=[*error.allowed] or UNSET)
        return None
    if rule.kind in (date, datetime, UUID, Decimal):
        return _format_error(rule, value, path, is_query=is_query)
    for meta in rule.metas:
        if error := _constraint_error(meta, value, path):
            return error
    if isinstance(value, int) and abs(value) >= 2**63:
        return FieldError(path, "must have at most 18 digits", "too_large" if value > 0 else "too_small")
    return None


def _format_error(rule: _Rule, value: Any, path: str, *, is_query: bool) -> FieldError | None:
    try:
        converted: Any = msgspec.convert(value, Annotated[rule.kind, *rule.metas] if rule.metas else rule.kind)
    except msgspec.ValidationError:
        is_text_for_number = rule.kind is Decimal and isinstance(value, str)
        suffix, code = (", not a string", "invalid_type") if is_text_for_number else ("", "invalid_format")
        return FieldError(path, f"must be {rule.name}{suffix}", code)
    if rule.kind is datetime and is_query:
        message = "must be between the years 1 and 9999 in UTC"
        return FieldError(path, message, "invalid_format") if _is_beyond_the_calendar(converted) else None
    if not is_any_out_of_range((converted,)):
        return None
    if rule.kind is Decimal:
        return amount_error(converted, MAX_DECIMAL_PLACES, path)
    return FieldError(path, "must be a datetime in the years 2 to 9998", "invalid_format")


def is_amount(value: Decimal, places: int) -> bool:
    """Whether a number has at most this number of decimal places, without zeros at the end, and 12 digits before."""
    if not value.is_finite() or value.copy_abs() >= _AMOUNT_LIMIT:
        return False
    _, digits, exponent = value.as_tuple()
    excess = -int(exponent) - places
    return excess <= 0 or not any(digits[-excess:])


def amount_error(value: Decimal, places: int, path: str) -> FieldError:
    """The error of a number that isn't an amount."""
    code = "too_large" if value.is_finite() and value.copy_abs() >= _AMOUNT_LIMIT else "invalid_format"
    return FieldError(path, f"must be {describe_amount(places)}", code)


def describe_amount(places: int) -> str:
    return f"a number below 10^12 with at most {places} decimal places"


def _constraint_error(meta: Meta, value: Any, path: str) -> FieldError | None:
    if isinstance(value, str | list):
        size, words = len(value), ("be", "{} character{} long") if isinstance(value, str) else ("have", "{} item{}")  # pyright: ignore[reportUnknownArgumentType]
        if meta.max_length is not None and size > meta.max_length:
            return FieldError(path, f"must {words[0]} at most {_count(words[1], meta.max_length)}", "too_long")
        if meta.min_length is not None and size < meta.min_length:
            return FieldError(path, f"must {words[0]} at least {_count(words[1], meta.min_length)}", "too_short")
    if isinstance(value, str) and meta.pattern and not re.search(meta.pattern, value):
        return FieldError(path, (meta.extra or {})["message"], "invalid_format")
    if isinstance(value, int | float | Decimal):
        if meta.ge is not None and value < meta.ge:
            return FieldError(path, f"must be at least {meta.ge}", "too_small")
        if meta.le is not None and value > meta.le:
            message = (meta.extra or {}).get("message") or f"must be at most {meta.le}"
            return FieldError(path, message, "too_large")
    return None


def _count(words: str, number: int) -> str:
    return words.format(number, "" if number == 1 else "s")


def _type_error(rules: tuple[_Rule, ...], value: Any, path: str) -> FieldError:
    names = dict.fromkeys(each.name for each in rules)
    message = f"must be {' or '.join(names)}, not {_TYPE_NAMES[_json_type(value)]}"
    if allowed := [each for rule in rules for each in rule.allowed]:
        return _not_allowed(allowed, message, path)
    return FieldError(path, message, "invalid_type")


def _not_allowed(allowed: Any, message: str, path: str) -> FieldError:
    return FieldError(path, message, "not_allowed", allowed=[*allowed])


def _json_type(value: Any) -> type[Any]:
    kind = cast("type[Any]", type(value))  # pyright: ignore[reportUnknownArgumentType]
    return next((each for each in _BASE_TYPES if issubclass(kind, each)), kind)


def _join(path: str, name: str) -> str:
    return f"{path}.{name}" if path else name


def _printable(name: str) -> str:
    return name if name.isprintable() and len(name) <= 100 else name[:100].encode("unicode_escape").decode()


@lru_cache(maxsize=1000)
def _similar_field(name: str, struct_type: type[Struct]) -> str | None:
    """The field whose name is most similar. Files repeat the same unknown field in each line."""
    return next(iter(get_close_matches(name, known_fields(struct_type), n=1, cutoff=SIMILARITY)), None)


@cache
def allowed_values(kind: Any) -> tuple[Any, ...]:
    """The values of the Literals within a type."""
    return tuple(each for rule in _rules(kind) for each in rule.allowed)


def is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)


_INTEGER = re.compile("-?[0-9]{1,40}")
DECIMAL_PATTERN = re.compile(r"-?[0-9]{1,40}(\.[0-9]{1,40})?")


def _coerce_integer(text: str) -> int | str:
    return int(text) if _INTEGER.fullmatch(text) else text


def _coerce_boolean(text: str) -> bool | str:
    return _BOOLEANS.get(text, text)


def _coerce_decimal(text: str) -> Decimal | str:
    return Decimal(text) if DECIMAL_PATTERN.fullmatch(text) else text


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
