"""The fields of columns, and the resource of a file, from the names that people use."""

import pytest

from plankeeper.imports.columns import (
    field_names,
    fold,
    guess_mapping,
    guess_resource,
    is_certain,
)
from plankeeper.resources.registry import RESOURCES


@pytest.mark.parametrize(
    "column, field",
    [
        ("Surname", "last_name"), ("Last name", "last_name"), ("FAMILY NAME", "last_name"), ("DOB", "date_of_birth"),
        ("NDIS Number", "participant_number"), ("NDIS no.", "participant_number"), ("Mobile", "phone_number"),
        ("Suburb", "city"), ("Post code", "postcode"), ("Plan start", "plan_start_date"), ("Plan end", "plan_end_date"),
        ("Account manager", "account_manager_id"), ("first_name", "first_name"), ("First Name", "first_name"),
        ("Shoe size", ""),
    ],
)  # fmt: skip
def test_a_column_of_a_participant_is_known_by_its_usual_names(column: str, field: str) -> None:
    assert guess_mapping("participants", [column], {}) == [field]


def test_a_field_is_used_once() -> None:
    assert guess_mapping("participants", ["Phone", "Mobile"], {}) == ["phone_number", ""]


def test_earlier_choices_come_first() -> None:
    remembered = {"mobile": "preferred_name", "nr": "participant_number", "shoesize": ""}
    columns = ["Mobile", "Nr.", "Shoe size"]
    mapping = guess_mapping("participants", columns, remembered)
    assert mapping == ["preferred_name", "participant_number", ""]
    assert is_certain(columns, mapping, remembered)
    assert not is_certain([*columns, "Other"], [*mapping, ""], remembered)


@pytest.mark.parametrize("columns, mapping", [(["id"], ["id"]), (["Shoe size"], [""])])
def test_columns_without_a_value_are_not_certain(columns: list[str], mapping: list[str]) -> None:
    assert not is_certain(columns, mapping, {})


def test_the_column_of_problems_is_left_out() -> None:
    assert is_certain(["Surname", "Problem"], ["last_name", ""], {})


@pytest.mark.parametrize("resource", [each for each in RESOURCES if each != "invoice-view-sessions"])
def test_a_file_with_the_fields_of_a_resource_is_recognised(resource: str) -> None:
    assert guess_resource(field_names(resource), {}) == resource
    assert guess_mapping(resource, field_names(resource), {}) == field_names(resource)


@pytest.mark.parametrize(
    "columns, resource",
    [
        (["First name", "Surname", "DOB"], "participants"),
        (["Name", "ABN", "Suburb"], "providers"),
        (["NDIS number", "First name", "Relationship", "Permissions"], "team-members"),
        (["Reason"], "exit-reasons"),
        (["Shoe size", "Surname", "Hat", "Coat"], None),
        ([], None),
    ],
)
def test_the_resource_is_guessed(columns: list[str], resource: str | None) -> None:
    assert guess_resource(columns, {}) == resource


def test_names_are_folded() -> None:
    assert fold(" NDIS No. ") == fold("ndis_no") == "ndisno"
