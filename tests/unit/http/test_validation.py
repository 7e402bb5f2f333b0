"""The rules that find errors agree with msgspec about what is valid, and each error has its code."""

from collections.abc import Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal
from uuid import UUID

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import UNSET, Meta, Struct, UnsetType

from contract.operations import ALL_OPERATIONS
from plankeeper.core.fields import (
    AwareDatetime,
    Email,
    Query,
    StateCode,
    StateFilter,
    UuidText,
    decode_custom_type,
)
from plankeeper.core.validation import validate

Word = Annotated[str, Meta(min_length=1, max_length=3)]


class Part(Struct):
    name: Word
    amount: Decimal | UnsetType = UNSET


class Everything(Struct, forbid_unknown_fields=True, kw_only=True):
    text: Word | None | UnsetType = UNSET
    number: Annotated[int, Meta(ge=1, le=10)] | UnsetType = UNSET
    flag: bool | UnsetType = UNSET
    day: date | None | UnsetType = UNSET
    moment: AwareDatetime | UnsetType = UNSET
    amount: Decimal | None | UnsetType = UNSET
    amounts: dict[str, list[Decimal]] | UnsetType = UNSET
    uuid: UUID | UnsetType = UNSET
    id: UuidText | None | UnsetType = UNSET
    email: Email | None | UnsetType = UNSET
    state: StateCode | None | UnsetType = UNSET
    filter: StateFilter | UnsetType = UNSET
    kind: Literal["a", "b"] | UnsetType = UNSET
    priority: Literal[1, 2] | None | UnsetType = UNSET
    names: Annotated[list[Word], Meta(min_length=1, max_length=2)] | UnsetType = UNSET
    parts: list[Literal["a"] | Part] | UnsetType = UNSET
    texts: dict[str, Word] | UnsetType = UNSET
    anything: Any | UnsetType = UNSET


PLAIN = st.sampled_from(
    [
        None, True, False, 0, 1, 2, 11, -1, 2**70, Decimal("1.5"), "NaN", "", "a", "b", "abcd", "a\0", "NSW", "nsw",
        "1.5", "2026-01-02", "2026-02-30", "2026-01-02T03:04:05Z", "2026-01-02T03:04:05", "0001-01-01T00:00:00+10:00",
        "ann@example.com", "ann@", "017a5f00-0000-7000-8000-0000000000aa", "017a5f00",
    ]
)  # fmt: skip
NAMES = st.sampled_from(["name", "other", "a\0"])
PARTS = PLAIN | st.lists(PLAIN, max_size=2) | st.dictionaries(NAMES, PLAIN, max_size=2)
VALUES = PLAIN | st.lists(PARTS, max_size=3) | st.dictionaries(NAMES, PARTS, max_size=2)
OBJECTS = st.dictionaries(st.sampled_from([*Everything.__struct_encode_fields__, "unknown"]), VALUES, max_size=4)


def is_valid(values: dict[str, Any]) -> bool:
    """Whether msgspec takes the values."""
    try:
        msgspec.convert(values, Everything, dec_hook=decode_custom_type)
    except msgspec.ValidationError:
        return False
    return True


def values_in(value: Any) -> list[Any]:
    """The names and the plain values of a document."""
    if isinstance(value, dict):
        return [inner for item in value.items() for each in item for inner in values_in(each)]
    if isinstance(value, list):
        return [inner for each in value for inner in values_in(each)]
    return [value]


def is_rejected_in_some_fields(value: Any) -> bool:
    """Whether msgspec takes a value that the rules reject."""
    if isinstance(value, str):
        return "\0" in value or value.startswith(("0001", "NaN"))
    return value == 2**70


@settings(max_examples=1000, deadline=None)
@given(OBJECTS)
def test_every_value_that_msgspec_rejects_has_an_error(values: dict[str, Any]) -> None:
    parsed, errors = validate(Everything, values)
    assert (parsed is None) is bool(errors)
    if not is_valid(values):
        assert errors
    elif not any(map(is_rejected_in_some_fields, values_in(values))):
        assert parsed is not None
    assert all(each.message and each.field for each in errors)


