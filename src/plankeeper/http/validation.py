"""Convert decoded JSON and query parameters to structs, and report all errors by field."""

import re
from collections.abc import Iterator, Mapping
from datetime import UTC, datetime
from difflib import get_close_matches
from functools import cache, lru_cache
from itertools import islice
from typing import Any, TypeVar, cast, get_args, get_origin

import msgspec
from msgspec import Meta, Struct
from msgspec.structs import FieldInfo, fields

from plankeeper.http.errors import FieldError
from plankeeper.http.schemas import decode_custom_type

S = TypeVar("S", bound=Struct)

# What is reported of an invalid body, and what it may cost: suggestions take up to 200 µs each.
MAX_ERRORS = 100
MAX_SUGGESTIONS = 20
MAX_UNKNOWN_FIELDS = 200

_TYPE_NAMES = {
    "str": "a string",
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "array": "a list",
    "object": "an object",
    "null": "null",
    "date": "a date, YYYY-MM-DD",
    "decimal": "a number",
    "datetime": "a datetime with a time zone, YYYY-MM-DDTHH:MM:SSZ",
    "uuid": "a UUID with hyphens",
}


def validate(
    struct_type: type[S], values: Mapping[str, Any], *, suggests: bool = True, has_nul: bool = True
) -> tuple[S | None, list[FieldError]]:
    """`values` as a `struct_type`, or its errors, at most MAX_ERRORS.

    Validates single fields only if the whole conversion fails. An object with too many unknown fields has one error
    without a field. With `suggests`, the errors of a few unknown fields name similar ones. Without `has_nul`, no text
    contains U+0000: to look for it in all values takes longest.
    """
    parsed = _convert(struct_type, values, has_nul=has_nul)
    if parsed is not None:
        return parsed, []
    known = known_fields(struct_type)
    unknown = list(islice((name for name in values if name not in known), MAX_UNKNOWN_FIELDS + 1))
    if len(unknown) > MAX_UNKNOWN_FIELDS:
        return None, [
            FieldError("", f"has {len(values):,} fields, of which more than {MAX_UNKNOWN_FIELDS} are unknown")
        ]
    suggests = suggests and len(unknown) <= MAX_SUGGESTIONS
    errors = [_unknown_field_error(name, struct_type, suggests=suggests) for name in unknown[:MAX_ERRORS]]
    for name, field in known.items():
        if name in values:
            errors += _field_errors(name, field.type, values[name], has_nul=has_nul)
        elif field.required:
            errors.append(FieldError(name, "is required"))
    if errors:
        return None, errors[:MAX_ERRORS]
    return msgspec.convert(dict(values), struct_type, dec_hook=decode_custom_type), []


def _field_errors(name: str, kind: Any, value: Any, *, has_nul: bool) -> list[FieldError]:
    item_type = _item_struct(kind)
    if item_type and isinstance(value, list):
        has_wrong_length = (validation_error(kind, value, has_nul=has_nul) or "").endswith("items long")
        if not has_wrong_length:
            errors = _item_errors(name, item_type, cast("list[Any]", value), has_nul=has_nul)
            return list(islice(errors, MAX_ERRORS))
    return [FieldError(*_locate(name, message)) for message in validation_errors(kind, value, has_nul=has_nul)]


def _item_struct(kind: Any) -> type[Struct] | None:
    """The struct that the items of a list have, or None."""
    if get_origin(kind) is list:
        item_type = get_args(kind)[0]
        return item_type if _is_struct(item_type) else None
    return next((found for part in get_args(kind) if (found := _item_struct(part))), None)


def _item_errors(name: str, item_type: type[Struct], items: list[Any], *, has_nul: bool) -> Iterator[FieldError]:
    """All errors of a list of objects, each with the index of its item."""
    count = 0
    for index, item in enumerate(items):
        if not isinstance(item, dict):
            count += 1
            error = validation_error(item_type, item, has_nul=has_nul)
            yield FieldError(f"{name}[{index}]", error or "must be an object")
            continue
        members = cast("dict[str, Any]", item)
        _, errors = validate(item_type, members, suggests=count < MAX_SUGGESTIONS, has_nul=has_nul)
        count += len(errors)
        for error in errors:
            yield FieldError(f"{name}[{index}].{error.field}".rstrip("."), error.message)


def _convert(struct_type: type[S], values: Mapping[str, Any], *, has_nul: bool) -> S | None:
    if has_nul and _contains_nul(values):
        return None
    try:
        parsed = msgspec.convert(values, struct_type, dec_hook=decode_custom_type)
    except msgspec.ValidationError:
        return None
    return None if any(_is_out_of_range(getattr(parsed, name)) for name in _datetime_fields(struct_type)) else parsed


@cache
def _datetime_fields(struct_type: type[Struct]) -> tuple[str, ...]:
    """The attributes that can be datetimes."""
    return tuple(field.name for field in known_fields(struct_type).values() if _can_be_datetime(field.type))


def _can_be_datetime(annotation: Any) -> bool:
    return annotation is datetime or any(_can_be_datetime(part) for part in get_args(annotation))


@cache
def known_fields(struct_type: type[Struct]) -> Mapping[str, FieldInfo]:
    """The fields of a struct by name. Cached, because msgspec resolves the annotations on each call."""
    return {field.encode_name: field for field in fields(struct_type)}


