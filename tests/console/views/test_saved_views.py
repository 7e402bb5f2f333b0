"""Saved views of lists, for their owners and for the office, and the columns and density of a list."""

import csv
import io
import re
from collections.abc import Callable
from html import unescape
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import members
from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.privacy import service as personal_data
from support.client import Client
from support.console import Account, Browser
from support.server import RunningServer

LIST, VIEWS, SETTINGS = "/console/participants", "/console/views", "/console/list-settings"
QUERY = "status=Active&state=TAS&sort=-plan_end_date"


def saved(browser: Browser, path: str = LIST) -> list[tuple[str, str]]:
    """The menu of saved views: the names with their lists."""
    menu = re.search(r'<details class="popover saved-views">.*?</details>', browser.get(path).text, re.DOTALL)
    assert menu
    links = re.findall(r'<li><a href="([^"]+)"[^>]*>([^<]+)</a></li>', menu[0])
    return [(unescape(name), unescape(url)) for url, name in links]


def save(browser: Browser, name: str = "Tasmania", query: str = QUERY, **more: str) -> str:
    """Save a view, and return where the console goes on to."""
    response = browser.submit(VIEWS, {"list": "participants", "query": query, "name": name, **more})
    assert response.status_code == 303, response.text
    return response.headers["location"]


def view_ids(browser: Browser) -> dict[str, str]:
    """The ids of the views that the account can change, by name."""
    page = browser.get(VIEWS).text
    return {
        unescape(name): view_id
        for view_id, name in re.findall(r'href="/console/views/([0-9a-f-]{36})/edit" aria-label="Edit ([^"]+)"', page)
    }


def headers(browser: Browser) -> list[str]:
    """The columns of the list, without the one of the boxes."""
    page = browser.get(LIST).text
    head = re.search(r"<thead>.*?</thead>", page, re.DOTALL)
    assert head, page
    return [re.sub(r"<[^>]+>|[↓↑]", "", each).strip() for each in re.findall(r"<th .*?</th>", head[0], re.DOTALL)][1:]


@pytest.fixture
def new_member(new_browser: Callable[..., Browser], new_account: Callable[..., Account]) -> Callable[[str], Browser]:
    return lambda role: new_browser(new_account(role))


def test_the_current_filters_are_saved_and_chosen_from_the_menu(owner: Browser) -> None:
    assert saved(owner) == []
    url = f"{LIST}?status=Active&state=TAS&sort=-plan_end_date"
    page = owner.get(url).text
    assert 'name="query" value="status=Active&amp;state=TAS&amp;sort=-plan_end_date"' in page
    assert save(owner) == url
    page = owner.get(url).text
    assert "View “Tasmania” saved." in page
    assert saved(owner) == [("Tasmania", url)]
    assert '<span class="view-name" title="Tasmania">Tasmania</span>' in page
    assert "Save these filters" not in page


def test_what_is_no_filter_is_not_saved(owner: Browser) -> None:
    assert save(owner, query="status=Active&after=AAAA&nothing=1&sort=nothing") == f"{LIST}?status=Active"


def test_everyone_sees_shared_views_and_only_the_owner_own_ones(new_member: Callable[[str], Browser]) -> None:
    manager, viewer = new_member("manager"), new_member("viewer")
    save(manager, "Mine")
    save(manager, "Ours", is_shared="true")
    save(viewer, "Theirs", is_shared="true")  # viewers share nothing
    assert [name for name, _ in saved(manager)] == ["Mine", "Ours"]
    assert [name for name, _ in saved(viewer)] == ["Theirs", "Ours"]
    assert set(view_ids(manager)) == {"Mine", "Ours"}
    assert set(view_ids(viewer)) == {"Theirs"}


def test_a_view_is_renamed_shared_and_deleted(owner: Browser, new_member: Callable[[str], Browser]) -> None:
    save(owner)
    path = f"{VIEWS}/{view_ids(owner)['Tasmania']}"
    assert 'value="Tasmania"' in owner.get(f"{path}/edit").text
    assert owner.submit(f"{path}/edit", {"name": "Hobart", "is_shared": "true"}).headers["location"] == VIEWS
    viewer = new_member("viewer")
    assert [name for name, _ in saved(viewer)] == ["Hobart"]
    assert owner.submit(f"{path}/delete").headers["location"] == VIEWS
    assert "View “Hobart” deleted." in owner.get(VIEWS).text
    assert saved(viewer) == []


def test_others_cannot_change_a_view(new_member: Callable[[str], Browser]) -> None:
    manager, viewer, other_manager = new_member("manager"), new_member("viewer"), new_member("manager")
    save(manager, "Mine")
    save(manager, "Ours", is_shared="true")
    mine, ours = (f"{VIEWS}/{view_ids(manager)[name]}" for name in ("Mine", "Ours"))
    for browser, path in ((viewer, mine), (viewer, ours), (other_manager, mine)):
        assert browser.submit(f"{path}/edit", {"name": "Taken"}).status_code == 404
        assert browser.submit(f"{path}/delete").status_code == 404
    assert "Managers and owners can change it." in viewer.get(f"{ours}/edit").text
    response = other_manager.submit(f"{ours}/edit", {"name": "Ours"})
    assert (response.status_code, "can only be changed by the person who saved the view" in response.text) == (
        422,
        True,
    )
    assert other_manager.submit(f"{ours}/edit", {"name": "All of ours", "is_shared": "true"}).status_code == 303
    assert [name for name, _ in saved(viewer)] == ["All of ours"]


