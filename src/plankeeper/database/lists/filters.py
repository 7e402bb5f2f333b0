"""The filters of a list: each is a field of the list's query and a condition in SQL."""

from typing import LiteralString, NamedTuple


class Filter(NamedTuple):
    """A condition on the value of a field, `{}`, or on the values of a tuple, `{0}` and `{1}`.

    `several`: the condition on a list of values, for a field that accepts one or several.
    """

    field: str
    condition: LiteralString
    several: LiteralString | None = None


def enum_filter(field: str, column: LiteralString, type_: LiteralString = "text") -> Filter:
    """The filter of one or several values of a column."""
    return Filter(field, column + " = {}", column + " = any ({}::" + type_ + "[])")


def number_filter(field: LiteralString, digits: LiteralString) -> Filter:
    """The filter of a number that is the same with and without spaces; other texts are compared as they are."""
    spaceless: LiteralString = f"replace({field}, ' ', '')"
    is_same: LiteralString = f"{spaceless} = replace({{0}}, ' ', '')"
    is_number: LiteralString = f"{spaceless} ~ '^[0-9]{{{{{digits}}}}}$'"
    return Filter(field, f"{is_same} and ({field} = {{0}} or {is_number})")


IDS = Filter("id", "id = any ({}::uuid[])")
UPDATED_SINCE = Filter("updated_since", "updated_at >= {}")
EXTERNAL_ID = Filter("external_id", "external_id = {}")
EMAIL = Filter("email", "lower(email) = lower({})")
