"""Webhook endpoints as they work: health, failures, what each attempt sent and received, sending again, editing."""

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from uuid import UUID

import pytest

from plankeeper.events.event_types import SENT_TYPES
from plankeeper.webhooks import client, delivery_store, endpoint_store
from plankeeper.webhooks.delivery_store import DeliveryFilter
from plankeeper.webhooks.schemas import WebhookEndpoint, WebhookEndpointListQuery
from support.console import Account, Browser, main_text
from support.receiver import Receiver
from support.server import RunningServer
from support.webhooks import poll_once

PAGE = "/console/settings/webhooks"


@pytest.fixture(autouse=True)
def no_leftover_endpoints(server: RunningServer) -> Iterator[None]:
    """A worker sends for all plan managers: what other tests have left would be sent in this one."""
    server.run(server.db.execute("delete from webhook_endpoints"))
    yield
    server.run(server.db.execute("delete from webhook_endpoints"))


@pytest.fixture
def public_receiver(monkeypatch: pytest.MonkeyPatch) -> None:
    """The receiver's address counts as public, so that its responses are kept."""
    monkeypatch.setattr(client, "is_public", lambda _address: True)


@pytest.fixture
def endpoint(server: RunningServer, owner: Browser, plan_manager_id: UUID, receiver: Receiver) -> WebhookEndpoint:
    values = {"url": receiver.url, "description": "Ledger", "event_types": ["invoice.*"], "payload": "full"}
    assert owner.submit(PAGE, values).status_code == 200
    (created,) = server.run(endpoint_store.list_page(server.db, plan_manager_id, WebhookEndpointListQuery()))
    return created


def send_test_event(server: RunningServer, owner: Browser, endpoint: WebhookEndpoint) -> str:
    """The path of the page of a delivery that a worker has attempted once."""
    path = f"{PAGE}/{endpoint.id}"
    assert owner.submit(f"{path}/test").status_code == 303
    assert poll_once(server) == 1
    found = re.search(rf'href="({path}/deliveries/[0-9a-f-]{{36}})"', owner.get(path).text)
    assert found
    return found[1]


