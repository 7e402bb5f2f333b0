"""The plans of a participant in the console."""

import re
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.console import Browser
from support.form_helpers import form_fields
from support.server import RunningServer


@pytest.fixture
def plans(client: Client) -> str:
    return f"/participants/{client.create('/participants', {'last_name': 'Ng'})['id']}/plans"


FORM = {
    "start_date": "1 Jul 2026", "end_date": "30/6/2027", "is_pace_plan": "true",
    "component_1_name": "Core supports", "component_1_kind": "flexible", "component_1_categories": "1, 2, 4",
    "component_1_amount": "$10,000.50",
    "component_1_periods": "1 Jul 2026 to 31 Dec 2026: 6,000.50\n1/1/2027 - 30/6/2027: $4000",
    "component_1_spent": "250", "component_1_as_of": "2026-08-01", "component_1_source": "Former office",
    "component_3_name": "Therapy", "component_3_kind": "stated", "component_3_categories": "15",
    "component_3_amount": "800",
}  # fmt: skip


def post(owner: Browser, path: str, form: dict[str, Any]) -> Any:
    return owner.submit(path, form | {"csrf": owner.csrf()})


def test_a_plan_is_added_shown_edited_and_deleted(owner: Browser, client: Client, plans: str) -> None:
    page = f"/console{plans}"
    assert "There are no plans yet." in owner.get(page).text
    assert post(owner, page, FORM).status_code == 303
    [plan] = client.get(plans, on="2026-12-01").json()["data"]
    core, therapy = plan["components"]
    assert (plan["start_date"], plan["end_date"], plan["is_pace_plan"]) == ("2026-07-01", "2027-06-30", True)
    assert (core["categories"], core["amount"], core["released"], core["paid"]) == ([1, 2, 4], 10000.5, 6000.5, 250)
    assert (therapy["kind"], therapy["categories"], therapy["amount"]) == ("stated", [15], 800)
    shown = owner.get(page).text
    assert "1 Jul 2026 to 30 Jun 2027" in shown
    assert "$250.00 of $10,000.50" in shown
    assert "Former office" in shown
    edit = f"{page}/{plan['id']}/edit"
    assert post(owner, edit, form_fields(owner, edit)).status_code == 303
    assert client.get(plans).json()["data"][0]["updated_at"] == plan["updated_at"]  # nothing was changed
    changed = form_fields(owner, edit) | {"component_2_amount": ["900"]}
    changed |= {name: [""] for name in changed if name.startswith("component_1_")}
    assert post(owner, edit, changed).status_code == 303
    [after] = client.get(plans).json()["data"]
    assert [(each["id"], each["amount"]) for each in after["components"]] == [(therapy["id"], 900)]
    assert post(owner, f"{page}/{plan['id']}/delete", {}).status_code == 303
    assert client.get(plans).json()["data"] == []


def test_a_plan_begins_as_the_previous_one(owner: Browser, client: Client, plans: str) -> None:
    component = {"name": "Therapy", "kind": "stated", "categories": [15, 7], "amount": 500}
    dates = {"start_date": "2026-07-01", "end_date": "2027-06-30"}
    plan = client.create(plans, dates | {"components": [component]})
    fields = form_fields(owner, f"/console{plans}/new?from={plan['id']}")
    assert fields["component_1_name"] == ["Therapy"]
    assert fields["component_1_categories"] == ["15, 7"]
    assert [fields[name] for name in ("start_date", "component_1_amount", "component_1_id")] == [[""]] * 3


def test_errors_stand_beside_their_fields(owner: Browser, plans: str) -> None:
    page = f"/console{plans}"
    for change, message in (
        ({"start_date": "31 Feb 2026"}, "31 Feb 2026 doesn’t exist"),
        ({"start_date": ""}, "Start date is required."),
        ({"component_1_periods": "1 Jul 2026: 4"}, "must have lines such as"),
        ({"component_1_amount": "many"}, "must be an amount, such as 1,290.45"),
        ({"component_3_amount": "-1"}, "must be 0 or more"),
        ({"component_1_categories": "1, 115"}, "must be numbers from 1 to 99, such as 1, 2, 3, 4, and not 115"),
        ({"component_3_as_of": "2026-08-01"}, "is required with a day or a source"),
        ({"component_3_source": "Former office"}, "is required with a day or a source"),
        ({"component_1_periods": "1 Jul 2026 to 31 Dec 2026: 5"}, "must add up to the amount, $10,000.50"),
    ):
        rejected = post(owner, page, FORM | change)
        assert rejected.status_code in (400, 422), change
        assert message in rejected.text, change


def test_the_form_keeps_all_components(owner: Browser, client: Client, plans: str) -> None:
    component = {"kind": "stated", "categories": [15], "amount": 5}
    plan = {"start_date": "2026-07-01", "end_date": "2027-06-30"}
    for count in (31, 100):
        plan["components"] = [component | {"name": f"Component {number}"} for number in range(count)]
        before = client.create(plans, plan)
        edit = f"/console{plans}/{before['id']}/edit"
        assert post(owner, edit, form_fields(owner, edit)).status_code == 303
        [after] = client.get(plans).json()["data"]
        assert (len(after["components"]), after["updated_at"]) == (count, before["updated_at"])
        client.delete(f"{plans}/{before['id']}")


def test_errors_keep_the_components_below_removed_ones(owner: Browser, plans: str) -> None:
    form = {"start_date": "", "component_7_name": "Therapy"}
    assert 'value="Therapy"' in post(owner, f"/console{plans}", form).text


