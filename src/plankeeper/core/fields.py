"""Types that all schemas share: ids, limited texts, email addresses, states, partial updates."""

import re
from collections.abc import Sequence
from datetime import datetime
from functools import cache, lru_cache
from typing import Annotated, Any, Literal, TypeVar, get_args
from uuid import UUID

import msgspec
from email_validator import EmailNotValidError, validate_email
from msgspec import UNSET, Meta, Struct, UnsetType
from msgspec.structs import fields

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

# The codes of errors of parameters and fields, for programs.
FieldErrorCode = Literal[
    "required",
    "unknown",
    "invalid_type",
    "invalid_format",
    "not_allowed",
    "too_short",
    "too_long",
    "too_small",
    "too_large",
    "read_only",
    "not_found",
    "duplicate",
    "inconsistent",
]

MONTH_PATTERN = "20[0-9]{2}-(0[1-9]|1[0-2])"  # such as 2026-11
UUID_PATTERN = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

EXTENSION = Meta(extra_json_schema={"x-plankeeper-extension": True})


def component(name: str, description: str, values: Sequence[str] = ()) -> Meta:
    """Gives a type, such as an enum, a name in the OpenAPI document. Schemas that contain it refer to it.

    `values` are those of an enum that isn't a Literal.
    """
    declared = {"name": name, "description": description} | ({"enum": [*values]} if values else {})
    return Meta(extra_json_schema={"x-component": declared})


# A pattern's message stands beside it: `validation.py` reports it when a value doesn't match.
UuidText = Annotated[
    str,
    Meta(
        pattern=f"^{UUID_PATTERN}$",
        extra={"message": "must be a UUID with hyphens"},
        extra_json_schema={"format": "uuid"},
    ),
]
MonthText = Annotated[
    str,
    Meta(
        pattern=f"^{MONTH_PATTERN}$",
        extra={"message": "must be a month, such as 2026-10"},
        extra_json_schema={"examples": ["2026-10"]},
    ),
]
# The id of a new resource: any UUID except the nil UUID, which means "no row".
NewId = Annotated[
    str,
    Meta(
        pattern=f"^(?!00000000-0000-0000-0000-000000000000){UUID_PATTERN}$",
        extra={"message": "must be a UUID with hyphens, and not the nil UUID"},
        extra_json_schema={"format": "uuid"},
    ),
]
Text20 = Annotated[str, Meta(max_length=20)]
Text50 = Annotated[str, Meta(max_length=50)]
Text254 = Annotated[str, Meta(max_length=254)]
Text255 = Annotated[str, Meta(max_length=255)]
Text500 = Annotated[str, Meta(max_length=500)]
ExternalIdText = Annotated[str, Meta(min_length=1, max_length=255)]
ExternalId = Annotated[
    str | None,
    EXTENSION,
    Meta(description="The id of the record in another system, or null. No other record of the same kind can have it."),
]
SearchText = Annotated[str, Meta(max_length=255, pattern=r"\S", extra={"message": "must not be blank"})]
LongText = Annotated[str, Meta(max_length=10_000)]
AwareDatetime = Annotated[datetime, Meta(tz=True)]
UpdatedAt = Annotated[
    AwareDatetime,
    EXTENSION,
    Meta(description="When the record was last changed. Changes of records that it refers to don't count."),
]
CreatedAt = Annotated[AwareDatetime, Meta(description="When the record was created. An import can set it.")]

STATE_CODES = ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA")
STATE = component("StateCode", "The abbreviation of an Australian state or territory.", STATE_CODES)

# In responses: only described, because these texts were validated when they were written.
StateText = Annotated[str, STATE]
EmailText = Annotated[str, Meta(extra_json_schema={"format": "email"})]
UrlText = Annotated[str, Meta(extra_json_schema={"format": "uri"})]


class Email(str):
    """An email address as the client sent it. Its syntax is checked, but not its domain."""

    __slots__ = ()


class StateCode(str):
    """The abbreviation of a state or territory: accepted in either case, stored in upper case."""

    __slots__ = ()


class StateFilter(str):
    """The state of a filter: lower case in the contract, accepted in either case, compared in upper case."""

    __slots__ = ()


CUSTOM_TYPES = (Email, StateCode, StateFilter)


