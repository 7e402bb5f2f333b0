"""The filters of a list: fields of the list's query, each with a condition in SQL."""

from typing import Any, LiteralString, NamedTuple, get_args, get_type_hints


class Filter(NamedTuple):
    """A condition on the value of a field, `{}`, or on the values of a tuple, `{0}` and `{1}`.

    A field of a query declares its filter in its annotation, beside its type and its description. `several`: the
    condition on a list of values, for a field that accepts one or several. `label`: its name in the console.
    """

    condition: LiteralString
    several: LiteralString | None = None
    label: str = ""


def declared_filters(query: type) -> dict[str, Filter]:
    """The filters of a query's fields."""
    hints: dict[str, Any] = get_type_hints(query, include_extras=True)
    found = {name: [each for each in get_args(hint) if isinstance(each, Filter)] for name, hint in hints.items()}
    return {name: filters[0] for name, filters in found.items() if filters}


def enum_filter(column: LiteralString, type_: LiteralString = "text", *, label: str = "") -> Filter:
    """The filter of one or several values of a column."""
    return Filter(column + " = {}", column + " = any ({}::" + type_ + "[])", label)


def number_filter(column: LiteralString, digits: LiteralString, *, label: str = "") -> Filter:
    """The filter of a number that is the same with and without spaces; other texts are compared as they are."""
    spaceless: LiteralString = f"replace({column}, ' ', '')"
    is_same: LiteralString = f"{spaceless} = replace({{0}}, ' ', '')"
    is_number: LiteralString = f"{spaceless} ~ '^[0-9]{{{{{digits}}}}}$'"
    return Filter(f"{is_same} and ({column} = {{0}} or {is_number})", label=label)
