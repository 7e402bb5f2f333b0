"""What becomes of a record: structs with their nested structs, lists, JSON as it stands, plain values."""

from typing import Annotated
from uuid import UUID

import pytest
from msgspec import UNSET, Meta, Raw, Struct, UnsetType

from plankeeper.database.row_mapping import columns, row_factory


class Place(Struct):
    """Two columns, of which the second may be null."""

    id: int
    name: str | None


class Item(Struct):
    """What a list of structs is made of."""

    id: UUID
    count: int


class Plain(Struct):
    """No field but plain values."""

    id: int
    name: Annotated[str | None, Meta(description="Bare within.")]
    tags: list[str]


class Visit(Struct):
    """Nested structs of all kinds, with plain fields before, between and after them."""

    id: int
    home: Place
    work: Annotated[Place | UnsetType, Meta(description="Left out where there is none.")]
    note: str | None
    items: list[Item]
    data: Raw | None
    end: int


class Named(Struct, kw_only=True):
    """Filled by name."""

    id: int
    name: str = "nobody"
    place: Place | UnsetType = UNSET


def test_the_columns_of_a_struct_are_its_fields_and_those_of_its_nested_structs() -> None:
    assert columns(Plain) == ["id", "name", "tags"]
    assert columns(Visit) == [
        "id", "home_id", "home_name", "work_id", "work_name", "note", "items", "data", "end",
    ]  # fmt: skip
    assert columns(Named) == ["id", "name", "place_id", "place_name"]


@pytest.mark.parametrize("kind, value", [(int, 7), (str, "x"), (bool, False), (UUID, UUID(int=1))])
def test_a_plain_type_is_the_first_column(kind: type, value: object) -> None:
    assert row_factory(kind)((value,)) == value


def test_a_plain_struct_is_filled_in_order() -> None:
    assert row_factory(Plain)((1, None, ["a"])) == Plain(1, None, ["a"])


def test_a_struct_is_filled_with_what_its_columns_make() -> None:
    items = '[{"id": "00000000-0000-0000-0000-000000000001", "count": 2}]'
    read = row_factory(Visit)((1, 2, "home", 3, "work", "note", items, '{"a": [1.50]}', 9))
    assert read == Visit(
        1, Place(2, "home"), Place(3, "work"), "note", [Item(UUID(int=1), 2)], read.data, 9
    )  # fmt: skip
    assert bytes(read.data or b"") == b'{"a": [1.50]}'


def test_a_nested_struct_is_left_out_where_its_first_column_is_null_and_it_may_be_absent() -> None:
    read = row_factory(Visit)((1, None, None, None, None, None, "[]", None, 9))
    assert read == Visit(1, Place(None, None), UNSET, None, [], None, 9)  # type: ignore[arg-type]


def test_only_the_first_column_decides_whether_a_nested_struct_is_there() -> None:
    assert row_factory(Named)((1, "x", 2, None)) == Named(id=1, name="x", place=Place(2, None))
    assert row_factory(Named)((1, "x", None, "unseen")) == Named(id=1, name="x")


def test_a_record_of_another_length_is_no_struct() -> None:
    for record in ((1, "x"), (1, "x", [], 4)):
        with pytest.raises(TypeError):
            row_factory(Plain)(record)


def test_a_list_whose_items_are_not_as_the_struct_says_is_refused() -> None:
    with pytest.raises(ValueError, match="count"):
        row_factory(Visit)(
            (1, 2, "home", 3, "work", "note", '[{"id": "00000000-0000-0000-0000-000000000001"}]', None, 9)
        )


def test_a_reader_is_made_once() -> None:
    assert row_factory(Visit) is row_factory(Visit)
