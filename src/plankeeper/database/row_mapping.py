"""Records become structs: the columns of a statement stand in the order of the struct's fields."""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, signature
from operator import itemgetter
from typing import Annotated, Any, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import fields

T = TypeVar("T")
Record = Sequence[Any]
Taker = Callable[[Record], Any]  # makes the value of a field of a whole record


def columns(shape: type[Struct]) -> list[str]:
    """The columns that a statement filling `shape` answers; a nested struct's stand as `<field>_<member>`."""
    names: list[str] = []
    for field in fields(shape):
        nested = _nested(field.type)
        inner = columns(nested) if nested else []
        names += [f"{field.encode_name}_{name}" for name in inner] or [field.encode_name]
    return names


@cache
def reader(shape: type[T]) -> Callable[[Record], T]:
    """What makes a `shape` of a record: a struct, or the value itself of a record of one column.

    A nested struct takes as many columns as it has members, and is left out (or null) where its first one is null
    and its field may be absent. A list of structs and a `Raw` come as JSON text.
    """
    if not issubclass(shape, Struct):
        return lambda record: record[0]
    make = _maker(shape)
    lead, takers = _takers(shape)
    if not takers:
        return make

    def read(record: Record) -> T:
        values = [*record[:lead]]
        for take in takers:
            values.append(take(record))  # noqa: PERF401 - a comprehension is a call more a row, a tenth of its time
        return make(values)

    return read


def _takers(shape: type[Struct]) -> tuple[int, list[Taker]]:
    """How many columns stand as they are at first, and what takes the value of each field behind them."""
    takers: list[Taker] = []
    at = lead = 0
    for field in fields(shape):
        width, take = _taker(field.type, at)
        at += width
        if take is None and not takers:
            lead = at
        else:
            takers.append(take or itemgetter(at - 1))
    return lead, takers


def _maker(shape: type[T]) -> Callable[[Record], T]:
    names = shape.__struct_fields__  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue, reportUnknownMemberType]
    if any(each.kind is Parameter.KEYWORD_ONLY for each in signature(shape).parameters.values()):
        return lambda values: shape(**dict(zip(names, values, strict=True)))  # pyright: ignore[reportUnknownArgumentType]
    return lambda values: shape(*values)


def _taker(annotation: Any, at: int) -> tuple[int, Taker | None]:
    """How many columns a field takes from `at` on, and what makes its value; null where that is the column's own."""
    annotation = _bare(annotation)
    nested = _nested(annotation)
    if nested:
        make: Callable[[Record], Any] = reader(nested)
        end = at + len(columns(nested))
        if msgspec.UnsetType in get_args(annotation):
            return end - at, lambda record: UNSET if record[at] is None else make(record[at:end])
        return end - at, lambda record: make(record[at:end])
    if annotation is Raw or Raw in get_args(annotation):
        return 1, lambda record: None if record[at] is None else Raw(record[at].encode())
    item = get_args(annotation)
    if item and isinstance(item[0], type) and issubclass(item[0], Struct):
        decoder = msgspec.json.Decoder(annotation)
        return 1, lambda record: decoder.decode(record[at])
    return 1, None


def _bare(annotation: Any) -> Any:
    return _bare(get_args(annotation)[0]) if get_origin(annotation) is Annotated else annotation


def _nested(annotation: Any) -> type[Struct] | None:
    """The struct that a field holds, itself or in a union; not one in a list."""
    annotation = _bare(annotation)
    if get_origin(annotation) is list:
        return None
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None