AMOUNT = "must be a number below 10^12 with at most 10 decimal places"
CODES: Sequence[tuple[dict[str, Any], str, str, str]] = [
    ({"text": 5}, "text", "invalid_type", "must be a string or null, not a whole number"),
    ({"text": ""}, "text", "too_short", "must be at least 1 character long"),
    ({"text": "abcd"}, "text", "too_long", "must be at most 3 characters long"),
    ({"text": "\0"}, "text", "invalid_format", "must not contain the character U+0000"),
    ({"number": 0}, "number", "too_small", "must be at least 1"),
    ({"number": 11}, "number", "too_large", "must be at most 10"),
    ({"number": True}, "number", "invalid_type", "must be a whole number, not true or false"),
    ({"number": Decimal("1.5")}, "number", "invalid_type", "must be a whole number, not a number"),
    ({"day": "2026-02-30"}, "day", "invalid_format", "must be a date, YYYY-MM-DD"),
    ({"moment": "2026-01-02T03:04:05"}, "moment", "invalid_format",
     "must be a datetime with a time zone, YYYY-MM-DDTHH:MM:SSZ"),
    ({"amount": "x"}, "amount", "invalid_type", "must be a number, not a string"),
    ({"amount": Decimal("1E+18")}, "amount", "too_large", AMOUNT),
    ({"amount": 10**18}, "amount", "too_large", AMOUNT),
    ({"amount": Decimal("-1E+1000000")}, "amount", "too_large", AMOUNT),
    ({"amount": Decimal("1E-1000000")}, "amount", "invalid_format", AMOUNT),
    ({"amount": "sNaN"}, "amount", "invalid_format", AMOUNT),
    ({"amount": "-Infinity"}, "amount", "invalid_format", AMOUNT),
    ({"amounts": {"x": [1, "NaN"]}}, "amounts.x[1]", "invalid_format", AMOUNT),
    ({"parts": ["a", {"name": "b", "amount": "NaN"}]}, "parts[1].amount", "invalid_format", AMOUNT),
    ({"moment": "9999-01-01T00:00:00Z"}, "moment", "invalid_format", "must be a datetime in the years 2 to 9998"),
    ({"id": "x"}, "id", "invalid_format", "must be a UUID with hyphens"),
    ({"email": "x"}, "email", "invalid_format", "must be an email address, such as name@example.com"),
    ({"email": "x" * 255}, "email", "too_long", "must be at most 254 characters long"),
    ({"state": "XX"}, "state", "not_allowed", "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA"),
    ({"kind": None}, "kind", "not_allowed", "must be one of a, b, not null"),
    ({"kind": "c"}, "kind", "not_allowed", "must be one of a, b"),
    ({"priority": 3}, "priority", "not_allowed", "must be one of 1, 2"),
    ({"names": []}, "names", "too_short", "must have at least 1 item"),
    ({"names": ["a", "b", "c"]}, "names", "too_long", "must have at most 2 items"),
    ({"names": ["a", 5]}, "names[1]", "invalid_type", "must be a string, not a whole number"),
    ({"parts": [{}]}, "parts[0].name", "required", "is required"),
    ({"parts": ["b"]}, "parts[0]", "not_allowed", "must be one of a"),
    ({"texts": {"x": 1}}, "texts.x", "invalid_type", "must be a string, not a whole number"),
    ({"txet": "a"}, "txet", "unknown", "is unknown; did you mean text?"),
    ({"plan_manager_id": "a"}, "plan_manager_id", "unknown", "is unknown; the header X-Plan-Manager-Id says it"),
]  # fmt: skip


@pytest.mark.parametrize("values, field, code, message", CODES)
def test_an_error_has_its_code(values: dict[str, Any], field: str, code: str, message: str) -> None:
    _, [error] = validate(Everything, values)
    assert (error.field, error.code, error.message) == (field, code, message)
    assert (error.allowed is not UNSET) is (code == "not_allowed")


def test_all_errors_are_found_together() -> None:
    values = {"text": 5, "names": [1, "abcd"], "unknown": 1, "parts": [{"name": ""}, "b"]}
    _, errors = validate(Everything, values)
    assert [each.field for each in errors] == ["unknown", "text", "names[0]", "names[1]", "parts[0].name", "parts[1]"]


def test_names_are_suggested_only_if_they_are_similar() -> None:
    [update] = [each.body for name, each in ALL_OPERATIONS.items() if name == "PUT /participants/{participant_id}"]
    assert update
    for name, suggested in (("firstname", "first_name"), ("event_id", None), ("actor", None), ("emial", "email")):
        _, [error] = validate(update, {name: "x"})
        assert ("did you mean" in error.message) is (suggested is not None)
        assert suggested is None or f"did you mean {suggested}?" in error.message


class Filter(Query):
    since: AwareDatetime | UnsetType = UNSET


def test_a_datetime_can_be_out_of_range() -> None:
    _, [error] = validate(Filter, {"since": "0001-01-01T00:00:00+10:00"})
    assert error.message == "must be between the years 1 and 9999 in UTC"
    assert validate(Filter, {"since": "9999-12-31T23:59:59Z"})[0]
    for moment in ("0002-01-01T00:00:00Z", "2026-01-02T03:04:05Z", "9998-12-31T23:59:59-14:00"):
        assert validate(Everything, {"moment": moment})[0] == Everything(moment=datetime.fromisoformat(moment))


@pytest.mark.parametrize("amount", ["999999999999999999", "0.0000000000000000000001", "-1E+17", "1E-99", "12.50"])
def test_a_number_that_arithmetic_takes_is_left_to_the_rules_of_its_field(amount: str) -> None:
    assert validate(Everything, {"amount": Decimal(amount)}) == (Everything(amount=Decimal(amount)), [])
