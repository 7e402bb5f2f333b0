"""The account manager in the forms of participants: a select for few, a field that takes a name for many."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.console.components.record_picker import MAX_OPTIONS
from support.client import Client
from support.console import Browser
from support.form_helpers import form_fields, require_linked_errors
from support.server import RunningServer

NAMES = ["Ama Owusu", "Ama Mensah", "Zoë Quill"]


@pytest.fixture
def managers(client: Client, import_rows: Callable[..., Any]) -> dict[str, str]:
    """Two account managers more than a select has: ids by name."""
    ids = {
        name: str(uuid7()) for name in (*NAMES, *(f"Person {number}" for number in range(len(NAMES), MAX_OPTIONS + 2)))
    }
    rows = [
        {"id": id_, "first_name": name.split()[0], "last_name": name.split()[1], "email": f"person{number}@example.com"}
        for number, (name, id_) in enumerate(ids.items())
    ]
    assert not import_rows(client, "account-managers", rows).errors
    return ids


@pytest.fixture
def hide(server: RunningServer, plan_manager_id: UUID) -> Callable[..., None]:
    """Hides account managers, as a deletion does."""
    statement = "update account_managers set deleted = true where plan_manager_id = $1 and id = any ($2)"
    return lambda *ids: server.run(server.db.execute(statement, plan_manager_id, list(ids)))


def manager_of(client: Client, participant: str) -> str | None:
    return client.get(f"/participants/{participant}").json()["account_manager"]["name"]


def test_a_few_account_managers_are_a_select(
    owner: Browser, managers: dict[str, str], hide: Callable[..., None]
) -> None:
    for hidden, is_select in (("Person 3", False), ("Person 4", True)):
        hide(managers[hidden])
        page = owner.get("/console/participants/new").text
        assert ('<select id="account_manager_id"' in page, 'data-picker="account_manager"' in page) == (
            is_select, not is_select,
        )  # fmt: skip


def test_a_new_participant_has_the_account_manager_of_a_name(
    owner: Browser, client: Client, managers: dict[str, str]
) -> None:
    form = {"first_name": "Ann", "status": "Active", "account_manager_id": ""}
    for number, (text, name) in enumerate(
        {"zoe": "Zoë Quill", "person0@": "Ama Owusu", managers["Ama Mensah"]: "Ama Mensah", "": None}.items()
    ):
        fields = form | {"first_name": f"Ann {number}", "account_manager": text}
        made = owner.submit("/console/participants", fields).headers["location"]
        assert manager_of(client, made.rpartition("/")[2]) == name


def test_a_name_of_several_shows_them_to_choose_from(owner: Browser, client: Client, managers: dict[str, str]) -> None:
    participant = client.create("/participants", {"first_name": "Ann", "account_manager_id": managers["Zoë Quill"]})[
        "id"
    ]
    path = f"/console/participants/{participant}/edit/manager"
    form = form_fields(owner, path)
    assert form | {"was": ""} == {
        "was": "", "account_manager": ["Zoë Quill"], "account_manager_id": [managers["Zoë Quill"]],
    }  # fmt: skip
    shown = owner.submit(path, form | {"account_manager": "ama"})
    assert shown.status_code == 422
    assert require_linked_errors(shown.text) == ["account_manager"]
    assert "Which account manager?" in shown.text
    choices = re.findall(r'name="account_manager_choice" value="([^"]+)"> ([^<]+) <', shown.text)
    assert {unescape(name): id_ for id_, name in choices} == {name: managers[name] for name in NAMES[:2]}
    chosen = form | {"account_manager": "ama", "account_manager_choice": managers["Ama Owusu"]}
    assert owner.submit(path, chosen).status_code == 303
    assert manager_of(client, participant) == "Ama Owusu"


def test_a_text_that_means_nobody_is_an_error_beside_the_others(
    owner: Browser, client: Client, managers: dict[str, str]
) -> None:
    form = {"first_name": "Ann", "account_manager": "Nobody <b>", "email": "x", "plan_end_date": "31/2/2026"}
    shown = owner.submit("/console/participants", form)
    assert require_linked_errors(shown.text) == ["email", "plan_end_date", "account_manager"]
    assert "No account manager matches “Nobody &lt;b&gt;”." in shown.text
    assert client.get("/participants").json()["data"] == []


def test_an_unchanged_form_keeps_an_account_manager_who_is_hidden_by_now(
    owner: Browser, client: Client, managers: dict[str, str], hide: Callable[..., None]
) -> None:
    zoe = managers["Zoë Quill"]
    participant = client.create("/participants", {"first_name": "Ann", "account_manager_id": zoe})["id"]
    hide(zoe)
    path = f"/console/participants/{participant}/edit/manager"
    form = form_fields(owner, path)
    assert (form["account_manager"], owner.submit(path, form).status_code) == (["Zoë Quill"], 303)
    assert manager_of(client, participant) == "Zoë Quill"
    assert owner.submit(path, form | {"account_manager": "Zoë"}).status_code == 422
