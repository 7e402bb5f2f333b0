"""Parse path, query string and body into the types of a handler's parameters."""

import re
from collections.abc import Mapping
from decimal import Decimal
from functools import cache
from typing import Any
from urllib.parse import parse_qsl
from uuid import UUID

import msgspec
from msgspec.structs import replace

from plankeeper.core.errors import (
    FieldError,
    ValidationError,
    invalid_parameter,
)
from plankeeper.core.fields import Query
from plankeeper.core.ids import UuidOr404, parse_uuid
from plankeeper.core.lists import ListQuery, SortableQuery
from plankeeper.core.validation import DECIMAL_PATTERN, coercion, known_fields, unwrap_type, validate

MAX_BODY_BYTES = 1024 * 1024

_NIL_UUID = UUID(int=0)
_PATH_INTEGER = re.compile("-?[0-9]+")


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
        elif kind is Decimal and not DECIMAL_PATTERN.fullmatch(text):  # msgspec takes other forms, such as 1e3
            errors.append(FieldError(name, "must be a number, such as 12.50", "invalid_format", location="query"))
        values[name] = coercion(kind)(text)
    return values, errors


@cache
def _parameter_types(query_type: type[Query]) -> Mapping[str, type[Any]]:
    """The type of each parameter."""
    return {name: unwrap_type(field.type) for name, field in known_fields(query_type).items()}
