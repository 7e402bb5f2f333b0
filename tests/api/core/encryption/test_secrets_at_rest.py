"""No secret is stored in plain text, and a secret belongs to one record."""

import asyncio
import json
import time
from collections.abc import Callable
from datetime import timedelta
from typing import Any
from unittest.mock import ANY
from uuid import UUID

import pytest
from msgspec import Struct
from pyotp.totp import TOTP

from plankeeper.access.accounts import self_service, totp
from plankeeper.access.accounts.schemas import LoginResult
from plankeeper.access.tokens import parse_recovery_code
from plankeeper.core.encryption.cipher import SecretDecryptionError, encrypting_key_id, secret_cipher
from plankeeper.core.errors import SecretKeyMissingError
from plankeeper.webhooks.worker import MAX_PER_ENDPOINT
from support.accounts import PASSWORD, AccountDriver
from support.client import Client
from support.receiver import Receiver
from support.server import RunningServer, wait_until
from support.webhooks import emit_events, list_deliveries, new_worker, poll_once, signature_of, wait_for_deliveries

NewEndpoint = Callable[[], dict[str, Any]]
MISSING = "The server has no secret key, which this request needs: set PLANKEEPER_SECRET_KEY_FILE."


class Row(Struct):
    """A row of any table, as one text."""

    content: str


def stored_rows(server: RunningServer, table: str) -> str:
    """All rows of a table: every column as text, and binary columns as hexadecimal."""
    statement = f"select t::text as content from {table} t"
    return "\n".join(each.content for each in server.run(server.db.rows(Row, statement)))


def table_names(server: RunningServer) -> list[str]:
    statement = "select tablename::text as content from pg_tables where schemaname = 'public'"
    return [each.content for each in server.run(server.db.rows(Row, statement))]


def stored_secrets(server: RunningServer) -> list[str]:
    statement = "select secret || coalesce(old_secret, '') as content from webhook_endpoints order by id"
    return [each.content for each in server.run(server.db.rows(Row, statement))]


def assert_not_stored(server: RunningServer, *secrets: str) -> None:
    for table in table_names(server):
        content = stored_rows(server, table)
        found = [each for each in secrets if each in content or each.encode().hex() in content]
        assert not found, table