@pytest.mark.usefixtures("public_receiver")
def test_a_delivery_page_shows_what_was_sent_and_received(
    server: RunningServer, owner: Browser, endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    receiver.respond = lambda _headers, _body: (500, {}, b'{"error":"<b>full</b>"}\xff\x00' + b"x" * 2000)
    path = send_test_event(server, owner, endpoint)
    page = owner.get(path).text
    [received] = receiver.received
    for name in ("webhook-id", "webhook-timestamp", "webhook-signature", "user-agent", "content-type"):
        assert f"{name}: {received.headers[name]}" in unescape(page), name
    payload = re.search(r'<pre id="payload"[^>]*>([^<]+)</pre>', page)
    assert payload
    assert json.loads(unescape(payload[1])) == json.loads(received.body)
    assert json.loads(received.body)["data"]["object"]["url"] == endpoint.url
    response = re.search(r'aria-label="Response of attempt 1">([^<]+)</pre>', page)
    assert response
    assert unescape(response[1]) == r'{"error":"<b>full</b>"}\xff\x00' + "x" * (1024 - 25)
    text = main_text(page)
    for expected in ("Attempt 1 500", "The first 1 KB of the response", "failing next attempt"):
        assert expected in text, (expected, text)


def test_a_test_event_of_another_type_is_its_example(
    server: RunningServer, owner: Browser, endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    path = f"{PAGE}/{endpoint.id}"
    page = owner.get(path).text
    assert '<label for="type">Test event</label>' in page
    offered = re.findall(r'<option value="([a-z_]+\.[a-z_]+)"', page)
    assert sorted(offered) == SENT_TYPES
    assert re.findall(r'<option value="([^"]+)" selected', page) == ["webhook_endpoint.tested"]
    assert owner.submit(f"{path}/test", {"type": "provider.deleted"}).status_code == 303
    assert poll_once(server) == 1
    [received] = receiver.received
    message = json.loads(received.body)
    assert (message["type"], message["data"]["object"], message["sequence"]) == ("provider.deleted", None, None)
    [delivery] = set(re.findall(rf'href="({path}/deliveries/[0-9a-f-]{{36}})">provider.deleted<', owner.get(path).text))
    shown = re.search(r'<pre id="payload"[^>]*>([^<]+)</pre>', owner.get(delivery).text)
    assert shown
    assert json.loads(unescape(shown[1])) == message
    rejected = owner.submit(f"{path}/test", {"type": "plan_manager.created"})
    assert (rejected.status_code, "is never sent to webhook endpoints" in rejected.text) == (422, True)


@pytest.mark.usefixtures("public_receiver")
def test_a_viewer_does_not_see_the_response(
    server: RunningServer,
    owner: Browser,
    endpoint: WebhookEndpoint,
    receiver: Receiver,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
) -> None:
    receiver.respond = lambda _headers, _body: (500, {}, b"the ledger has moved")
    path = send_test_event(server, owner, endpoint)
    assert "the ledger has moved" in new_browser(new_account("manager")).get(path).text
    page = new_browser(new_account("viewer")).get(path)
    assert (page.status_code, "Attempt 1" in main_text(page.text), "ledger" in page.text) == (200, True, False)


def test_the_response_of_a_private_address_is_not_kept(
    server: RunningServer, owner: Browser, endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    receiver.respond = lambda _headers, _body: (500, {}, b"the ledger has moved")
    page = owner.get(send_test_event(server, owner, endpoint)).text
    assert ("comes from a private network" in page, "ledger has moved" in page) == (True, False)
    stored = server.run(server.db.one(str, "select attempt_details::text from webhook_deliveries"))
    assert "ledger" not in stored


@pytest.mark.usefixtures("public_receiver")
def test_a_failing_endpoint_is_marked_until_an_attempt_succeeds(
    server: RunningServer, owner: Browser, endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    pages = (PAGE, f"{PAGE}/{endpoint.id}")
    failing = '<span class="tag bad">failing</span> <span class="soft">next attempt <time'
    assert [failing in owner.get(each).text for each in pages] == [False, False]
    receiver.respond = lambda _headers, _body: (503, {}, b"")
    path = send_test_event(server, owner, endpoint)
    assert [failing in owner.get(each).text for each in pages] == [True, True]
    assert "Every attempt has failed since" in owner.get(pages[1]).text
    assert "The response has no body." in owner.get(path).text
    receiver.respond = lambda _headers, _body: (200, {}, b"ok")
    assert "Send now" in owner.get(path).text
    assert owner.submit(f"{path}/retry").headers["location"] == path
    assert poll_once(server) == 1
    assert [failing in owner.get(each).text for each in pages] == [False, False]
    # A delivery that has succeeded can be sent again.
    page = owner.get(path).text
    assert ("Resend</button>" in page, "Attempt 2 200" in main_text(page)) == (True, True)
    assert owner.submit(f"{path}/retry").status_code == 303
    assert poll_once(server) == 1
    assert "Attempt 3 200" in main_text(owner.get(path).text)
    assert len({each.body for each in receiver.received}) == 1
    assert "Last 24 hours: 3 attempts, 1 failed" in main_text(owner.get(PAGE).text)
    assert "3 attempts in total" in owner.get(pages[1]).text


@pytest.mark.usefixtures("public_receiver")
def test_attempts_without_details_and_deleted_events_are_said_so(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint: WebhookEndpoint
) -> None:
    path = send_test_event(server, owner, endpoint)
    assert "The response has no body." in owner.get(path).text  # a status of 204
    server.run(server.db.execute("update webhook_deliveries set attempt_details = '[]'"))
    server.execute_as_owner("delete from events where plan_manager_id = $1", plan_manager_id)
    text = main_text(owner.get(path).text)
    for expected in (
        "Headers and response were not kept for this attempt.",
        "The event isn’t kept any longer.",
        "Event Deleted",
    ):
        assert expected in text, (expected, text)


def test_the_api_returns_no_headers_and_no_responses(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint: WebhookEndpoint, receiver: Receiver
) -> None:
    receiver.respond = lambda _headers, _body: (200, {}, b"a secret")
    send_test_event(server, owner, endpoint)
    latest = server.run(delivery_store.list_newest(server.db, plan_manager_id, endpoint.id, DeliveryFilter(), 10))
    assert [[attempt.status_code for attempt in each.attempts] for each in latest] == [[200]]
    assert "a secret" not in str(latest)


def test_an_endpoint_is_edited_and_keeps_its_secret(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint: WebhookEndpoint
) -> None:
    path, secret = f"{PAGE}/{endpoint.id}/edit", "select secret from webhook_endpoints where id = $1"
    before = server.run(server.db.one(str, secret, endpoint.id))
    form = owner.get(path).text
    assert (f'value="{endpoint.url}"' in form, 'value="Ledger"' in form) == (True, True)
    assert re.findall(r'value="([^"]+)" checked', form) == ["invoice.*"]
    values = {
        "url": "https://example.com/new",
        "description": "",
        "event_types": ["provider.created", "note_type.*", "note_type.updated"],
        "payload": "thin",
    }
    assert owner.submit(path, values).headers["location"] == f"{PAGE}/{endpoint.id}"
    (after,) = server.run(endpoint_store.list_page(server.db, plan_manager_id, WebhookEndpointListQuery()))
    assert (after.id, after.url, after.description, after.event_types, after.payload, after.active) == (
        endpoint.id, "https://example.com/new", None, ["note_type.*", "provider.created"], "thin", True,
    )  # fmt: skip
    assert server.run(server.db.one(str, secret, endpoint.id)) == before
    rejected = owner.submit(path, values | {"url": "", "event_types": []})
    assert rejected.status_code == 422
    for error in ("URL must be at least 1 character long.", "Events must have at least one type, or all events."):
        assert error in rejected.text


def test_a_viewer_reads_deliveries_and_changes_nothing(
    server: RunningServer,
    owner: Browser,
    endpoint: WebhookEndpoint,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
) -> None:
    path = send_test_event(server, owner, endpoint)
    viewer = new_browser(new_account("viewer"))
    page = viewer.get(path)
    assert (page.status_code, "Resend" in page.text) == (200, False)
    assert viewer.submit(f"{path}/retry").status_code == 403
    assert viewer.get(f"{PAGE}/{endpoint.id}/edit").status_code == 403