@pytest.mark.parametrize("name", ["", "x" * 61, "two\nlines", "TASMANIA"])
def test_invalid_names_are_rejected_beside_the_field(owner: Browser, name: str) -> None:
    save(owner)
    response = owner.submit(VIEWS, {"list": "participants", "query": "status=Active", "name": name})
    assert (response.status_code, 'id="name-error"' in response.text) == (422, True)
    assert 'name="query" value="status=Active"' in response.text
    assert [name for name, _ in saved(owner)] == ["Tasmania"]


def test_the_number_of_views_is_limited(owner: Browser) -> None:
    for number in range(50):
        save(owner, f"View {number}")
    response = owner.submit(VIEWS, {"list": "participants", "query": "", "name": "One more"})
    assert response.status_code == 422
    assert "There are 50 views of your own already. Delete one first." in response.text
    save(owner, "A shared one", is_shared="true")


def test_a_removed_member_leaves_only_shared_views(
    server: RunningServer,
    plan_manager_id: UUID,
    owner: Browser,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
) -> None:
    account = new_account("manager")
    manager = new_browser(account)
    save(manager, "Mine")
    save(manager, "Ours", is_shared="true")
    manager.submit(SETTINGS, {"list": "participants", "density": "comfortable"})

    async def remove() -> None:
        async with server.db.transaction() as tx:
            await members.remove(WriteContext(tx, plan_manager_id, server.settings, SYSTEM), account.account_id)

    server.run(remove())
    assert server.run(server.db.rows(str, "select name from saved_views where owner_id = $1", account.account_id)) == [
        "Ours"
    ]
    count = "select count(*) from list_settings where account_id = $1"
    assert server.run(server.db.one(int, count, account.account_id)) == 0
    assert [name for name, _ in saved(owner)] == ["Ours"]


def test_an_erasure_deletes_the_views_of_the_participant(
    server: RunningServer, plan_manager_id: UUID, owner: Browser, new_client: Callable[..., Client]
) -> None:
    names = {"first_name": "Zoë", "last_name": "Zabrowska", "participant_number": "430205409"}
    participant_id = new_client(plan_manager_id).create("/participants", names)["id"]
    for name, query in {"By name": "q=Zo%C3%AB", "By number": "q=430205409", "Others": "q=Kavanagh"}.items():
        save(owner, name, query)
    invoices = {"list": "invoices", "query": f"participant={participant_id}", "name": "Hers"}
    assert owner.submit(VIEWS, invoices).status_code == 303

    async def erase() -> int:
        async with server.db.transaction() as tx:
            ctx = WriteContext(tx, plan_manager_id, server.settings, SYSTEM)
            return (await personal_data.erase(ctx, UUID(participant_id), search_events=False)).counts["saved_views"]

    assert server.run(erase()) == 3
    assert set(view_ids(owner)) == {"Others"}


def test_columns_and_density_are_chosen_by_person_and_list(
    owner: Browser, new_client: Callable[..., Client], plan_manager_id: UUID, new_member: Callable[[str], Browser]
) -> None:
    new_client(plan_manager_id).create("/participants", {"first_name": "Ada", "city": "Hobart"})
    default = headers(owner)
    assert default[:2] == ["Name", "NDIS number"]
    form = {"list": "participants", "columns": ["city", "email"], "density": "comfortable", "query": "status=Active"}
    assert owner.submit(SETTINGS, form).headers["location"] == f"{LIST}?status=Active"
    assert headers(owner) == ["Name", "Email", "Suburb"]
    assert 'class="rows list comfortable"' in owner.get(LIST).text
    rows = list(csv.reader(io.StringIO(owner.get(f"{LIST}.csv").text.removeprefix("\ufeff"))))
    assert [row[:3] for row in rows] == [["Name", "Email", "Suburb"], ["Ada", "", "Hobart"]]
    assert headers(new_member("viewer")) == default
    assert "Suburb" not in owner.get("/console/invoices").text.partition("<thead>")[2]
    assert owner.submit(SETTINGS, {**form, "reset": "1"}).status_code == 303
    assert headers(owner) == default


def test_an_unknown_density_is_rejected_and_an_unknown_column_ignored(owner: Browser) -> None:
    response = owner.submit(SETTINGS, {"list": "participants", "columns": "city", "density": "tiny"})
    assert (response.status_code, 'id="density-error"' in response.text) == (422, True)
    assert owner.submit(SETTINGS, {"list": "x", "columns": "nothing", "density": "compact"}).status_code == 303


def test_a_view_that_does_not_exist_is_not_found(owner: Browser) -> None:
    assert owner.get(f"{VIEWS}/{uuid7()}/edit").status_code == 404
    assert owner.submit(f"{VIEWS}/{uuid7()}/delete").status_code == 404
