"""The shapes that every slice shares: texts with their lengths, list parameters, pages."""

from datetime import datetime
from typing import Annotated, Any, Generic, TypeVar

import msgspec
from email_validator import EmailNotValidError, validate_email
from msgspec import UNSET, Meta, Struct, UnsetType

T = TypeVar("T")
S = TypeVar("S", bound=Struct)

UUID_PATTERN = "[0-9a-fA-F]{8}(-[0-9a-fA-F]{4}){3}-[0-9a-fA-F]{12}"

EXTENSION = Meta(extra_json_schema={"x-plankeeper-extension": True})

UuidText = Annotated[str, Meta(pattern=f"^{UUID_PATTERN}$", extra_json_schema={"format": "uuid"})]
# The id of something new: any UUID but the nil one, which stands for no row.
NewId = Annotated[
    str, Meta(pattern=f"^(?!00000000-0000-0000-0000-000000000000){UUID_PATTERN}$", extra_json_schema={"format": "uuid"})
]
Text20 = Annotated[str, Meta(max_length=20)]
Text50 = Annotated[str, Meta(max_length=50)]
Text254 = Annotated[str, Meta(max_length=254)]
Text255 = Annotated[str, Meta(max_length=255)]
Text500 = Annotated[str, Meta(max_length=500)]
LongText = Annotated[str, Meta(max_length=10_000)]
AwareDatetime = Annotated[datetime, Meta(tz=True)]

STATE_CODES = ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA")


class Email(str):
    """An email address as it was sent: its form is checked, nothing is looked up."""

    __slots__ = ()


class StateCode(str):
    """A state's or territory's abbreviation: taken in either case, kept in upper case."""

    __slots__ = ()


def decode_custom_type(kind: type, value: Any) -> Any:
    """Msgspec's `dec_hook`: makes an Email or a StateCode of a string; ValueError says what would be right."""
    if not isinstance(value, str):
        got = next((name for kind, name in _JSON_TYPE_NAMES.items() if isinstance(value, kind)), "this")
        raise ValueError(f"must be a string, not {got}")  # noqa: TRY004 - msgspec's contract
    if kind is StateCode:
        if value.upper() in STATE_CODES and value.isascii():
            return StateCode(value.upper())
        raise ValueError(f"must be one of {', '.join(STATE_CODES)}")
    if len(value) > 254:
        raise ValueError("must be at most 254 characters long")
    try:
        validate_email(value, check_deliverability=False, test_environment=True)
    except EmailNotValidError as error:
        raise ValueError("must be an email address, such as name@example.com") from error
    return Email(value)


_JSON_TYPE_NAMES: dict[type, str] = {
    dict: "an object",
    list: "a list",
    bool: "a boolean",  # before int, which it is a kind of
    int: "a number",
    float: "a number",
}


def custom_schema(kind: type) -> dict[str, Any]:
    """Msgspec's `schema_hook`: the JSON Schema of an Email or a StateCode."""
    if kind is Email:
        return {"type": "string", "format": "email", "maxLength": 254}
    return {"type": "string", "enum": [*STATE_CODES, *(state.lower() for state in STATE_CODES)]}


def apply_patch(change: Struct, before: S) -> S:
    """`before` with the members that `change` has; those that it leaves out stay as they are."""
    members = {name: getattr(change, name) for name in change.__struct_fields__}
    return msgspec.structs.replace(before, **{name: value for name, value in members.items() if value is not UNSET})


class EmptyResponse(Struct):
    """An empty object: the answer to a delete."""


class PaginationMeta(Struct):
    """Where a page stands in its list."""

    limit: Annotated[int, Meta(description="The most items of a page.")]
    offset: Annotated[int, Meta(description="The items skipped.")]
    has_more: Annotated[bool, Meta(description="Whether items follow this page.")]
    total: Annotated[int | None, Meta(description="All matching items; null in cursor mode.")]
    next_cursor: Annotated[
        str | None,
        Meta(description="The `after` of the next page; null in offset mode and on the last page."),
    ]


class Page(Struct, Generic[T]):
    """One page of a list."""

    data: list[T]
    pagination: PaginationMeta


_NON_FILTERS = {"limit", "offset", "after", "view"}


class Query(Struct, forbid_unknown_fields=True, kw_only=True):
    """The query parameters of an operation."""


Limit = Annotated[int, Meta(ge=1, le=1000, description="The most items of a page.")]
Offset = Annotated[int, Meta(ge=0, le=2**63 - 1, description="The items to skip; cannot be combined with a cursor.")]
_AFTER_DESCRIPTION = (
    "Answers the records after this id, ascending by id. `0` starts a walk; not together with a non-zero `offset`."
)


class ListQuery(Query):
    """What every list takes. `after` is narrowed by each kind of id."""

    limit: Limit = 20
    offset: Offset = 0
    after: str | UnsetType = UNSET

    @property
    def uses_cursor(self) -> bool:
        return self.after is not UNSET

    @property
    def has_filters(self) -> bool:
        """Whether any filter was given. Without one a list is read by a statement that has none: PostgreSQL plans
        a statement once for all values, and would take twenty optional filters for twenty that are used.
        """
        return any(getattr(self, name) is not UNSET for name in self.__struct_fields__ if name not in _NON_FILTERS)


class UuidListQuery(ListQuery):
    """A list by UUID. `start` is the id to begin behind: the nil UUID, which no row has, for the beginning."""

    after: Annotated[str, Meta(pattern=f"^(0|{UUID_PATTERN})$", description=_AFTER_DESCRIPTION)] | UnsetType = UNSET

    @property
    def start(self) -> str:
        return "00000000-0000-0000-0000-000000000000" if self.after in (UNSET, "0") else str(self.after)


class NumberListQuery(ListQuery):
    """A list by whole number. `start` is the id to begin behind."""

    after: Annotated[str, Meta(pattern="^[0-9]{1,18}$", description=_AFTER_DESCRIPTION)] | UnsetType = UNSET

    @property
    def start(self) -> int:
        return 0 if self.after is UNSET else int(str(self.after))


class CodeListQuery(ListQuery):
    """A list by code. `start` is the code to begin behind."""

    after: Annotated[str, Meta(pattern="^(0|[a-z][a-z_]{0,99})$", description=_AFTER_DESCRIPTION)] | UnsetType = UNSET

    @property
    def start(self) -> str:
        return "" if self.after in (UNSET, "0") else str(self.after)


def unset_to_none(value: T | UnsetType) -> T | None:
    """A parameter that was sent, or null."""
    return None if isinstance(value, UnsetType) else value


_encoder = msgspec.json.Encoder(decimal_format="number", enc_hook=str)


def to_json(value: object) -> str:
    """JSON as this API writes it: numbers exact, texts of the checked kinds as plain strings."""
    return _encoder.encode(value).decode()