def undo_page(server: RunningServer, client: Client, event_type: str) -> str:
    """The page that undoes the latest event of a type."""
    statement = "select id from events where plan_manager_id = $1 and type = $2 order by id desc limit 1"
    return (
        f"/console/activity/{server.run(server.db.one(UUID, statement, UUID(client.plan_manager_id), event_type))}/undo"
    )


def test_changes_of_plans_are_undone(server: RunningServer, owner: Browser, client: Client, plans: str) -> None:
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 500.25}
    plan = client.create(plans, {"start_date": "2026-07-01", "end_date": "2027-06-30", "components": [component]})
    person = plans.removesuffix("/plans")

    def shown() -> dict[str, Any]:
        [found] = client.get(plans).json()["data"]
        assert client.get(person).json()["plan_end_date"] == found["end_date"]
        return {name: value for name, value in found.items() if name != "updated_at"}

    before = shown()
    client.put(f"{plans}/{plan['id']}", {"components": [], "end_date": "2026-12-31"}).raise_for_status()
    page = undo_page(server, client, "plan.updated")
    assert owner.submit(page, form_fields(owner, page)).status_code == 303
    assert shown() == before  # with the same ids
    redirect = owner.get(undo_page(server, client, "plan.created"))
    assert redirect.headers["location"] == f"/console{plans}/{plan['id']}/delete"
    assert post(owner, redirect.headers["location"], {}).status_code == 303
    assert "Plan 1 Jul 2026 to 30 Jun 2027 removed" in owner.get(f"/console{person}/timeline?kind=plans").text
    page = undo_page(server, client, "plan.deleted")
    assert "can’t be added if another plan" in owner.get(page).text
    assert post(owner, page, {}).status_code == 303
    assert shown() == before
    assert "The record exists again." in owner.get(page).text


def test_a_participant_comes_back_from_the_trash_with_its_plans(owner: Browser, client: Client, plans: str) -> None:
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 500.25}
    for year in (2026, 2028):
        dates = {"start_date": f"{year}-07-01", "end_date": f"{year + 1}-06-30"}
        client.create(plans, dates | {"components": [component]})
    before = [{**each, "updated_at": ""} for each in client.get(plans).json()["data"]]
    deleted = owner.submit(f"/console{plans.removesuffix('/plans')}/delete")
    assert client.get(plans).status_code == 404
    [entry] = re.findall(r"/console/trash/[0-9a-f-]{36}", owner.get(deleted.headers["location"]).text)[:1]
    assert owner.submit(f"{entry}/restore").status_code == 303
    assert [{**each, "updated_at": ""} for each in client.get(plans).json()["data"]] == before


def test_a_conflict_names_the_components_that_others_saved(owner: Browser, client: Client, plans: str) -> None:
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 500}
    plan = client.create(plans, {"start_date": "2026-07-01", "end_date": "2027-06-30", "components": [component]})
    edit = f"/console{plans}/{plan['id']}/edit"
    form = form_fields(owner, edit)
    client.put(f"{plans}/{plan['id']}", {"components": [component | {"amount": 700}]}).raise_for_status()
    late = owner.submit(edit, form | {"component_1_amount": ["600"]})
    assert late.status_code == 409
    assert "Therapy $700.00" in late.text


def test_charts_show_the_course_of_each_component(owner: Browser, client: Client, import_rows: Any) -> None:
    participant = client.create("/participants", {"last_name": "Ng"})["id"]
    plans, component = f"/participants/{participant}/plans", {"kind": "stated", "categories": [15], "amount": 500.25}
    spent = {"amount": 100, "as_of": "2020-02-01"}
    past = {"start_date": "2020-01-01", "end_date": "2020-12-31"}
    past = client.create(plans, past | {"components": [component | {"name": "Therapy", "spent_elsewhere": spent}]})
    later = {"start_date": "2021-01-01", "end_date": "2021-12-31", "components": [component | {"name": "Support"}]}
    client.create(plans, later)
    line = {"service_item_number": "15_056_0128_1_3", "service_date_from": "2020-03-31", "total_price": 50}
    assert not import_rows(client, "invoices", [{"participant_id": participant, "line_items": [line]}]).errors
    page = owner.get(f"/console{plans}").text
    assert "Support: $0.00 of $500.25 used by 31 Dec 2021" in page  # of the latest plan
    assert "Therapy: $" not in page
    [charts] = re.findall(r'"(/console[^"]+charts=[^"]+)#plan-2"', page)
    assert charts == f"/console{plans}?charts={past['id']}"
    page = owner.get(charts).text
    assert "Therapy: $150.00 of $500.25 used by 31 Dec 2020" in page
    for day, used in (("29 Feb 2020", "$100.00"), ("31 Mar 2020", "$150.00"), ("31 Dec 2020", "$150.00")):
        assert f'<th scope="row">{day}</th><td>$500.25</td><td>{used}</td><td></td>' in page


@pytest.mark.parametrize("start, end", [("0001-01-01", "0001-12-31"), ("9999-01-01", "9999-12-31")])
def test_a_plan_at_an_end_of_the_calendar_has_pages(owner: Browser, client: Client, start: str, end: str) -> None:
    participant = client.create("/participants", {"plan_start_date": start, "plan_end_date": end})["id"]
    [plan] = client.get(f"/participants/{participant}/plans").json()["data"]
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 500.25}
    changed = client.put(f"/participants/{participant}/plans/{plan['id']}", {"components": [component]})
    assert changed.status_code == 200
    page = owner.get(f"/console/participants/{participant}/plans")
    assert (page.status_code, "Therapy: $" in page.text) == (200, True)
    assert owner.get(f"/console/participants/{participant}/invoices").status_code == 200
