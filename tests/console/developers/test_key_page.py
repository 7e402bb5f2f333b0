"""The page of an API key: its facts, its requests by day, its errors by code, its latest requests."""

import re
from collections.abc import Callable
from datetime import UTC, datetime
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import store
from plankeeper.access.api_keys.schemas import ApiKey
from plankeeper.access.tokens import hash_token
from plankeeper.console.developers.api_keys import REJECTIONS
from plankeeper.core.errors import CODES
from support.client import Client
from support.console import Account, Browser, main_text
from support.server import RunningServer, wait_until

PAGE = "/console/settings/keys"


@pytest.fixture
def key_of(server: RunningServer) -> Callable[[str], ApiKey]:
    """The key with a secret."""

    def get(secret: str) -> ApiKey:
        key = server.run(store.get_by_hash(server.db, hash_token(secret)))
        assert key
        return key

    return get


def test_a_key_page_counts_requests_by_day_and_code_and_lists_the_latest(
    server: RunningServer,
    owner: Browser,
    new_key: Callable[..., str],
    new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID,
    key_of: Callable[[str], ApiKey],
) -> None:
    elsewhere = new_plan_manager()
    secret, other_secret = new_key(plan_manager_id, elsewhere), new_key(plan_manager_id)
    key, path = key_of(secret), f"{PAGE}/{key_of(secret).id}"
    assert f'<a href="{path}">' in owner.get(PAGE).text
    assert "The key has made no requests for this plan manager." in owner.get(path).text
    client = Client(server.url, secret, plan_manager_id)
    for _ in range(11):
        client.get("/participants")
    missing = client.get(f"/participants/{key.id}")
    invalid = client.get("/participants", status="x")
    assert (missing.status_code, invalid.status_code) == (404, 400)
    client.http.close()
    for other in (Client(server.url, other_secret, plan_manager_id), Client(server.url, secret, elsewhere)):
        other.get(f"/providers/{key.id}")
        other.http.close()
    page = wait_until(lambda: "13 requests in total" in (found := owner.get(path).text) and found)
    text = main_text(page)
    day = f"{datetime.now(server.settings.time_zone):%-d %b %Y}"
    for expected in (
        f"test …{key.last_four}",
        "Permissions claims, payments, read, write",
        f"{day} 11 2 13",
        "404 not_found 1",
        "400 invalid_request 1",
    ):
        assert expected in text, (expected, text)
    assert f'href="/console/requests?key={key.id}&amp;status=404"' in page
    latest = re.findall(r"<code>GET ([^<]+)</code>", page)
    assert (len(latest), sum("/providers" in each for each in latest)) == (10, 0)
    assert (missing.headers["x-request-id"] in page, invalid.headers["x-request-id"] in page) == (True, True)


def test_a_key_page_offers_what_the_person_may_do(
    server: RunningServer,
    owner: Browser,
    new_key: Callable[..., str],
    new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID,
    key_of: Callable[[str], ApiKey],
) -> None:
    own, shared = key_of(new_key(plan_manager_id)), key_of(new_key(plan_manager_id, new_plan_manager()))
    actions = r'href="[^"]+/(rotate|revoke)">([^<]+)</a>'
    assert re.findall(actions, owner.get(f"{PAGE}/{own.id}").text) == [("rotate", "Rotate"), ("revoke", "Revoke")]
    page = owner.get(f"{PAGE}/{shared.id}").text
    assert re.findall(actions, page) == [("revoke", "Remove access")]
    [other] = set(shared.plan_managers) - {plan_manager_id}
    assert ("and 1 more" in page, str(other) in page) == (True, False)

    async def revoke() -> None:
        async with server.db.transaction() as tx:
            await store.revoke(tx, own.id, datetime.now(UTC))

    server.run(revoke())
    page = owner.get(f"{PAGE}/{own.id}").text
    assert ('<span class="tag">revoked</span>' in page, re.findall(actions, page)) == (True, [])


def test_a_key_without_access_to_the_plan_manager_has_no_page(
    owner: Browser,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    new_key: Callable[..., str],
    new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID,
    key_of: Callable[[str], ApiKey],
) -> None:
    foreign, own = key_of(new_key(new_plan_manager())), key_of(new_key(plan_manager_id))
    assert owner.get(f"{PAGE}/{foreign.id}").status_code == 404
    assert new_browser(new_account("viewer")).get(f"{PAGE}/{own.id}").status_code == 403
    assert new_browser(new_account("manager")).get(f"{PAGE}/{own.id}").status_code == 200


def test_a_key_page_shows_why_requests_were_rejected(
    server: RunningServer,
    owner: Browser,
    new_key: Callable[..., str],
    new_plan_manager: Callable[[], UUID],
    plan_manager_id: UUID,
    key_of: Callable[[str], ApiKey],
) -> None:
    secret = new_key(plan_manager_id, new_plan_manager())
    path = f"{PAGE}/{key_of(secret).id}"
    page = owner.get(path).text
    assert ("Last rejected" in page, "Rejected requests" in page) == (False, False)
    client = Client(server.url, secret, new_plan_manager())
    client.http.headers["User-Agent"] = "Sync/<b>"
    responses = [client.get(f"/participants/{uuid7()}") for _ in range(3)]
    client.http.close()
    assert {each.status_code for each in responses} == {403}
    reason = "The key has no access to the plan manager in the header X-Plan-Manager-Id. 3 "
    text = wait_until(lambda: reason in (found := main_text(owner.get(path).text)) and found)
    for expected in (
        "Last rejected just now , plan manager not allowed",
        "All plan managers of the key see them here.",
        "GET /api/public/v1/participants/{participant_id} Sync/<b> " + responses[-1].headers["x-request-id"],
    ):
        assert expected in text, (expected, text)
    assert ("<b>" in page, client.plan_manager_id in page) == (False, False)


def test_each_reason_of_a_rejection_has_words() -> None:
    codes = {name for name in REJECTIONS if name != "revoked_api_key"}
    assert codes == {
        code for code in CODES if code.endswith(("expired_api_key", "_plan_manager_id", "not_allowed"))
    } - {"method_not_allowed"}
