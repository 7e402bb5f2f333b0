"""Settings, webhooks; and activity."""

import re
from collections.abc import Callable
from datetime import datetime, timedelta
from html import unescape
from typing import Any
from uuid import UUID

import httpx
import pytest

from plankeeper.webhooks import endpoint_store
from plankeeper.webhooks.schemas import WebhookEndpoint, WebhookEndpointListQuery
from support.client import Client
from support.console import Account, Browser
from support.form_helpers import require_linked_errors
from support.server import RunningServer, wait_until
from support.sweeps import sweep

PAGE = "/console/settings/webhooks"
NEW_ENDPOINT = {
    "url": "https://example.com/hooks",
    "description": "Ledger",
    "event_types": ["note_type.*", "note_type.created", "webhook_endpoint.tested"],
}


@pytest.fixture
def list_endpoints(server: RunningServer) -> Callable[[UUID], list[WebhookEndpoint]]:
    return lambda owner: server.run(endpoint_store.list_page(server.db, owner, WebhookEndpointListQuery()))


@pytest.fixture
def endpoint(owner: Browser, plan_manager_id: UUID, list_endpoints: Any) -> WebhookEndpoint:
    assert owner.submit(PAGE, NEW_ENDPOINT).status_code == 200
    return list_endpoints(plan_manager_id)[0]


def secret_in(response: httpx.Response) -> str:
    match = re.search(r'<pre id="secret"[^>]*>([^<]+)</pre>', response.text)
    assert match, response.text
    return unescape(match[1])


def fail_delivery(server: RunningServer, endpoint: WebhookEndpoint) -> UUID:
    """Let the endpoint's one delivery fail, as a worker would: its id."""
    attempt = '[{"at":"2026-11-21T04:04:00Z","status_code":500,"error":null,"duration_ms":12}]'
    statement = """
        update webhook_deliveries set status = 'failed', next_attempt_at = null, attempts = $2::text::json
        where webhook_endpoint_id = $1 returning id
    """
    return server.run(server.db.one(UUID, statement, endpoint.id, attempt))


def test_an_endpoint_is_created_and_its_secret_shown_once(
    owner: Browser, plan_manager_id: UUID, list_endpoints: Any
) -> None:
    response = owner.submit(PAGE, NEW_ENDPOINT)
    secret = secret_in(response)
    (made,) = list_endpoints(plan_manager_id)
    assert secret.startswith("whsec_")
    assert (made.url, made.description, made.event_types, made.payload) == (
        "https://example.com/hooks", "Ledger", ["note_type.*", "webhook_endpoint.tested"], "thin",
    )  # fmt: skip
    activity = owner.activity("?type=webhook_endpoint.created")
    for page in (owner.get(PAGE).text, owner.get(f"{PAGE}/{made.id}").text, activity):
        assert (secret in page, "https://example.com/hooks" in page) == (False, True)


@sweep(
    "wrong",
    [{"url": "http://example.com"}, {"url": "https://10.0.0.1/"}, {"url": ""}, {"event_types": "A!"},
     {"event_types": []}, {"payload": "x"}],
    str,
)  # fmt: skip
def test_an_invalid_endpoint_shows_the_form_again(
    owner: Browser, plan_manager_id: UUID, list_endpoints: Any, wrong: dict[str, Any]
) -> None:
    response = owner.submit(PAGE, NEW_ENDPOINT | wrong)
    assert (response.status_code, "There is a problem" in response.text, 'value="Ledger"' in response.text) == (
        422,
        True,
        True,
    )
    assert list_endpoints(plan_manager_id) == []


def test_a_test_event_is_sent_fails_and_is_retried(
    server: RunningServer, owner: Browser, endpoint: WebhookEndpoint
) -> None:
    here = f"{PAGE}/{endpoint.id}"
    assert "No events have been sent yet." in owner.get(here).text
    assert owner.submit(f"{here}/test").headers["location"] == here
    assert "pending" in owner.get(here).text
    delivery = fail_delivery(server, endpoint)
    page = owner.get(here).text
    assert ("1, latest: 500" in page, "21 Nov 2026, 3:04 pm" in page, "in 12 ms" in page) == (True, True, True)
    assert f'href="{here}/deliveries/{delivery}"' in page
    assert str(delivery) not in owner.get(f"{here}/deliveries?status=succeeded").text
    assert owner.submit(f"{here}/deliveries/{delivery}/retry").headers["location"] == f"{here}/deliveries/{delivery}"
    status = "select status from webhook_deliveries where id = $1"
    assert server.run(server.db.one(str, status, delivery)) == "pending"


