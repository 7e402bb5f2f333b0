"""Account managers over HTTP: list and get, and who is hidden from both."""

from collections.abc import Callable, Iterator
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.cluster import SharedCluster
from support.resources import times_of, without_updated_at
from support.server import RunningServer, wait_until

ANN: dict[str, Any] = {"first_name": "Ann", "last_name": "Lee", "email": "Ann@pm.example"}
HIDDEN: dict[str, dict[str, Any]] = {
    "deleted": {"deleted": True},
    "internal": {"is_internal": True},
    "the operator's": {"email": "staff@plankeeper.example"},
    "the operator's in capitals": {"email": "staff@PlanKeeper.COM"},
    "of a domain with the operator's name in it": {"email": "staff@mail.theplankeepers.example"},
}


@pytest.fixture
def import_account_manager(api: Client, import_rows: Callable[..., Any]) -> Callable[..., str]:
    """Import one account manager, and return its id."""

    def import_one(**values: Any) -> str:
        row = {"id": str(uuid7())} | values
        assert not import_rows(api, "account-managers", [row]).errors
        return row["id"]

    return import_one


def list_names(api: Client, **filters: Any) -> list[str]:
    """The first names that a filter finds, in both modes, with the total that it states."""
    page = api.get("/account-managers", **filters)
    assert page.status_code == 200, page.text
    assert api.get("/account-managers", **filters, after="0").json()["data"] == page.json()["data"]
    names = [each["first_name"] for each in page.json()["data"]]
    assert page.json()["pagination"]["total"] == len(names)
    return names


def test_an_account_manager_is_listed_and_can_be_read(api: Client, import_account_manager: Callable[..., str]) -> None:
    ident = import_account_manager(**ANN)
    response = api.get(f"/account-managers/{ident}")
    shown = ANN | {"id": ident, "name": "Ann Lee", "active": True} | times_of(response.json())
    assert (response.status_code, response.json()) == (200, shown)
    assert list(response.json()) == ["id", "first_name", "last_name", "name", "email", "active", "updated_at"]
    meta = {"limit": 20, "offset": 0, "has_more": False, "total": 1, "next_cursor": None}
    assert api.get("/account-managers").json() == {"data": [shown], "pagination": meta}
    assert api.get(f"/account-managers/{ident.upper()}").json() == shown


def test_events_of_an_import_have_the_fields_of_the_api(
    api: Client, import_account_manager: Callable[..., str]
) -> None:
    ident = import_account_manager(**ANN)
    shown = api.get(f"/account-managers/{ident}").json() | {"is_internal": False, "deleted": False}
    import_account_manager(id=ident, deleted=True)
    events = wait_until(
        lambda: len(found := api.get("/events", resource_id=ident, after="0").json()["data"]) == 2 and found
    )
    assert (events[0]["type"], events[0]["data"]) == ("account_manager.created", shown)
    assert (events[1]["type"], events[1]["previous"]) == ("account_manager.updated", {"deleted": False})
    assert events[1]["data"] == shown | {"deleted": True, "updated_at": events[1]["data"]["updated_at"]}


@pytest.mark.parametrize(
    "first, last, name",
    [
        ("Ann", None, "Ann"),
        (None, "Lee", "Lee"),
        ("", "Lee", "Lee"),
        (None, None, None),
        ("Mary Ann", "Lee", "Mary Ann Lee"),
    ],
)
def test_the_name_is_first_and_last_name_joined(
    api: Client, import_account_manager: Callable[..., str], first: str | None, last: str | None, name: str | None
) -> None:
    ident = import_account_manager(first_name=first, last_name=last, active=False)
    shown = {"id": ident, "first_name": first, "last_name": last, "name": name, "email": None, "active": False}
    assert without_updated_at(api.get(f"/account-managers/{ident}").json()) == shown


@pytest.mark.parametrize("why", HIDDEN)
def test_a_hidden_account_manager_is_neither_listed_nor_readable(
    api: Client, import_account_manager: Callable[..., str], why: str
) -> None:
    hidden = import_account_manager(**(ANN | HIDDEN[why]))
    import_account_manager(first_name="Bo", last_name="Ng", email="staff@keeper.example")
    assert list_names(api) == ["Bo"]
    assert list_names(api, email=HIDDEN[why].get("email", ANN["email"])) == []
    assert list_names(api, active="true") == ["Bo"]
    response = api.get(f"/account-managers/{hidden}")
    assert (response.status_code, response.json()["error"]) == (404, "not_found")