def validation_errors(kind: Any, value: Any, *, has_nul: bool = True) -> list[str]:
    """The error of a value, or the errors of a list's items (at most 100)."""
    message = validation_error(kind, value, has_nul=has_nul)
    if not message or " - at `$[" not in message:
        return [message] if message else []
    item_messages = ((index, validation_error(kind, [item], has_nul=has_nul)) for index, item in enumerate(value))
    located = (
        item_message.replace("`$[0]", f"`$[{index}]", 1) for index, item_message in item_messages if item_message
    )
    return list(islice(located, MAX_ERRORS))


def validation_error(kind: Any, value: Any, *, has_nul: bool = True) -> str | None:
    """The error of a value, or None if it is valid."""
    if has_nul and _contains_nul(value):
        return "must not contain the character U+0000"
    try:
        converted = msgspec.convert(value, kind, dec_hook=decode_custom_type)
    except msgspec.ValidationError as error:
        return _translate_error(str(error), kind)
    return "must be between the years 1 and 9999 in UTC" if _is_out_of_range(converted) else None


def _is_out_of_range(value: Any) -> bool:
    """Whether a datetime in UTC is beyond the calendar."""
    try:
        if isinstance(value, datetime):
            value.astimezone(UTC)
    except OverflowError:
        return True
    return False


def _unknown_field_error(name: str, struct_type: type[Struct], *, suggests: bool) -> FieldError:
    if not name.isprintable() or len(name) > 100:
        name = name[:100].encode("unicode_escape").decode()
    known = known_fields(struct_type)
    if not known:
        return FieldError(name, "is unknown; no parameters are supported")
    similar = _similar_field(name, struct_type) if suggests else None
    return FieldError(name, f"is unknown; did you mean {similar}?" if similar else _expected_one_of(known))


@lru_cache(maxsize=1000)
def _similar_field(name: str, struct_type: type[Struct]) -> str | None:
    """The field whose name is most similar. Files repeat the same unknown field in each line."""
    return next(iter(get_close_matches(name, known_fields(struct_type), n=1)), None)


def _expected_one_of(known: Mapping[str, Any]) -> str:
    return f"is unknown; expected one of {', '.join(known)}"


def _contains_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_contains_nul(key) or _contains_nul(inner) for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
    return isinstance(value, list) and any(_contains_nul(inner) for inner in value)  # pyright: ignore[reportUnknownVariableType]


def _locate(name: str, error: str) -> tuple[str, str]:
    """The field of a nested error has its path: `permissions[2]`."""
    message, _, path = error.partition(" - at `$")
    return name + path.rstrip("`"), message


def _translate_error(error: str, kind: Any) -> str:
    """An error of msgspec in terms of JSON."""
    message, separator, path = error.partition(" - at `$")
    return _translate_message(message, kind) + separator + path


def _translate_message(message: str, kind: Any) -> str:  # noqa: PLR0911 - one return for each kind of message
    if match := re.fullmatch(r"Expected `(\w+)` of length (<=|>=) (\d+)", message):
        bound = "at most" if match[2] == "<=" else "at least"
        return f"must be {bound} {match[3]} {'characters long' if match[1] == 'str' else 'items long'}"
    if match := re.fullmatch(r"Expected `(int|decimal|float)` (<=|>=|<|>) (\S+)", message):
        words = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}
        return f"must be {words[match[2]]} {match[3]}"
    if match := re.fullmatch(r"Expected `([^`]+)`(?:, got `(\w+)`)?( with a timezone component)?", message):
        expected = " or ".join(_TYPE_NAMES.get(part, part) for part in match[1].split(" | "))
        got = f", not {_TYPE_NAMES.get(match[2], match[2])}" if match[2] and match[2] != match[1] else ""
        return f"must be {expected}{got}"
    if message.startswith("Invalid enum value"):
        return f"must be one of {', '.join(str(choice) for choice in allowed_values(kind))}"
    if message.startswith("Expected `str` matching regex"):
        messages = (text for pattern, text in pattern_messages(kind).items() if repr(pattern) in message)
        return next(messages, "has an invalid format")
    if message.startswith("Invalid RFC3339 encoded"):
        return f"must be {_TYPE_NAMES[message.rsplit(' ', 1)[-1]]}"
    return message[:1].lower() + message[1:]


@cache
def allowed_values(kind: Any) -> tuple[Any, ...]:
    """The values of the Literals within a type."""
    values: list[Any] = []
    for part in get_args(kind):
        values += allowed_values(part) if get_args(part) else [part] if isinstance(part, str | int) else []
    return tuple(values)


@cache
def pattern_messages(kind: Any) -> Mapping[str, str]:
    """The messages of all patterns within a type."""
    messages: dict[str, str] = {}
    parts = [field.type for field in fields(kind)] if _is_struct(kind) else get_args(kind)
    for part in parts:
        if isinstance(part, Meta):
            messages |= {part.pattern: part.extra["message"]} if part.pattern and part.extra else {}
        else:
            messages |= pattern_messages(part)
    return messages


def _is_struct(kind: Any) -> bool:
    return isinstance(kind, type) and issubclass(kind, Struct)
