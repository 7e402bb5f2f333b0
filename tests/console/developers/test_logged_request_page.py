"""The page of an API request: its error with the invalid fields, its user agent, its key and its events."""

import csv
import io
import re
from collections.abc import Callable
from html import unescape
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.request_log.schemas import LoggedFieldError, LoggedRequest
from plankeeper.console.developers.requests import list_field_errors
from support.client import Client
from support.console import Account, Browser, main_text
from support.server import wait_until

PAGE = "/console/requests"


@pytest.fixture
def request_page(owner: Browser) -> Callable[[str], str]:
    """The path of the page of a request, to which the list leads."""

    def find(request_id: str) -> str:
        pattern = rf'<a href="({PAGE}/[0-9a-f.-]+\?list=[^"]*)">'
        links = wait_until(lambda: re.findall(pattern, owner.get(f"{PAGE}?request_id={request_id}").text))
        assert len(links) == 1
        return unescape(links[0])

    return find


def test_the_page_explains_the_error_and_its_fields(
    owner: Browser, client: Client, request_page: Callable[[str], str]
) -> None:
    body = {"entity_name": 7, "email": "accounts", "Zebulonia": 1}
    response = client.request("POST", "/providers", json=body, headers={"User-Agent": "Sync/1.2 <b>"})
    request_id = response.headers["x-request-id"]
    path = request_page(request_id)
    page = owner.get(path).text
    text = main_text(page)
    for expected in (
        "POST /api/public/v1/providers",
        "400 invalid_request",
        "Invalid request A parameter or a field of the body is invalid.",
        "entity_name body invalid_type The value has another type",
        "email body invalid_format The value has the right type",
        "… body unknown There is no such field or parameter.",
        "is hidden as “…”",
        "User agent Sync/1.2 <b>",
        f"Request ID {request_id}",
        f"API key test …{client.key[-4:]}",
    ):
        assert expected in text, (expected, text)
    assert ("Zebulonia" in page, "accounts" in page, "<b>" in page) == (False, False, False)
    assert 'href="/docs/api/errors#invalid_request" target="_blank"' in page
    assert re.search(r'href="/console/settings/keys/[0-9a-f-]{36}"', page)
    assert f'<a href="{PAGE}?request_id={request_id}">Requests</a>' in page
    listed = main_text(owner.get(f"{PAGE}?request_id={request_id}").text)
    assert "400 invalid_request: … unknown +2" in listed
    [row] = csv.DictReader(io.StringIO(owner.get(f"{PAGE}.csv?request_id={request_id}").content.decode("utf-8-sig")))
    assert (row["Status"], row["User agent"]) == ("400 invalid_request", "Sync/1.2 <b>")
    assert row["Invalid fields"] == "… unknown; entity_name invalid_type; email invalid_format"


def test_the_page_leads_to_the_events_of_the_request(
    owner: Browser, client: Client, request_page: Callable[[str], str]
) -> None:
    single = client.post("/providers", {"entity_name": "Physio"})
    several = client.post("/providers/bulk", {"items": [{"entity_name": name} for name in ("One", "Two")]})
    read = client.get("/providers")
    for response, expected in (
        (single, r'<a href="(/console/activity/[0-9a-f-]{36})">Provider added</a></li>'),
        (
            several,
            r'<a href="(/console/activity/[0-9a-f-]{36}/request)">Provider added</a> <span class="soft">2 times<',
        ),
    ):
        assert response.status_code < 300
        [link] = re.findall(expected, owner.get(request_page(response.headers["x-request-id"])).text)
        assert owner.get(link).status_code == 200
    page = owner.get(request_page(read.headers["x-request-id"])).text
    assert ("<h2>Events</h2>" in page, "/docs/api/errors" in page) == (False, False)


def test_only_people_of_the_plan_manager_see_the_page_and_only_managers_a_link_to_the_key(
    client: Client,
    request_page: Callable[[str], str],
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID],
) -> None:
    path = request_page(client.get("/providers").headers["x-request-id"])
    viewer = new_browser(new_account("viewer")).get(path)
    assert (viewer.status_code, "/console/settings/keys/" in viewer.text) == (200, False)
    stranger = new_browser(new_account("owner", new_plan_manager()))
    assert stranger.get(path).status_code == 404


def test_a_request_that_the_log_does_not_have_is_not_found(
    owner: Browser, client: Client, request_page: Callable[[str], str]
) -> None:
    path = request_page(client.get("/providers").headers["x-request-id"]).partition("?")[0]
    for missing in (f"{path}99999", path.partition(".")[0], f"{PAGE}/x", f"{PAGE}/{uuid7()}.0", f"{PAGE}/.0"):
        response = owner.get(missing)
        assert (response.status_code, 'class="head"' in response.text) == (404, False), missing


def test_the_list_says_how_many_errors_the_log_does_not_have() -> None:
    request = LoggedRequest(1.0, "key", "POST", "/x", "/x", 400, 1.0, "r")
    assert list_field_errors(request) == []
    request.field_errors = [LoggedFieldError("body", "email", "required")]
    request.errors_total = 1
    assert list_field_errors(request) == ["email required"]
    request.errors_total = 1201
    assert list_field_errors(request) == ["email required", "1,200 more"]
