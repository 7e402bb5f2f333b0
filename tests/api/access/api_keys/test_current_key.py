"""GET /me: the API key of a request."""

from collections.abc import Callable
from datetime import timedelta
from typing import Any
from uuid import UUID

import httpx
import pytest

from plankeeper.access.api_keys import service
from plankeeper.core.context import SYSTEM, WriteContext
from support.client import NO_TLS, PREFIX, Client, check_response
from support.server import RunningServer


def get_me(server: RunningServer, key: str | None, **headers: str) -> httpx.Response:
    """Without X-Plan-Manager-Id."""
    sent = headers | ({"Authorization": f"Bearer {key}"} if key else {})
    response = httpx.get(f"{server.url}{PREFIX}/me", headers=sent, verify=NO_TLS)
    check_response(response)
    return response


@pytest.fixture
def create_key(server: RunningServer) -> Callable[..., str]:
    async def create(*arguments: Any, **more: Any) -> str:
        async with server.db.transaction() as tx:
            plan_managers: list[UUID] = arguments[1]
            ctx = WriteContext(tx, plan_managers[0], server.settings, SYSTEM)
            return await service.create(ctx, *arguments, **more)

    return lambda *arguments, **more: server.run(create(*arguments, **more))


def test_a_key_sees_its_name_scopes_limit_and_plan_managers(
    server: RunningServer, api: Client, other: Client, create_key: Callable[..., str]
) -> None:
    ids = sorted([UUID(api.plan_manager_id), UUID(other.plan_manager_id)])
    for limit, shown in ((None, server.settings.rate_limit), (30, 30), (0, None)):
        key = create_key("Nightly", ids, ("read",), timedelta(days=1), limit)
        body = get_me(server, key).json()
        assert list(body) == ["id", "name", "scopes", "expires_at", "rate_limit", "plan_managers"]
        assert (body["name"], body["scopes"], body["rate_limit"]) == ("Nightly", ["read"], shown)
        assert body["expires_at"].endswith("Z")
        assert sorted(each["id"] for each in body["plan_managers"]) == [str(each) for each in ids]
        assert [list(each) for each in body["plan_managers"]] == [["id", "name"]] * 2
        assert key not in str(body)


@pytest.mark.parametrize("scopes", [("read",), ("write",)])
def test_any_scope_is_enough(new_client: Callable[..., Client], server: RunningServer, scopes: tuple[str, ...]) -> None:
    assert get_me(server, new_client(scopes=scopes).key).json()["scopes"] == list(scopes)


def test_the_plan_manager_header_is_ignored(server: RunningServer, api: Client) -> None:
    expected = get_me(server, api.key).content
    for sent in (api.plan_manager_id, "junk"):
        assert get_me(server, api.key, **{"X-Plan-Manager-Id": sent}).content == expected


def test_it_counts_for_the_rate_limit(server: RunningServer, api: Client, create_key: Callable[..., str]) -> None:
    key = create_key("Slow", [UUID(api.plan_manager_id)], ("read",), None, 2)
    statuses = [get_me(server, key) for _ in range(6)]
    assert statuses[0].status_code == 200
    assert statuses[0].headers["ratelimit-policy"] == '"default";q=2;w=60'
    assert statuses[-1].status_code == 429


def test_an_etag_and_the_other_methods(server: RunningServer, api: Client) -> None:
    tag = get_me(server, api.key).headers["etag"]
    assert get_me(server, api.key, **{"If-None-Match": tag}).status_code == 304
    assert get_me(server, api.key, **{"If-Match": '"x"'}).status_code == 412
    for method, status in (("HEAD", 200), ("OPTIONS", 200), ("PUT", 405), ("DELETE", 405)):
        assert api.http.request(method, f"{PREFIX}/me", headers=api.headers()).status_code == status


@pytest.mark.parametrize("key, code", [(None, "missing_api_key"), ("plk_junk", "invalid_api_key")])
def test_without_a_valid_key_it_is_401(server: RunningServer, key: str | None, code: str) -> None:
    response = get_me(server, key)
    assert (response.status_code, response.json()["error"]) == (401, code)


def test_unknown_parameters_are_rejected(api: Client) -> None:
    response = api.http.get(f"{PREFIX}/me?view=full", headers=api.headers())
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
