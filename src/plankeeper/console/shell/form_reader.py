"""Reads the dates, amounts and texts of a form, and reports the errors of all its fields together."""

from collections.abc import Mapping
from datetime import date
from decimal import Decimal
from types import TracebackType
from typing import Self, TypeVar

from plankeeper.console.shell.forms import Form, parse_amount
from plankeeper.core.dates import DateError, parse_date
from plankeeper.core.errors import FieldError, ValidationError

T = TypeVar("T")


class FormReader:
    """The values of a form's fields, read in a `with` block, which raises ValidationError at its end.

    The error lists all fields with errors. Until then, such a field has any value of its type.
    """

    def __init__(self, form: Form) -> None:
        self.form = form
        self.errors: list[FieldError] = []

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        if error is None and self.errors:
            raise ValidationError(*self.errors)

    def reject(self, name: str, message: str) -> None:
        self.errors.append(FieldError(name, message))

    def read_text(self, name: str, max_length: int) -> str:
        text = self.form.multiline_text(name)
        if len(text) > max_length:
            self.reject(name, f"must be at most {max_length} characters long")
        return text

    def read_required_text(self, name: str, max_length: int) -> str:
        self._require(name)
        return self.read_text(name, max_length)

    def read_date(self, name: str) -> date:
        self._require(name)
        return self.read_optional_date(name) or date.min

    def read_optional_date(self, name: str) -> date | None:
        text = self.form.text(name)
        try:
            return parse_date(text) if text else None
        except DateError as error:
            self.reject(name, str(error))
            return None

    def read_amount(self, name: str) -> Decimal:
        self._require(name)
        return self.read_optional_amount(name) or Decimal(0)

    def read_optional_amount(self, name: str) -> Decimal | None:
        text = self.form.text(name)
        amount = parse_amount(text) if text else None
        if text and amount is None:
            self.reject(name, "must be an amount, such as 1,290.45")
        return amount

    def read_choice(self, name: str, choices: Mapping[str, T]) -> T:
        text = self.form.text(name)
        if text not in choices:
            self.reject(name, "must be one of the choices")
        return choices.get(text, next(iter(choices.values())))

    def _require(self, name: str) -> None:
        if not self.form.text(name):
            self.reject(name, "is required")


def read_date(form: Form, name: str) -> date:
    """The date of a form without other fields that can be wrong. Raises ValidationError."""
    with FormReader(form) as fields:
        return fields.read_date(name)
