"""Browsers without a screen, signed in."""

from collections.abc import Callable, Iterator
from uuid import UUID

import pytest
from httpx import Response
from uuid_utils.compat import uuid7

from support.client import Client
from support.cluster import SharedCluster
from support.console import Account, Browser, give_permissions
from support.factories import DOWNLOADS, PAGES, SeededPlanManager, returns_json, route_name, seed_plan_manager
from support.importing import import_records
from support.outbox import MailingServer, mailing_server
from support.server import RunningServer


@pytest.fixture(scope="module", autouse=True)
def _pages_soon_written(soon_written: None) -> None:
    """Otherwise, each test of the pages of views and of requests would wait a second."""


@pytest.fixture(scope="session")
def office_and_pages(server: RunningServer) -> Iterator[tuple[SeededPlanManager, dict[str, Response]]]:
    """`filled_office` and `filled_pages`, made together: later, a test of webhooks can have deleted the endpoints."""
    office = seed_plan_manager(server, lambda name: name.rpartition(".")[2].replace("_", " "))
    browser = office.browser()
    browser.http.headers["Accept-Encoding"] = "gzip"
    pages = {
        route_name(each): browser.get(office.path(each))
        for each in PAGES
        if each not in DOWNLOADS and not returns_json(each)
    }
    browser.http.close()
    yield office, pages
    office.client.http.close()


@pytest.fixture(scope="session")
def filled_office(office_and_pages: tuple[SeededPlanManager, object]) -> SeededPlanManager:
    """A plan manager with one of everything, in plain words, for tests that only read."""
    return office_and_pages[0]


@pytest.fixture(scope="session")
def filled_pages(office_and_pages: tuple[object, dict[str, Response]]) -> dict[str, Response]:
    """The responses of every page that shows HTML to the owner of `filled_office`, compressed as browsers accept it."""
    return office_and_pages[1]


@pytest.fixture(scope="module")
def mailing(cluster: SharedCluster) -> Iterator[MailingServer]:
    """A server with a mail server, for a module of tests."""
    with mailing_server(cluster) as found:
        yield found


@pytest.fixture
def new_browser(server: RunningServer) -> Iterator[Callable[..., Browser]]:
    """Open a browser, signed in if an account is given: `new_browser(new_account("viewer"))`."""
    opened: list[Browser] = []

    def make(account: Account | None = None) -> Browser:
        opened.append(Browser(server.url))
        if account:
            opened[-1].start_session(server, account)
        return opened[-1]

    yield make
    for each in opened:
        each.http.close()


@pytest.fixture
def visitor(new_browser: Callable[..., Browser]) -> Browser:
    """Not signed in."""
    return new_browser()


@pytest.fixture
def owner(new_browser: Callable[..., Browser], new_account: Callable[..., Account]) -> Browser:
    """Signed in with the role owner."""
    return new_browser(new_account("owner"))


@pytest.fixture
def manager(
    server: RunningServer, new_account: Callable[..., Account], new_browser: Callable[..., Browser]
) -> Callable[..., Browser]:
    """A browser of a manager with permissions: `manager("make_payments")`."""

    def make(*permissions: str) -> Browser:
        account = new_account("manager")
        server.run(give_permissions(server, account, [*permissions]))
        return new_browser(account)

    return make


@pytest.fixture
def client(new_client: Callable[..., Client], plan_manager_id: UUID) -> Client:
    """A client of the API for the plan manager of `owner`."""
    return new_client(plan_manager_id)


@pytest.fixture
def manager_id(server: RunningServer, plan_manager_id: UUID) -> str:
    """The id of an account manager, Morgan Lee."""
    row = {"id": str(uuid7()), "first_name": "Morgan", "last_name": "Lee", "email": "morgan@example.com"}
    assert not server.run(import_records(server, plan_manager_id, "account-managers", [row])).errors
    return row["id"]
