"""Warnings about unusual values are shown before the values are saved, and these values are saved once confirmed."""

from typing import Any

import pytest

from support.client import Client
from support.console import Browser
from support.form_helpers import event_summaries, form_fields, require_linked_errors, save_anyway, shown_warnings
from support.server import RunningServer

PEOPLE, PROVIDERS = "/console/participants", "/console/providers"


@pytest.mark.parametrize(
    "values, messages",
    [
        ({"first_name": "", "participant_number": "430205409"}, ["The participant has no name."]),
        ({"participant_number": "12"}, ["NDIS number should have 9 digits, such as 430 205 409."]),
        ({"date_of_birth": "1/1/1899"}, ["Date of birth is before 1900."]),
        ({"date_of_birth": "1 Jan 2200"}, ["Date of birth is in the future."]),
        ({"phone_number": "abc"}, ["Phone should have 8 to 15 digits, such as 0491 570 156."]),
        ({"postcode": "99"}, ["Postcode should have 4 digits."]),
        ({"postcode": "7000", "state": "WA"}, ["Postcode 7000 is in TAS, not in WA."]),
        (
            {"plan_start_date": "15 Apr 2026", "plan_end_date": "1/1/2020", "phone_number": "1"},
            [
                "Phone should have 8 to 15 digits, such as 0491 570 156.",
                "Plan end date is before the plan start date, 15 Apr 2026.",
            ],
        ),
    ],
)
def test_an_implausible_participant_is_shown_before_it_is_saved(
    owner: Browser, client: Client, values: dict[str, str], messages: list[str]
) -> None:
    form = form_fields(owner, f"{PEOPLE}/new") | {"first_name": "Ann"} | values
    response = owner.submit(PEOPLE, form)
    assert (response.status_code, "<title>Check: New participant" in response.text) == (422, True)
    assert response.text.count("field-warning") == len(messages)
    for message in messages:
        assert response.text.count(message) == 2  # in the summary and beside the field
    assert "Save anyway" in response.text
    assert client.get("/participants").json()["data"] == []
    assert save_anyway(owner, PEOPLE, form).status_code == 303
    assert len(client.get("/participants").json()["data"]) == 1


def test_a_number_on_record_links_to_the_other_person(owner: Browser, client: Client) -> None:
    for number in ("430205409", "430 205 410"):
        other = client.create("/participants", {"first_name": "Kim", "last_name": "Ray", "participant_number": number})
        form = form_fields(owner, f"{PEOPLE}/new") | {"first_name": "Ann", "participant_number": number}
        response = owner.submit(PEOPLE, form | {"participant_number": number.replace(" ", "")})
        assert response.text.count("NDIS number is already the number of Kim Ray.") == 2
        assert f'<a href="{PEOPLE}/{other["id"]}">View the other record</a>' in response.text
    path = f"{PEOPLE}/{other['id']}/edit/person"
    assert owner.submit(path, form_fields(owner, path) | {"gender": "x"}).status_code == 303  # its own number


def test_a_confirmation_holds_only_for_the_values_that_were_shown(owner: Browser, client: Client) -> None:
    form = form_fields(owner, f"{PEOPLE}/new") | {"first_name": "Ann", "phone_number": "abc", "postcode": "99"}
    confirmed = shown_warnings(owner.submit(PEOPLE, form).text)
    assert len(confirmed) == 2
    anyway = {"save_anyway": "yes", "confirmed_warning": confirmed}
    attempts: list[dict[str, Any]] = [
        form | anyway | {"phone_number": "xyz"},  # another value of the same field
        form | anyway | {"date_of_birth": "1/1/1800"},  # another warning
        form | anyway | {"confirmed_warning": confirmed[:1]},
        form | {"confirmed_warning": confirmed},  # "Add participant", not "Save anyway"
        form | {"save_anyway": "yes"},
        form | {"save_anyway": "yes", "confirmed_warning": "*"},
    ]
    for attempt in attempts:
        response = owner.submit(PEOPLE, attempt)
        assert (response.status_code, "Check these values" in response.text) == (422, True)
    assert client.get("/participants").json()["data"] == []
    same = form | {"plan_start_date": "2/1/2026", "plan_end_date": "1/1/2026", "phone_number": "", "postcode": ""}
    shown = shown_warnings(owner.submit(PEOPLE, same).text)
    # The page shows dates in its own format, with which they come back.
    same |= {"plan_start_date": "2 Jan 2026", "plan_end_date": "1 Jan 2026", "last_name": "Twice"}
    assert owner.submit(PEOPLE, same | {"save_anyway": "yes", "confirmed_warning": shown}).status_code == 303
    fewer = form | anyway | {"postcode": "7000"}
    assert owner.submit(PEOPLE, fewer).status_code == 303