def test_the_operator_name_in_the_local_part_of_an_email_hides_nobody(
    api: Client, import_account_manager: Callable[..., str]
) -> None:
    import_account_manager(first_name="Ann", email="plankeeper@pm.example")
    assert list_names(api) == ["Ann"]


def test_an_account_manager_is_listed_again_once_nothing_hides_it(
    api: Client, import_account_manager: Callable[..., str]
) -> None:
    ident = import_account_manager(**ANN, deleted=True)
    assert list_names(api) == []
    import_account_manager(id=ident, deleted=False)
    assert list_names(api) == ["Ann"]


@pytest.fixture
def server_of_operator(cluster: SharedCluster) -> Iterator[Callable[[str], RunningServer]]:
    """Starts a server of an operator of that name."""
    running: list[RunningServer] = []

    def start(name: str) -> RunningServer:
        running.append(RunningServer(cluster.dsn, operator_name=name).start())
        return running[-1]

    yield start
    for server in running:
        server.stop()


def test_the_operator_name_is_configurable(
    api: Client, import_account_manager: Callable[..., str], server_of_operator: Callable[[str], RunningServer]
) -> None:
    import_account_manager(first_name="Ann", email="ann@plankeeper.example")
    import_account_manager(first_name="Bo", email="bo@ACME.example")
    import_account_manager(first_name="Cy")
    for name, shown in (("Acme", ["Ann", "Cy"]), ("", ["Ann", "Bo", "Cy"])):
        elsewhere = Client(server_of_operator(name).url, api.key, api.plan_manager_id)
        assert list_names(elsewhere) == shown
        elsewhere.http.close()
    assert list_names(api) == ["Bo", "Cy"]


def test_the_active_filter_accepts_true_and_false(api: Client, import_account_manager: Callable[..., str]) -> None:
    import_account_manager(first_name="Ann", active=True)
    import_account_manager(first_name="Bo", active=False)
    import_account_manager(first_name="Cy", active=False, deleted=True)
    assert list_names(api) == ["Ann", "Bo"]
    assert list_names(api, active="true") == ["Ann"]
    assert list_names(api, active="false") == ["Bo"]
    for wrong in ("True", "1", "yes"):
        response = api.get("/account-managers", active=wrong)
        assert response.status_code == 400
        assert [(each["field"], each["message"]) for each in response.json()["errors"]] == [
            ("active", "must be true or false")
        ]


def test_the_email_filter_ignores_case_and_accepts_any_text(
    api: Client, import_account_manager: Callable[..., str]
) -> None:
    import_account_manager(**ANN)
    import_account_manager(first_name="Bo", email="bo@pm.example", active=False)
    assert list_names(api, email="aNN@PM.example") == ["Ann"]
    assert list_names(api, email="bo@pm.example", active="true") == []
    assert list_names(api, email="ann") == list_names(api, email="%") == list_names(api, email="a" * 255) == []
    assert api.get("/account-managers", email="").status_code == 400


def test_the_list_pages_by_id(api: Client, import_account_manager: Callable[..., str]) -> None:
    ids = [import_account_manager(first_name=name, deleted=name == "b") for name in "abcd"]
    meta = {"limit": 2, "offset": 0, "has_more": True, "total": None, "next_cursor": ids[2]}
    page = api.get("/account-managers", limit=2, after="0").json()
    assert ([each["id"] for each in page["data"]], page["pagination"]) == ([ids[0], ids[2]], meta)
    rest = api.get("/account-managers", limit=2, after=ids[1]).json()["data"]
    assert [each["id"] for each in rest] == ids[2:]


def test_account_managers_cannot_be_written_over_http(api: Client, import_account_manager: Callable[..., str]) -> None:
    ident = import_account_manager(**ANN)
    for method, path in (
        ("POST", "/account-managers"), ("PUT", f"/account-managers/{ident}"), ("DELETE", f"/account-managers/{ident}"),
    ):  # fmt: skip
        response = api.request(method, path)
        assert (response.status_code, response.headers["allow"]) == (405, "GET, HEAD, OPTIONS")
