"""Maps records to structs, and structs to parameters: columns are in the order of the struct's fields."""

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
FieldReader = Callable[[Record], Any]  # returns a field's value from a record


def columns(row_type: type[Struct]) -> list[str]:
    """The columns of a statement for `row_type`; the columns of a nested struct are named `<field>_<nested field>`."""
    names: list[str] = []
    for field in fields(row_type):
        nested = _nested_struct(field.type)
        inner = columns(nested) if nested else []
        names += [f"{field.encode_name}_{name}" for name in inner] or [field.encode_name]
    return names


def value_lists(row_type: type[Struct], rows: Sequence[Struct]) -> list[list[Any]]:
    """The parameters of a statement that reads `rows` with `unnest`: for each field of `row_type`, its values."""
    return [[getattr(row, name) for row in rows] for name in row_type.__struct_fields__]


@cache
def row_factory(row_type: type[T]) -> Callable[[Record], T]:
    """A function that converts a record to `row_type`: a struct, or the value of a single column.

    A nested struct takes one column for each field. If its first column is null and the field may be absent, the
    field is UNSET, and so is a list of structs that is null. Lists of structs, a struct that can be null, and `Raw` are
    read from JSON text.
    """
    if not issubclass(row_type, Struct):
        return lambda record: record[0]
    build = _constructor(row_type)
    plain_count, field_readers = _field_readers(row_type)
    if not field_readers:
        return build

    def make_row(record: Record) -> T:
        values = [*record[:plain_count]]
        for read_field in field_readers:
            values.append(read_field(record))  # noqa: PERF401 - a comprehension costs another call for each row, a tenth of the time
        return build(values)

    return make_row


def _field_readers(row_type: type[Struct]) -> tuple[int, list[FieldReader]]:
    """The number of leading columns that need no conversion, and a reader for each field after them."""
    field_readers: list[FieldReader] = []
    position = plain_count = 0
    for field in fields(row_type):
        width, read_field = _field_reader(field.type, position)
        position += width
        if read_field is None and not field_readers:
            plain_count = position
        else:
            field_readers.append(read_field or itemgetter(position - 1))
    return plain_count, field_readers


def _constructor(row_type: type[T]) -> Callable[[Record], T]:
    names = row_type.__struct_fields__  # pyright: ignore[reportUnknownVariableType, reportAttributeAccessIssue, reportUnknownMemberType]
    if any(each.kind is Parameter.KEYWORD_ONLY for each in signature(row_type).parameters.values()):
        return lambda values: row_type(**dict(zip(names, values, strict=True)))  # pyright: ignore[reportUnknownArgumentType]
    return lambda values: row_type(*values)


def _field_reader(annotation: Any, position: int) -> tuple[int, FieldReader | None]:
    """The number of columns that a field takes from `position`, and its reader; null if it needs no conversion."""
    annotation = _strip_annotated(annotation)
    nested = _nested_struct(annotation)
    if nested:
        build: Callable[[Record], Any] = row_factory(nested)
        end = position + len(columns(nested))
        if msgspec.UnsetType in get_args(annotation):
            return end - position, lambda record: UNSET if record[position] is None else build(record[position:end])
        return end - position, lambda record: build(record[position:end])
    if Raw in map(_strip_annotated, (annotation, *get_args(annotation))):
        return 1, lambda record: None if record[position] is None else Raw(record[position].encode())
    if type(None) in get_args(annotation) and _struct_in(annotation):
        decode = msgspec.json.Decoder(_struct_in(annotation)).decode
        return 1, lambda record: None if record[position] is None else decode(record[position])
    lists = [each for each in (annotation, *get_args(annotation)) if _item_struct(each)]
    if lists:
        decoder = msgspec.json.Decoder(lists[0])
        return 1, lambda record: UNSET if record[position] is None else decoder.decode(record[position])
    return 1, None


def _strip_annotated(annotation: Any) -> Any:
    return _strip_annotated(get_args(annotation)[0]) if get_origin(annotation) is Annotated else annotation


def _item_struct(annotation: Any) -> bool:
    """Whether a type is a list of structs."""
    arguments = get_args(annotation)
    return get_origin(annotation) is list and isinstance(arguments[0], type) and issubclass(arguments[0], Struct)


def _nested_struct(annotation: Any) -> type[Struct] | None:
    """The struct type of a field that has a column for each field of it: unless it can be null, or is in a list."""
    annotation = _strip_annotated(annotation)
    return None if type(None) in get_args(annotation) else _struct_in(annotation)


def _struct_in(annotation: Any) -> type[Struct] | None:
    """The struct type of a field, directly or in a union, but not in a list."""
    if get_origin(annotation) is list:
        return None
    for each in (annotation, *get_args(annotation)):
        if isinstance(each, type) and issubclass(each, Struct):
            return each
    return None