class InvalidValueError(ValueError):
    """A string isn't a value of a custom type."""

    def __init__(self, message: str, code: FieldErrorCode, allowed: Sequence[str] = ()) -> None:
        super().__init__(message)
        self.code: FieldErrorCode = code
        self.allowed = allowed


def decode_custom_type(kind: type, value: Any) -> Any:
    """Msgspec's `dec_hook`: converts a string to one of these types. The InvalidValueError describes valid values."""
    if not isinstance(value, str):
        raise ValueError("must be a string")  # noqa: TRY004 - msgspec's contract
    if kind is StateCode:
        if value.upper() in STATE_CODES and value.isascii():
            return StateCode(value.upper())
        raise InvalidValueError(f"must be one of {', '.join(STATE_CODES)}", "not_allowed", STATE_CODES)
    if kind is StateFilter:
        if value.upper() in STATE_CODES and value in (value.lower(), value.upper()):
            return StateFilter(value.upper())
        allowed = [each.lower() for each in STATE_CODES]
        raise InvalidValueError(f"must be one of {', '.join(allowed)}", "not_allowed", allowed)
    if len(value) > 254:
        raise InvalidValueError("must be at most 254 characters long", "too_long")
    if not is_email(value):
        raise InvalidValueError("must be an email address, such as name@example.com", "invalid_format")
    return Email(value)


# A valid local part, and a domain that isn't encoded: the syntax and the lengths of the two don't depend on each other.
_PLAIN_EMAIL = re.compile(r"[A-Za-z0-9_+-]+(?:\.[A-Za-z0-9_+-]+)*@(?P<domain>(?:[A-Za-z0-9.]|-(?!-))+)")


def is_email(value: str) -> bool:
    """Whether the syntax of an email address of at most 254 characters is valid.

    The library takes 40 µs, nearly all of them for the domain, so the results of domains are cached.
    """
    plain = _PLAIN_EMAIL.fullmatch(value)
    return _is_email_domain(plain["domain"]) if plain else _is_valid_email(value)


@lru_cache(maxsize=4096)
def _is_email_domain(domain: str) -> bool:
    # The shortest local part: the library also limits the length of the whole address.
    return _is_valid_email(f"a@{domain}")


def _is_valid_email(value: str) -> bool:
    try:
        validate_email(value, check_deliverability=False, test_environment=True)
    except EmailNotValidError:
        return False
    return True


def custom_schema(kind: type) -> dict[str, Any]:
    """Msgspec's `schema_hook`: the JSON Schema of these types.

    A state is in one case, although the other is accepted: generators make a name from each value.
    """
    if kind is Email:
        return {"type": "string", "format": "email", "maxLength": 254}
    if kind is StateFilter:
        return {"type": "string", "enum": [each.lower() for each in STATE_CODES]}
    return (STATE.extra_json_schema or {}) | {"type": "string", "enum": [*STATE_CODES]}


def apply_patch(change: Struct, before: S) -> S:
    """`before` with the fields that `change` sets; fields that are UNSET stay unchanged."""
    given = {name: value for name in change.__struct_fields__ if (value := getattr(change, name)) is not UNSET}
    return msgspec.structs.replace(before, **to_row_values(type(before), given))


def to_row_values(row_type: type[Struct], values: dict[str, Any]) -> dict[str, Any]:
    """Values of a request as those of a row: ids are texts in a request, and UUIDs in a row."""
    for name in _uuid_fields(row_type):
        if isinstance(value := values.get(name), str):
            values[name] = UUID(value)
    return values


@cache
def _uuid_fields(row_type: type[Struct]) -> tuple[str, ...]:
    return tuple(field.name for field in fields(row_type) if has_type(field.type, UUID))


def has_type(annotation: Any, kind: type) -> bool:
    """Whether an annotation is a type, or a union or Annotated that contains it."""
    return annotation is kind or any(has_type(each, kind) for each in get_args(annotation))


class EmptyResponse(Struct):
    """An empty object, the response to a delete."""


class EmptyRequest(Struct, forbid_unknown_fields=True):
    """An empty object, the body of an action without fields. It can be omitted."""


class Query(Struct, forbid_unknown_fields=True, kw_only=True, frozen=True):
    """The query parameters of an operation."""


def unset_to_none(value: T | UnsetType) -> T | None:
    """The value, or None for a parameter that was not sent."""
    return None if isinstance(value, UnsetType) else value