def code_of(secret: str, drift: int = 0) -> str:
    return TOTP(secret).generate_otp(int(time.time()) // 30 + drift)


def enable_two_factor(account: AccountDriver) -> tuple[str, list[str]]:
    """Turn two-factor authentication on, and return the secret and the recovery codes."""
    server, secret, token = account.server, totp.new_secret(), account.token()
    session = account.session(token)
    assert session
    verified = server.run(self_service.reauthenticate(server.db, server.settings, session, PASSWORD, "192.0.2.7", ""))
    codes, _ = account.run_as_session(
        lambda tx, session: self_service.enable_totp(tx, server.settings, session, verified, secret, code_of(secret)),
        token,
    )
    server.run(server.db.execute("update accounts set totp_counter = 0 where id = $1", account.id))
    return secret, codes


def password_verified_token(account: AccountDriver) -> str:
    result = account.sign_in()
    assert isinstance(result, LoginResult)
    assert result.two_factor_pending
    return result.token


@pytest.fixture
def account(server: RunningServer, plan_manager_id: UUID) -> AccountDriver:
    return AccountDriver(server, plan_manager_id)


def with_key(key: str) -> dict[str, Any]:
    return {"headers": {"Idempotency-Key": key}}


def test_webhook_secrets_are_stored_nowhere_in_plain_text(server: RunningServer, api: Client) -> None:
    created = api.post("/webhook-endpoints", {"url": "https://example.com/hooks"}, **with_key("create"))
    path = f"/webhook-endpoints/{created.json()['id']}/rotate-secret"
    rotated = api.post(path, **with_key("rotate"))
    secrets = [created.json()["secret"], rotated.json()["secret"]]
    assert_not_stored(server, *secrets, *(each.removeprefix("whsec_") for each in secrets))
    rows = stored_rows(server, "webhook_endpoints"), stored_rows(server, "idempotency_records")
    key_id = secret_cipher(server.settings).require_key()
    assert rows[0].count(f"v1:{key_id}:") == 2  # the new and the old secret
    assert rows[1].count(f"v1:{key_id}:".encode().hex()) == 2


def test_a_stored_response_with_a_secret_is_replayed_byte_for_byte(server: RunningServer, api: Client) -> None:
    body = {"url": "https://example.com/hooks", "description": "Grüße"}
    first, again = (api.post("/webhook-endpoints", body, **with_key("one")) for _ in range(2))
    assert (again.status_code, again.content) == (first.status_code, first.content)
    assert again.headers["idempotent-replayed"] == "true"
    path = f"/webhook-endpoints/{first.json()['id']}/rotate-secret"
    rotated, again = (api.post(path, **with_key("one")) for _ in range(2))
    assert again.content == rotated.content
    assert rotated.json()["secret"] != first.json()["secret"]


def test_a_totp_secret_is_stored_nowhere_in_plain_text(server: RunningServer, account: AccountDriver) -> None:
    secret, _ = enable_two_factor(account)
    assert_not_stored(server, secret)
    for drift in (0, 1):
        result = account.verify_two_factor(password_verified_token(account), code_of(secret, drift))
        assert isinstance(result, LoginResult)
        assert not result.two_factor_pending


def test_a_secret_of_another_record_is_not_used(
    server: RunningServer,
    api: Client,
    new_endpoint: NewEndpoint,
    receiver: Receiver,
    account: AccountDriver,
    plan_manager_id: UUID,
) -> None:
    """Somebody who can write to the database could otherwise sign in or sign with a secret that they know."""
    first, _ = new_endpoint(), new_endpoint()
    copied = """
        update webhook_endpoints endpoint set secret = copied.secret
        from webhook_endpoints copied
        where endpoint.plan_manager_id = $1 and copied.plan_manager_id = $1 and copied.id = $2
    """
    server.run(server.db.execute(copied, UUID(api.plan_manager_id), UUID(first["id"])))
    emit_events(server, api)
    wait_until(lambda: len(list_deliveries(api, first)) == 1)
    assert poll_once(server) == 2
    [delivery] = list_deliveries(api, first)
    assert (delivery["attempts"], delivery["status"]) == ([ANY], "succeeded")
    [request] = receiver.received
    assert request.headers["webhook-signature"] == signature_of(first["secret"], request)
    attacker = AccountDriver(server, plan_manager_id)
    enable_two_factor(account)
    secret, _ = enable_two_factor(attacker)
    copied = "update accounts set totp_secret = (select totp_secret from accounts where id = $1) where id = $2"
    server.run(server.db.execute(copied, attacker.id, account.id))
    with pytest.raises(SecretDecryptionError):
        account.verify_two_factor(password_verified_token(account), code_of(secret))


def test_without_a_key_what_needs_it_returns_503_and_names_the_setting(
    server_without_key: RunningServer, api: Client, new_endpoint: NewEndpoint
) -> None:
    endpoint = new_endpoint()
    kept = api.post("/webhook-endpoints", {"url": "https://example.com"}, **with_key("kept"))
    client = Client(server_without_key.url, api.key, api.plan_manager_id)
    path = f"/webhook-endpoints/{endpoint['id']}"
    before = api.get("/webhook-endpoints").json(), stored_secrets(server_without_key)
    for response in (
        client.post("/webhook-endpoints", {"url": "https://example.com"}),
        client.post("/webhook-endpoints", {"url": "https://example.com"}, **with_key("new")),
        client.post(f"{path}/rotate-secret"),
    ):
        assert response.status_code == 503
        assert response.headers["retry-after"] == "60"
        assert response.json() == {
            "success": False,
            "error": "secret_key_missing",
            "detail": MISSING,
            "request_id": response.headers["x-request-id"],
            "documentation_url": "/docs/api/errors#secret_key_missing",
        }
    replayed = client.post("/webhook-endpoints", {"url": "https://example.com"}, **with_key("kept"))
    assert (replayed.status_code, replayed.json()["error"]) == (503, "secret_key_missing")
    assert replayed.json()["detail"].endswith(", which PLANKEEPER_SECRET_KEY_FILE does not contain.")
    assert (api.get("/webhook-endpoints").json(), stored_secrets(server_without_key)) == before
    assert kept.json()["secret"] not in replayed.text
    # Everything else works.
    assert client.get(path).json() == {name: endpoint[name] for name in endpoint if name != "secret"}
    assert client.put(path, {"description": "Changed"}).json()["description"] == "Changed"
    assert client.post(f"{path}/test").status_code == 200
    assert client.post("/note-types", {"note_type": "One"}, **with_key("one")).status_code in (200, 201)
    assert client.delete(path).status_code == 200
    client.http.close()


def test_without_a_key_only_recovery_codes_complete_a_sign_in(
    server_without_key: RunningServer, account: AccountDriver, plan_manager_id: UUID
) -> None:
    secret, codes = enable_two_factor(account)
    account.server = server_without_key
    token = password_verified_token(account)
    with pytest.raises(SecretKeyMissingError) as error:
        account.verify_two_factor(token, code_of(secret))
    assert error.value.status == 503
    assert "PLANKEEPER_SECRET_KEY_FILE" in error.value.detail
    assert isinstance(account.verify_two_factor(token, parse_recovery_code(codes[0])), LoginResult)
    other = AccountDriver(server_without_key, plan_manager_id)
    with pytest.raises(SecretKeyMissingError, match="set PLANKEEPER_SECRET_KEY_FILE"):
        enable_two_factor(other)
    assert isinstance(other.sign_in(), LoginResult)


def test_deliveries_wait_for_a_worker_with_the_key(
    server: RunningServer,
    server_without_key: RunningServer,
    api: Client,
    new_endpoint: NewEndpoint,
    receiver: Receiver,
    caplog: pytest.LogCaptureFixture,
) -> None:
    endpoint = new_endpoint()
    emit_events(server, api, 3)
    wait_for_deliveries(api, endpoint, 3)
    assert poll_once(server_without_key) == 3
    assert receiver.received == []
    assert {(each["status"], len(each["attempts"])) for each in list_deliveries(api, endpoint)} == {("pending", 0)}
    [logged] = [each for each in caplog.records if each.name == "plankeeper"]
    assert logged.getMessage() == "webhook deliveries wait for a secret key"
    assert vars(logged)["reason"].startswith("A stored secret is encrypted with the key ")
    assert vars(logged)["reason"].endswith(", which PLANKEEPER_SECRET_KEY_FILE does not contain.")
    assert len(caplog.records) == 1
    wait_until(lambda: poll_once(server) == 0)
    server.run(server.db.execute("update webhook_deliveries set next_attempt_at = now()"))
    assert poll_once(server) == 3
    assert len(receiver.received) == 3


def test_a_worker_without_the_key_leaves_deliveries_to_others(
    server: RunningServer,
    server_without_key: RunningServer,
    api: Client,
    new_endpoint: NewEndpoint,
    receiver: Receiver,
) -> None:
    async def poll_three_times() -> list[int]:
        worker, client = new_worker(server_without_key)
        claimed: list[int] = []
        for _ in range(3):
            claimed.append(await worker.poll())
            await asyncio.gather(*worker._tasks)  # noqa: SLF001 - the attempts of this poll
        await client.close()
        return claimed

    endpoint = new_endpoint()
    emit_events(server, api, 20)
    wait_for_deliveries(api, endpoint, 20)
    assert server_without_key.run(poll_three_times()) == [MAX_PER_ENDPOINT, 0, 0]
    assert [poll_once(server) for _ in range(3)] == [8, 4, 0]
    assert poll_once(server, timedelta(seconds=61)) == 8  # the lease of the other worker
    assert len(receiver.received) == 20


def test_a_rotation_helps_when_the_key_of_the_old_secret_is_lost(
    server: RunningServer, api: Client, new_endpoint: NewEndpoint, receiver: Receiver
) -> None:
    endpoint = new_endpoint()
    lost = "update webhook_endpoints set secret = regexp_replace(secret, '^v1:[0-9a-f]{8}', 'v1:00000000')"
    server.run(server.db.execute(lost))
    rotated = api.post(f"/webhook-endpoints/{endpoint['id']}/rotate-secret").json()
    emit_events(server, api)
    wait_for_deliveries(api, endpoint, 1)
    poll_once(server)
    [request] = receiver.received
    assert request.headers["webhook-signature"] == signature_of(rotated["secret"], request)


def test_a_stored_response_without_a_secret_is_not_encrypted(server: RunningServer, api: Client) -> None:
    response = api.post("/note-types", {"note_type": "One"}, **with_key("plain"))
    [row] = server.run(server.db.rows(Row, "select convert_from(body, 'UTF8') as content from idempotency_records"))
    assert json.loads(row.content) == response.json()
    assert encrypting_key_id(row.content) == ""
