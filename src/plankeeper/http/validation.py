"""Decoded JSON and query parameters become structs; what is wrong with them is said field by field, all at once."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from functools import cache
from itertools import islice
from typing import Any, TypeVar, get_args

import msgspec
from msgspec import Struct
from msgspec.structs import FieldInfo, fields

from plankeeper.http.errors import FieldError
from plankeeper.http.schemas import checked

S = TypeVar("S", bound=Struct)

_WORDS = {
    "str": "a string", "int": "a whole number", "float": "a number", "bool": "true or false", "array": "a list",
    "object": "an object", "null": "null", "date": "a date, YYYY-MM-DD", "decimal": "a number",
    "datetime": "a datetime with a zone, YYYY-MM-DDTHH:MM:SSZ", "uuid": "a UUID with its hyphens",
}  # fmt: skip


# What a pattern asks for, by a part of it that no other pattern has.
_PATTERNS = {
    "^(?!0000": "must be a UUID with its hyphens, and not the nil UUID",
    "^(0|[0-9a-f": "must be 0 or a UUID with its hyphens",
    "{12}": "must be a UUID with its hyphens",
    "{1,18}": "must be 0 or a whole number",
    "[a-z_]": "must be 0 or an error code",
    "\\S": "must not be blank",
}


def shaped(shape: type[S], values: Mapping[str, Any]) -> tuple[S | None, list[FieldError]]:
    """`values` as a `shape`, or every fault that they have: only what fails as a whole is looked at singly."""
    parsed = _at_once(shape, values)
    if parsed is not None:
        return parsed, []
    known = known_fields(shape)
    faults = [_unknown(name, known) for name in values if name not in known]
    for name, field in known.items():
        if name in values:
            faults += [FieldError(*_at(name, fault)) for fault in faults_of(field.type, values[name])]
        elif field.required:
            faults.append(FieldError(name, "is required"))
    if faults:
        return None, faults
    return msgspec.convert(dict(values), shape, dec_hook=checked), []


def _at_once(shape: type[S], values: Mapping[str, Any]) -> S | None:
    if _holds_nul(values):
        return None
    try:
        parsed = msgspec.convert(values, shape, dec_hook=checked)
    except msgspec.ValidationError:
        return None
    return None if any(_is_beyond(getattr(parsed, name)) for name in parsed.__struct_fields__) else parsed


@cache
def known_fields(shape: type[Struct]) -> Mapping[str, FieldInfo]:
    """The fields of a struct by name. Remembered: msgspec resolves the annotations anew each time."""
    return {field.encode_name: field for field in fields(shape)}


def faults_of(kind: Any, value: Any) -> list[str]:
    """What is wrong with a value that should be of a type; of a list, each wrong item (at most 100 of them)."""
    fault = fault_of(kind, value)
    if not fault or " - at `$[" not in fault:
        return [fault] if fault else []
    found = ((place, fault_of(kind, [item])) for place, item in enumerate(value))
    placed = (text.replace("`$[0]", f"`$[{place}]", 1) for place, text in found if text)
    return list(islice(placed, 100))


def fault_of(kind: Any, value: Any) -> str | None:
    """What is wrong with a value that should be of a type; null where nothing is."""
    if _holds_nul(value):
        return "must not contain the character U+0000"
    try:
        converted = msgspec.convert(value, kind, dec_hook=checked)
    except msgspec.ValidationError as error:
        return _plain(str(error), kind)
    return "must lie within the years 1 to 9999 in UTC" if _is_beyond(converted) else None


def _is_beyond(value: Any) -> bool:
    """Whether a datetime, moved from its own zone to UTC, leaves the calendar."""
    try:
        if isinstance(value, datetime):
            value.astimezone(UTC)
    except OverflowError:
        return True
    return False


def _unknown(name: str, known: Mapping[str, Any]) -> FieldError:
    if not name.isprintable() or len(name) > 100:
        name = name[:100].encode("unicode_escape").decode()
    return FieldError(name, f"is not known; known are {', '.join(known)}" if known else "is not known; none is taken")


def _holds_nul(value: Any) -> bool:
    if isinstance(value, str):
        return "\0" in value
    if isinstance(value, dict):
        return any(_holds_nul(key) or _holds_nul(inner) for key, inner in value.items())  # pyright: ignore[reportUnknownVariableType]
    return isinstance(value, list) and any(_holds_nul(inner) for inner in value)  # pyright: ignore[reportUnknownVariableType]


def _at(name: str, fault: str) -> tuple[str, str]:
    """A fault deeper down names its place: `permissions[2]`."""
    message, _, path = fault.partition(" - at `$")
    return name + path.rstrip("`"), message


def _plain(fault: str, kind: Any) -> str:
    """Msgspec's sentence in the words of JSON."""
    message, at, path = fault.partition(" - at `$")
    return _reworded(message, kind) + at + path


def _reworded(message: str, kind: Any) -> str:  # noqa: PLR0911 - one return for each kind of sentence
    if match := re.fullmatch(r"Expected `(\w+)` of length (<=|>=) (\d+)", message):
        bound = "at most" if match[2] == "<=" else "at least"
        return f"must be {bound} {match[3]} {'characters long' if match[1] == 'str' else 'items long'}"
    if match := re.fullmatch(r"Expected `(int|decimal|float)` (<=|>=|<|>) (\S+)", message):
        words = {"<=": "at most", ">=": "at least", "<": "below", ">": "above"}
        return f"must be {words[match[2]]} {match[3]}"
    if match := re.fullmatch(r"Expected `([^`]+)`(?:, got `(\w+)`)?( with a timezone component)?", message):
        expected = " or ".join(_WORDS.get(part, part) for part in match[1].split(" | "))
        got = f", not {_WORDS.get(match[2], match[2])}" if match[2] and match[2] != match[1] else ""
        return f"must be {expected}{got}"
    if message.startswith("Invalid enum value"):
        return f"must be one of {', '.join(str(choice) for choice in choices(kind))}"
    if message.startswith("Expected `str` matching regex"):
        return next((words for part, words in _PATTERNS.items() if part in message), "is not of the right form")
    if message.startswith("Invalid RFC3339 encoded"):
        return f"must be {_WORDS[message.rsplit(' ', 1)[-1]]}"
    return message[:1].lower() + message[1:]


@cache
def choices(kind: Any) -> tuple[Any, ...]:
    """The allowed values of a type that is, or holds, a Literal."""
    found: list[Any] = []
    for part in get_args(kind):
        found += choices(part) if get_args(part) else [part] if isinstance(part, str | int) else []
    return tuple(found)
