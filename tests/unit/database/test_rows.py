"""Records as Python values: structs with their nested structs, lists, JSON as it stands, plain values."""

from typing import Annotated
from uuid import UUID

import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from plankeeper.database.row_mapping import columns, row_factory, value_lists


class Place(Struct):
    """Two columns, of which the second may be null."""

    id: int
    name: str | None


class Item(Struct):
    """An item of a list of structs."""

    id: UUID
    count: int


class PlainRow(Struct):
    """No field but plain values."""

    id: int
    name: Annotated[str | None, Meta(description="Bare within.")]
    tags: list[str]


class NestedRow(Struct):
    """Nested structs of all kinds, with plain fields before, between and after them."""

    id: int
    home: Place
    work: Annotated[Place | UnsetType, Meta(description="Left out where there is none.")]
    note: str | None
    items: list[Item]
    data: Raw | None
    end: int


class KeywordRow(Struct, kw_only=True):
    """Filled by name."""

    id: int
    name: str = "nobody"
    place: Place | UnsetType = UNSET


def test_the_columns_of_a_struct_are_its_fields_and_those_of_its_nested_structs() -> None:
    assert columns(PlainRow) == ["id", "name", "tags"]
    assert columns(NestedRow) == [
        "id", "home_id", "home_name", "work_id", "work_name", "note", "items", "data", "end",
    ]  # fmt: skip
    assert columns(KeywordRow) == ["id", "name", "place_id", "place_name"]


@pytest.mark.parametrize("kind, value", [(int, 7), (str, "x"), (bool, False), (UUID, UUID(int=1))])
def test_a_plain_type_reads_the_first_column(kind: type, value: object) -> None:
    assert row_factory(kind)((value,)) == value


def test_a_plain_struct_is_filled_in_column_order() -> None:
    assert row_factory(PlainRow)((1, None, ["a"])) == PlainRow(1, None, ["a"])


def test_a_struct_with_nested_structs_is_filled_from_its_columns() -> None:
    items = '[{"id": "00000000-0000-0000-0000-000000000001", "count": 2}]'
    read = row_factory(NestedRow)((1, 2, "home", 3, "work", "note", items, '{"a": [1.50]}', 9))
    assert read == NestedRow(
        1, Place(2, "home"), Place(3, "work"), "note", [Item(UUID(int=1), 2)], read.data, 9
    )  # fmt: skip
    assert bytes(read.data or b"") == b'{"a": [1.50]}'


def test_an_optional_nested_struct_is_unset_when_its_first_column_is_null() -> None:
    read = row_factory(NestedRow)((1, None, None, None, None, None, "[]", None, 9))
    assert read == NestedRow(1, Place(None, None), UNSET, None, [], None, 9)  # type: ignore[arg-type]


def test_only_the_first_column_decides_whether_a_nested_struct_is_present() -> None:
    assert row_factory(KeywordRow)((1, "x", 2, None)) == KeywordRow(id=1, name="x", place=Place(2, None))
    assert row_factory(KeywordRow)((1, "x", None, "unseen")) == KeywordRow(id=1, name="x")


def test_a_record_of_another_length_is_rejected() -> None:
    for record in ((1, "x"), (1, "x", [], 4)):
        with pytest.raises(TypeError):
            row_factory(PlainRow)(record)


def test_a_list_with_invalid_items_is_rejected() -> None:
    with pytest.raises(ValueError, match="count"):
        row_factory(NestedRow)(
            (1, 2, "home", 3, "work", "note", '[{"id": "00000000-0000-0000-0000-000000000001"}]', None, 9)
        )


def test_row_factories_are_cached() -> None:
    assert row_factory(NestedRow) is row_factory(NestedRow)


def test_structs_become_one_list_for_each_column_even_without_structs() -> None:
    first, second = Item(UUID(int=1), 3), Item(UUID(int=2), 4)
    assert value_lists(Item, [first, second]) == [[first.id, second.id], [3, 4]]
    assert value_lists(Item, []) == [[], []]