def test_an_endpoint_is_paused_resumed_and_deleted(
    server: RunningServer, owner: Browser, plan_manager_id: UUID, endpoint: WebhookEndpoint, list_endpoints: Any
) -> None:
    here = f"{PAGE}/{endpoint.id}"
    assert owner.submit(f"{here}/pause").headers["location"] == here
    assert not list_endpoints(plan_manager_id)[0].active
    rejected = owner.submit(f"{here}/test")
    assert (rejected.status_code, "is not active" in rejected.text) == (409, True)
    assert owner.submit(f"{here}/resume").status_code == 303
    assert list_endpoints(plan_manager_id)[0].active
    assert owner.get(f"{here}/delete").status_code == 200
    assert len(list_endpoints(plan_manager_id)) == 1
    assert owner.submit(f"{here}/delete").headers["location"] == PAGE
    assert list_endpoints(plan_manager_id) == []


def test_a_secret_is_rotated(owner: Browser, endpoint: WebhookEndpoint) -> None:
    here = f"{PAGE}/{endpoint.id}/rotate-secret"
    assert "Rotate the signing secret?" in owner.get(here).text
    assert secret_in(owner.submit(here)) != secret_in(owner.submit(here))


def test_a_replay_takes_a_time_in_the_configured_time_zone(
    server: RunningServer, owner: Browser, endpoint: WebhookEndpoint, new_key: Callable[..., str], plan_manager_id: UUID
) -> None:
    client, here = Client(server.url, new_key(plan_manager_id), plan_manager_id), f"{PAGE}/{endpoint.id}"
    client.create("/note-types", {"note_type": "Call"})
    client.http.close()
    wait_until(lambda: 'class="what">Note type added' in owner.get("/console/activity").text)
    since = datetime.now(server.settings.time_zone) - timedelta(minutes=5)
    form = {"since": f"{since.day}/{since.month}/{since.year}", "since_time": f"{since:%I:%M %p}"}
    assert owner.submit(f"{here}/replay", form).status_code == 303
    assert "1 event resent." in owner.get(here).text
    tomorrow = since + timedelta(days=1)
    for wrong, message in (
        ({"since": ""}, "Since is required."),
        ({"since": "11/22/2026"}, "Since has no month 22: enter the day first, such as 22/11/2026."),
        ({"since": str(tomorrow.date())}, "Since must not be in the future."),
        ({"since_time": "25:00"}, "Time must be a time, such as 15:04 or 3:04 pm."),
        ({"since": "31/2/2026", "since_time": "noon"}, "Since 31 Feb 2026 doesn’t exist."),
    ):
        response = owner.submit(f"{here}/replay", form | wrong)
        assert (response.status_code, message in response.text) == (422, True), wrong
        assert require_linked_errors(response.text) == list(wrong)
    assert 'type="datetime-local"' not in owner.get(here).text


