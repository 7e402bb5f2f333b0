"""Forms of records that someone else has changed say who changed what, and when."""

import re
from html import escape
from itertools import count
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import WriteContext
from plankeeper.database.client import Transaction
from plankeeper.resources.participants import service, store
from plankeeper.resources.participants.schemas import ParticipantUpdate
from support.client import Client
from support.console import Browser, main_text
from support.factories import PAGES, route_name, seed_plan_manager
from support.form_helpers import form_fields
from support.server import RunningServer

# A page changes the first of these that it has.
CHANGES = {
    "first_name": "Changed",
    "entity_name": "Changed",
    "note_type": "Changed",
    "phone_number": "0491 571 266",
    "city": "Changed",
    "plan_end_date": "31/12/2031",
    "account_manager_id": "",
    "reason_for_leaving": "Changed",
    "external_id": "Changed",
    "text": "Changed",  # of a note
}


def test_every_edit_form_says_who_saved_another_value_and_when(server: RunningServer) -> None:
    numbers = count()
    seeded = seed_plan_manager(server, lambda name: f"{name} {next(numbers)}")
    owner = escape(re.escape(seeded.texts["account.owner_name"]))
    browser, found = seeded.browser(), dict[str, list[bool]]()
    for each in PAGES:
        path = seeded.path(each)
        if each.method != "GET" or 'name="was"' not in (browser.get(path).text if "/edit" in path else ""):
            continue
        before = form_fields(browser, path)
        name, value = next((name, value) for name, value in CHANGES.items() if name in before)
        saved = browser.submit(path, before | {name: value})
        assert saved.status_code == 303, (path, main_text(saved.text))
        late = browser.submit(path, before)
        assert late.status_code == 409, path
        conflicts = re.findall(r"<li>(?:(?!</li>).)*</li>", late.text.partition("Saved by someone else")[2])
        found[route_name(each)] = [bool(re.search(rf"\(changed by {owner} <time ", conflict)) for conflict in conflicts]
    browser.http.close()
    seeded.client.http.close()
    assert len(found) >= 10
    assert found == {name: [True] for name in found}


def test_a_conflict_names_the_latest_change_of_each_field(owner: Browser, client: Client) -> None:
    provider = client.create("/providers", {"entity_name": "Bright Care"})["id"]
    path = f"/console/providers/{provider}/edit"
    form = form_fields(owner, path)
    assert owner.submit(path, form | {"postcode": "7000"}).status_code == 303
    assert owner.submit(path, form_fields(owner, path) | {"city": "Burnie"}).status_code == 303
    client.put(f"/providers/{provider}", {"postcode": "7320"})
    page = main_text(owner.submit(path, form | {"entity_name": "Brighter Care"}).text)
    for conflict in ("Postcode: 7320 (changed by test ", "Suburb: Burnie (changed by Robin Hale "):
        assert conflict in page
    assert ("Name: Bright Care" in page, "Name: Bright Care (changed" in page) == (True, False)  # only here


def test_only_a_field_of_the_form_that_has_another_value_is_a_conflict(owner: Browser, client: Client) -> None:
    participant = client.create("/participants", {"first_name": "Mia", "city": "Hobart"})["id"]
    path = f"/console/participants/{participant}/edit/address"
    form = form_fields(owner, path)
    client.put(f"/participants/{participant}", {"first_name": "Maya"})  # in another section
    assert owner.submit(path, form | {"postcode": "7000"}).status_code == 303
    form = form_fields(owner, path)
    for city in ("Burnie", "Hobart"):  # there and back
        client.put(f"/participants/{participant}", {"city": city})
    assert owner.submit(path, form | {"postcode": "7001"}).status_code == 303
    form = form_fields(owner, path)
    client.put(f"/participants/{participant}", {"city": "Burnie"})
    client.put(f"/participants/{participant}", {"first_name": "Mia"})
    late = owner.submit(path, form | {"postcode": "7002"})
    assert (late.status_code, "Suburb: Burnie (changed by test " in main_text(late.text)) == (409, True)
    stored = client.get(f"/participants/{participant}").json()
    assert (stored["first_name"], stored["city"], stored["postcode"]) == ("Mia", "Burnie", "7001")


def test_the_errors_of_a_form_say_nothing_about_changes_elsewhere(owner: Browser, client: Client) -> None:
    participant = client.create("/participants", {"first_name": "Mia"})["id"]
    path = f"/console/participants/{participant}/edit/plan"
    form = form_fields(owner, path)
    client.put(f"/participants/{participant}", {"city": "Hobart"})
    rejected = owner.submit(path, form | {"plan_end_date": "soon", "onboard_date": "1/7/2026"})
    assert (rejected.status_code, "Saved by someone else" in rejected.text) == (422, False)


def test_a_form_that_is_overtaken_while_it_is_saved_starts_again(
    server: RunningServer, owner: Browser, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    participant = client.create("/participants", {"first_name": "Mia", "city": "Hobart"})["id"]
    path, update = f"/console/participants/{participant}/edit/address", store.update

    def overtake_with(change: dict[str, Any]) -> None:
        async def be_overtaken(tx: Transaction, *given: Any) -> None:
            if tx.reader is not tx:
                async with server.db.transaction() as other:
                    ctx = WriteContext(other, UUID(client.plan_manager_id), server.settings)
                    await service.update(ctx, UUID(participant), ParticipantUpdate(**change))
            await update(tx, *given)

        monkeypatch.setattr(store, "update", be_overtaken)

    form = form_fields(owner, path)
    overtake_with({"first_name": "Maya"})
    assert owner.submit(path, form | {"postcode": "7000"}).status_code == 303
    form = form_fields(owner, path)
    overtake_with({"city": "Burnie"})
    assert owner.submit(path, form | {"postcode": "7001"}).status_code == 409
    stored = client.get(f"/participants/{participant}").json()
    assert (stored["first_name"], stored["city"], stored["postcode"]) == ("Maya", "Burnie", "7000")
