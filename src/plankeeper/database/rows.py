"""Records become structs: the columns of a statement stand in the order of the struct's fields."""

from collections.abc import Callable, Sequence
from functools import cache
from inspect import Parameter, signature
from typing import Annotated, Any, NamedTuple, TypeVar, get_args, get_origin

import msgspec
from msgspec import UNSET, Raw, Struct
from msgspec.structs import fields

T = TypeVar("T")
Record = Sequence[Any]


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
    parts = _parts(shape)
    if all(part.make is None for part in parts):
        return make
    return lambda record: make(_taken(record, parts))


class _Part(NamedTuple):
    """Columns from `start` to `stop`: values as they are, or what one value is made of."""

    start: int
    stop: int
    make: Callable[[Record], Any] | None


def _taken(record: Record, parts: Sequence[_Part]) -> list[Any]:
    values: list[Any] = []
    for start, stop, make in parts:
        if make is None:
            values.extend(record[start:stop])
        else:
            values.append(make(record[start:stop]))
    return values


def _parts(shape: type[Struct]) -> list[_Part]:
    """The columns of a shape, neighbours that are taken as they are in one part."""
    parts: list[_Part] = []
    at = 0
    for field in fields(shape):
        width, make = _taker(field.type)
        if make is None and parts and parts[-1].make is None:
            parts[-1] = parts[-1]._replace(stop=at + 1)
        else:
            parts.append(_Part(at, at + width, make))
        at += width
    return parts


def _maker(shape: type[T]) -> Callable[[Record], T]:
    names = shape.__struct_fields__  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue, reportUnknownMemberType]
    if any(each.kind is Parameter.KEYWORD_ONLY for each in signature(shape).parameters.values()):
        return lambda values: shape(**dict(zip(names, values, strict=True)))  # pyright: ignore[reportUnknownArgumentType]
    return lambda values: shape(*values)


def _taker(annotation: Any) -> tuple[int, Callable[[Record], Any] | None]:
    """How many columns a field takes, and what makes its value of them; null where the value stands as it is."""
    annotation = _bare(annotation)
    nested = _nested(annotation)
    if nested:
        make: Callable[[Record], Any] = reader(nested)
        if msgspec.UnsetType in get_args(annotation):
            return len(columns(nested)), lambda part: UNSET if part[0] is None else make(part)
        return len(columns(nested)), make
    if annotation is Raw or Raw in get_args(annotation):
        return 1, lambda part: None if part[0] is None else Raw(part[0].encode())
    item = get_args(annotation)
    if item and isinstance(item[0], type) and issubclass(item[0], Struct):
        decoder = msgspec.json.Decoder(annotation)
        return 1, lambda part: decoder.decode(part[0])
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
