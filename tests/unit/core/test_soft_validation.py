"""Warnings about unusual values, and unusual values without a warning."""

from datetime import UTC, date, datetime
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.soft_validation import ValueWarning, states_of_postcode
from plankeeper.resources.participants import rules as participants
from plankeeper.resources.participants.schemas import ParticipantRow
from plankeeper.resources.providers import rules as providers
from plankeeper.resources.providers.schemas import Provider
from plankeeper.resources.team_members import rules as team_members
from plankeeper.resources.team_members.schemas import TeamMemberRow

TODAY = date(2026, 11, 21)
IDENTITY: Any = {"id": UUID(int=1), "created_at": datetime(2026, 1, 1, tzinfo=UTC)}
PHONE = "should have 8 to 15 digits, such as 0491 570 156"


@pytest.mark.parametrize(
    "values, warnings",
    [
        ({}, []),
        ({"first_name": None}, [("first_name", "The participant has no name")]),
        ({"first_name": " "}, [("first_name", "The participant has no name")]),
        ({"first_name": None, "preferred_name": "Bee"}, []),
        ({"participant_number": "430205409"}, []),
        ({"participant_number": "12"}, [("participant_number", "should have 9 digits, such as 430 205 409")]),
        ({"participant_number": "43020540x"}, [("participant_number", "should have 9 digits, such as 430 205 409")]),
        ({"participant_number": "530205409"}, [("participant_number", "should begin with 43")]),
        ({"date_of_birth": TODAY}, []),
        ({"date_of_birth": date(2026, 11, 22)}, [("date_of_birth", "is in the future")]),
        ({"date_of_birth": date(1899, 12, 31)}, [("date_of_birth", "is before 1900")]),
        ({"date_of_birth": date(1900, 1, 1)}, []),
        ({"phone_number": "abc"}, [("phone_number", PHONE)]),
        ({"plan_start_date": TODAY, "plan_end_date": TODAY}, []),
        (
            {"plan_start_date": TODAY, "plan_end_date": date(2020, 1, 1)},
            [("plan_end_date", "is before the plan start date, 21 Nov 2026")],
        ),
        ({"date_ceased": TODAY, "status": "Inactive"}, []),
        (
            {"date_ceased": TODAY, "status": "Lead"},
            [("status", "is Lead, although the participant has an exit date")],
        ),
        (
            {"first_name": None, "phone_number": "1", "postcode": "99"},
            [
                ("first_name", "The participant has no name"),
                ("phone_number", PHONE),
                ("postcode", "should have 4 digits"),
            ],
        ),
    ],
)
def test_implausible_values_of_a_participant(values: dict[str, Any], warnings: list[tuple[str, str]]) -> None:
    participant = ParticipantRow(**IDENTITY, **({"first_name": "Ann"} | values))
    assert participants.find_value_warnings(participant, TODAY) == [ValueWarning(*each) for each in warnings]


@pytest.mark.parametrize(
    "values, warnings",
    [
        ({"abn": "51 824 753 556"}, []),
        ({"abn": "51824753556"}, []),
        ({"abn": "51-824-753-556"}, []),
        ({"entity_name": ""}, [("entity_name", "The provider has no name")]),
        ({"abn": "51824753557"}, [("abn", "has a wrong digit: its check digits don’t match")]),
        ({"abn": "5182475355"}, [("abn", "should have 11 digits, such as 51 824 753 556")]),
        ({"abn": "５１８２４７５３５５６"}, [("abn", "should have 11 digits, such as 51 824 753 556")]),
        ({"primary_phone_number": "12 34"}, [("primary_phone_number", PHONE)]),
        ({"postcode": "3000", "state": "TAS"}, [("postcode", "3000 is in VIC, not in TAS")]),
    ],
)
def test_implausible_values_of_a_provider(values: dict[str, Any], warnings: list[tuple[str, str]]) -> None:
    provider = Provider(**IDENTITY, updated_at=IDENTITY["created_at"], **({"entity_name": "Acme"} | values))
    assert providers.find_value_warnings(provider) == [ValueWarning(*each) for each in warnings]


@pytest.mark.parametrize(
    "values, warnings",
    [
        ({"phone_number": "13 11 14", "secondary_phone_number": "+61 491 570 156"}, []),
        (
            {"phone_number": "123456", "secondary_phone_number": "1" * 16},
            [("phone_number", PHONE), ("secondary_phone_number", PHONE)],
        ),
        ({"secondary_email": "ann@example.com"}, []),
        ({"secondary_email": "ann at example"}, [("secondary_email", "isn’t an email address")]),
        ({"permissions": ["approve_invoices", "view_invoices"]}, []),
        ({"permissions": ["approve_invoices", "no_access"]}, []),
        ({"permissions": ["approve_invoices"]}, [("permissions", team_members.APPROVES_UNSEEN)]),
        ({"postcode": "0100"}, [("postcode", "0100 isn’t a postcode in Australia")]),
        ({"postcode": "2620", "state": "ACT"}, []),
        ({"postcode": "2620", "state": "WA"}, [("postcode", "2620 is in NSW and ACT, not in WA")]),
    ],
)
def test_implausible_values_of_a_team_member(values: dict[str, Any], warnings: list[tuple[str, str]]) -> None:
    member = TeamMemberRow(participant_id="", id="", user_id="", **values)
    assert team_members.find_value_warnings(member) == [ValueWarning(*each) for each in warnings]


def test_each_postcode_has_one_main_state_or_none() -> None:
    states = {postcode: states_of_postcode(postcode) for postcode in range(10_000)}
    assert [code for code, found in states.items() if not found] == [*range(200), *range(300, 800)]
    assert {code for code, found in states.items() if len(found) > 1} == {
        872,
        2406,
        2540,
        2611,
        2620,
        3585,
        3586,
        3644,
        3691,
        3707,
        4375,
        4377,
        4380,
        4383,
        4385,
        4825,
    }  # fmt: skip - postcodes on a border
    assert states[200] == ("ACT",)
    assert states[7250] == ("TAS",)
