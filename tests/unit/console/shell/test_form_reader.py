"""Values of a form: dates, amounts and texts as people type them, and the errors of all fields together."""

from collections.abc import Callable
from datetime import date
from decimal import Decimal

import pytest

from plankeeper.console.shell.form_reader import FormReader, read_date
from plankeeper.console.shell.forms import Form
from plankeeper.core.errors import ValidationError


def errors_of(form: Form, read: Callable[[FormReader], object]) -> dict[str, str]:
    """The errors that the block raises at its end."""
    try:
        with FormReader(form) as fields:
            read(fields)
    except ValidationError as error:
        return {each.field: each.message for each in error.errors}
    raise AssertionError("no error")


def test_values_are_read_as_people_type_them() -> None:
    form = Form([("day", " 3 Nov 2026 "), ("sum", "$1,290.45"), ("reason", " a\r\nb "), ("kind", "b")])
    with FormReader(form) as fields:
        assert fields.read_date("day") == date(2026, 11, 3)
        assert fields.read_amount("sum") == Decimal("1290.45")
        assert fields.read_required_text("reason", 3) == "a\nb"  # a line break is one character
        assert fields.read_choice("kind", {"a": 1, "b": 2}) == 2


def test_optional_values_may_be_missing() -> None:
    with FormReader(Form([("zero", "0")])) as fields:
        assert fields.read_optional_date("day") is None
        assert fields.read_optional_amount("sum") is None
        assert fields.read_optional_amount("zero") == 0
        assert fields.read_text("reason", 3) == ""


def test_the_end_of_the_block_raises_the_errors_of_all_fields() -> None:
    def read(fields: FormReader) -> None:
        fields.read_date("day")
        fields.read_amount("sum")
        fields.read_optional_amount("rest")
        fields.read_text("reason", 3)
        fields.read_choice("kind", {"a": 1})
        fields.reject("file", "is empty")

    assert errors_of(Form([("day", "31 Feb 2026"), ("sum", "many"), ("rest", "NaN"), ("reason", "long")]), read) == {
        "day": "31 Feb 2026 doesn’t exist",
        "sum": "must be an amount, such as 1,290.45",
        "rest": "must be an amount, such as 1,290.45",
        "reason": "must be at most 3 characters long",
        "kind": "must be one of the choices",
        "file": "is empty",
    }


def test_missing_values_have_an_error_each() -> None:
    assert errors_of(Form(), lambda fields: fields.read_date("day")) == {"day": "is required"}
    assert errors_of(Form(), lambda fields: fields.read_amount("sum")) == {"sum": "is required"}
    assert errors_of(Form(), lambda fields: fields.read_required_text("reason", 3)) == {"reason": "is required"}


def test_another_error_of_the_block_stays() -> None:
    def read(fields: FormReader) -> None:
        fields.read_date("day")
        raise LookupError

    with pytest.raises(LookupError):
        errors_of(Form(), read)


def test_one_date() -> None:
    assert read_date(Form([("day", "2026-11-03")]), "day") == date(2026, 11, 3)
    with pytest.raises(ValidationError, match="day: is required"):
        read_date(Form(), "day")