def test_errors_and_implausible_values_are_shown_together(owner: Browser, client: Client) -> None:
    form = form_fields(owner, f"{PEOPLE}/new") | {
        "first_name": "Ann", "email": "x", "date_of_birth": "31/2/1990", "phone_number": "abc", "city": "Hobart",
        "plan_start_date": "1/7/2026", "plan_end_date": "1/7/2025",
    }  # fmt: skip
    response = owner.submit(PEOPLE, form)
    assert require_linked_errors(response.text) == ["date_of_birth", "email"]
    assert [f'<a href="#{name}">' in response.text for name in ("phone_number", "plan_end_date")] == [True, True]
    assert ("Save anyway" in response.text, "<title>Error: " in response.text) == (False, True)
    # Values are kept, and dates that were understood are shown unambiguously.
    kept = ("x", "31/2/1990", "abc", "Hobart", "1 Jul 2026", "1 Jul 2025")
    assert [f'value="{value}"' in response.text for value in kept] == [True] * len(kept)
    assert owner.submit(PEOPLE, form | {"save_anyway": "yes"}).status_code == 422
    assert client.get("/participants").json()["data"] == []


def test_what_was_implausible_before_is_not_asked_again(server: RunningServer, owner: Browser, client: Client) -> None:
    made = client.create("/participants", {"first_name": "Ann", "phone_number": "abc", "participant_number": "12"})
    path = f"{PEOPLE}/{made['id']}/edit/contact"
    assert owner.submit(path, form_fields(owner, path) | {"email": "ann@example.com"}).status_code == 303
    worse = form_fields(owner, path) | {"phone_number": "13"}
    assert owner.submit(path, worse | {"phone_number": "0491 570 156"}).status_code == 303
    worse = form_fields(owner, path) | {"phone_number": "13"}
    assert owner.submit(path, worse).status_code == 422
    assert save_anyway(owner, path, worse).status_code == 303
    assert len(event_summaries(server, made["id"])) == 4


def test_a_participant_cannot_lose_name_and_number(owner: Browser, client: Client) -> None:
    made = client.create("/participants", {"first_name": "Ann"})
    path = f"{PEOPLE}/{made['id']}/edit/person"
    response = owner.submit(path, form_fields(owner, path) | {"first_name": " "})
    assert (response.status_code, require_linked_errors(response.text)) == (422, ["first_name"])


@pytest.mark.parametrize(
    "values, message",
    [
        ({"entity_name": ""}, "The provider has no name."),
        ({"abn": "51824753557"}, "ABN has a wrong digit: its check digits don’t match."),
        ({"abn": "123"}, "ABN should have 11 digits, such as 51 824 753 556."),
        ({"abn": "51 824 753 556"}, "ABN is already the ABN of Calm Care."),
        ({"primary_phone_number": "x"}, "Phone should have 8 to 15 digits, such as 0491 570 156."),
        ({"postcode": "7000", "state": "WA"}, "Postcode 7000 is in TAS, not in WA."),
    ],
)
def test_an_implausible_provider_is_shown_before_it_is_saved(
    owner: Browser, client: Client, values: dict[str, str], message: str
) -> None:
    calm = client.create("/providers", {"entity_name": "Calm Care", "abn": "51824753556"})
    form = form_fields(owner, f"{PROVIDERS}/new") | {"entity_name": "Acme"} | values
    response = owner.submit(PROVIDERS, form)
    assert (response.status_code, response.text.count(message)) == (422, 2)
    assert (f'<a href="{PROVIDERS}/{calm["id"]}">' in response.text) == ("already" in message)
    assert save_anyway(owner, PROVIDERS, form).status_code == 303
    path = f"{PROVIDERS}/{client.get('/providers').json()['data'][1]['id']}/edit"
    assert owner.submit(path, form_fields(owner, path) | {"city": "Hobart"}).status_code == 303  # saved before