def test_an_endpoint_of_another_plan_manager_is_not_found(
    server: RunningServer, owner: Browser, endpoint: WebhookEndpoint, new_plan_manager: Callable[[], UUID],
    new_browser: Callable[..., Browser], new_account: Callable[..., Account],
) -> None:  # fmt: skip
    owner.submit(f"{PAGE}/{endpoint.id}/test")
    delivery = fail_delivery(server, endpoint)
    other = new_browser(new_account("owner", new_plan_manager()))
    here = f"{PAGE}/{endpoint.id}"
    for path in (here, f"{here}/edit", f"{here}/delete", f"{here}/rotate-secret", f"{here}/deliveries/{delivery}"):
        assert other.get(path).status_code == 404
    for step in ("test", "pause", "resume", "delete", "rotate-secret", f"deliveries/{delivery}/retry"):
        assert other.submit(f"{here}/{step}").status_code == 404
    assert other.submit(f"{here}/replay", {"since": "1/1/2026", "since_time": "00:00"}).status_code == 404
    assert other.submit(f"{here}/edit", NEW_ENDPOINT).status_code == 404
    # Nor is a delivery there under another's endpoint.
    assert other.submit(PAGE, NEW_ENDPOINT).status_code == 200
    mine = re.search(rf"{PAGE}/([0-9a-f-]{{36}})", other.get(PAGE).text)
    assert mine
    assert other.submit(f"{PAGE}/{mine[1]}/deliveries/{delivery}/retry").status_code == 404
    assert other.get(f"{PAGE}/{mine[1]}/deliveries/{delivery}").status_code == 404
    # Nor under another endpoint of the same plan manager.
    assert owner.submit(PAGE, NEW_ENDPOINT).status_code == 200
    for second in set(re.findall(rf"{PAGE}/([0-9a-f-]{{36}})", owner.get(PAGE).text)) - {str(endpoint.id)}:
        assert owner.submit(f"{PAGE}/{second}/deliveries/{delivery}/retry").status_code == 404
        assert owner.get(f"{PAGE}/{second}/deliveries/{delivery}").status_code == 404
    status = "select status from webhook_deliveries where id = $1"
    assert server.run(server.db.one(str, status, delivery)) == "failed"
    assert endpoint.url not in other.get("/console/activity?resource_id=" + str(endpoint.id)).text


def test_activity_is_newest_first_filtered_and_shows_before_and_after(
    server: RunningServer, owner: Browser, new_key: Callable[..., str], plan_manager_id: UUID
) -> None:
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    note = client.create("/note-types", {"note_type": "Call", "badge_color": "#0F6B66"})
    client.put(f"/note-types/{note['id']}", {"note_type": "Phone <b>call</b>"})
    client.http.close()
    filtered = f"/console/activity?resource_id={note['id']}"
    wait_until(lambda: 'class="what">Note type changed' in owner.get(filtered).text)
    page = owner.get(filtered).text
    assert re.findall('class="what">([^<]+)', page) == ["Note type changed", "Note type added"]
    updated = owner.get(filtered + "&type=note_type.updated").text
    assert ('<span class="was">Call</span>' in updated, "Phone &lt;b&gt;call&lt;/b&gt;" in updated) == (True, True)
    assert 'class="what">Note type added' not in updated
    assert "No events match." in owner.get("/console/activity?type=note_type.deleted").text


def test_activity_is_paginated_without_gaps(
    server: RunningServer, owner: Browser, new_key: Callable[..., str], plan_manager_id: UUID
) -> None:
    client = Client(server.url, new_key(plan_manager_id), plan_manager_id)
    for number in range(60):
        client.create("/note-types", {"note_type": f"Kind {number}"})
    wait_until(lambda: len(client.get("/events", limit=100, type="note_type.created").json()["data"]) == 60)
    client.http.close()
    path = "/console/activity?type=note_type.created"
    every = r'href="(/console/activity/[0-9a-f-]{36})\?'
    first = owner.get(path).text
    older = re.search(r'href="(/console/activity\?[^"]*after=[^"]+)" rel="next"', first)
    assert older
    second = owner.get(unescape(older[1])).text
    found = [re.findall(every, page) for page in (first, second)]
    assert [len(set(each)) for each in found] == [50, 10]
    said = "".join(owner.get(each).text for each in found[0] + found[1])
    assert set(re.findall(r">(Kind \d+)<", said)) == {f"Kind {number}" for number in range(60)}


def test_a_replay_from_an_implausible_time_is_rejected(
    owner: Browser, plan_manager_id: UUID, list_endpoints: Any
) -> None:
    owner.submit(PAGE, NEW_ENDPOINT)
    (made,) = list_endpoints(plan_manager_id)
    for since in ("0001-01-01", "1999-12-31", "9999-12-31"):
        form = {"since": since, "since_time": "23:59"}
        assert owner.submit(f"{PAGE}/{made.id}/replay", form).status_code == 422
