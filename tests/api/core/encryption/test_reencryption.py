"""All stored secrets are encrypted with the first key of the file, and each key's secrets are counted."""

from collections.abc import Callable
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import store as accounts
from plankeeper.access.accounts import totp
from plankeeper.core.encryption import rotation
from plankeeper.core.encryption.cipher import (
    SecretCipher,
    SecretKey,
    read_keys,
    replace_keys,
    secret_cipher,
)
from plankeeper.core.encryption.rotation import StoredSecret, encrypt_with_first_key
from plankeeper.core.errors import SecretKeyMissingError
from plankeeper.privacy import financial_store
from support.accounts import AccountDriver
from support.client import Client
from support.server import RunningServer
from support.single_sign_on import set_up_provider

ENDPOINT = {"url": "https://example.com/hooks"}


def usage_of(server: RunningServer) -> dict[str, int]:
    return {each.key_id: each.secrets for each in server.run(rotation.count_by_key(server.db))}


def all_secrets(server: RunningServer) -> list[StoredSecret]:
    return server.run(rotation.list_with_other_keys(server.db, "no key"))


def locations(server: RunningServer) -> list[str]:
    return [each.location for each in all_secrets(server)]


@pytest.fixture
def responses(server: RunningServer, api: Client, plan_manager_id: UUID) -> list[Any]:
    """Create a secret of each kind, and return the stored responses."""
    account, secret = AccountDriver(server, plan_manager_id), totp.new_secret()
    encrypted = secret_cipher(server.settings).encrypt(secret, account.id.bytes)
    account.write(lambda ctx: accounts.set_totp(ctx.tx, account.id, encrypted, 0))
    set_up_provider(server, plan_manager_id, "https://login.example.com", "example.com")
    created = api.post("/webhook-endpoints", ENDPOINT, headers={"Idempotency-Key": "create"})
    path = f"/webhook-endpoints/{created.json()['id']}/rotate-secret"
    return [created, api.post(path, headers={"Idempotency-Key": "rotate"})]


ALL_LOCATIONS = [
    "accounts.totp_secret",
    "idempotency_records.body",
    "idempotency_records.body",
    "single_sign_on_providers.encrypted_client_secret",
    "webhook_endpoints.old_secret",
    "webhook_endpoints.secret",
]


def decrypted(server: RunningServer, cipher: SecretCipher) -> list[str]:
    return [cipher.decrypt(each.stored, each.associated_data) for each in all_secrets(server)]


def test_every_secret_is_counted_and_encrypted_with_a_new_first_key(
    server: RunningServer, responses: list[Any], tmp_path: Path
) -> None:
    assert server.settings.secret_key_path
    [old] = read_keys(server.settings.secret_key_path)
    assert locations(server) == ALL_LOCATIONS
    assert usage_of(server) == {old.id: 6}
    before = decrypted(server, secret_cipher(server.settings))
    path, new = tmp_path / "secret.keys", SecretKey.generate()
    path.touch()
    replace_keys(path, [new, old])
    cipher = SecretCipher(path)
    assert server.run(encrypt_with_first_key(server.db, cipher)) == 6
    assert usage_of(server) == {new.id: 6}
    replace_keys(path, [new])
    assert decrypted(server, cipher) == before
    assert [each.encode() for each in before[1:3]] == [each.content for each in responses]
    stored = all_secrets(server)
    assert server.run(encrypt_with_first_key(server.db, cipher)) == 0
    assert all_secrets(server) == stored


def test_other_stored_responses_are_not_secrets(server: RunningServer, api: Client) -> None:
    api.post("/note-types", {"note_type": '"secret":"whsec_x"'}, headers={"Idempotency-Key": "note"})
    api.post("/note-types", {"note_type": "v1:00000000:AAAA"}, headers={"Idempotency-Key": "encrypted"})
    assert usage_of(server) == {}


def test_secrets_that_cannot_be_decrypted_stay_as_they_are(
    server: RunningServer, responses: list[Any], new_key_file: Callable[[], tuple[Path, SecretKey]]
) -> None:
    path, key = new_key_file()
    before = all_secrets(server)
    assert server.run(encrypt_with_first_key(server.db, SecretCipher(path))) == 0
    assert all_secrets(server) == before
    [(lost_id, count)] = usage_of(server).items()
    assert (count, lost_id == key.id) == (6, False)
    for location in ("accounts.totp_secret", "webhook_endpoints.secret"):
        [damaged] = [each for each in all_secrets(server) if each.location == location]
        server.run(rotation.replace(server.db, damaged, f"{damaged.stored[:-8]}AAAAAAA="))
    first = SecretKey.generate()
    assert server.settings.secret_key_path
    replace_keys(path, [first, *read_keys(server.settings.secret_key_path)])
    assert server.run(encrypt_with_first_key(server.db, SecretCipher(path))) == 4
    assert usage_of(server) == {first.id: 4, lost_id: 2}


def insert_payments(server: RunningServer, plan_manager_id: UUID, participant_ids: list[UUID]) -> None:
    """A payment run with a payment to each participant, with encrypted accounts."""
    cipher, run_id = secret_cipher(server.settings), uuid7()
    account = cipher.encrypt("062-000 12345678", f"{plan_manager_id}\noffice_settings".encode())
    insert_run = """
        insert into payment_runs (plan_manager_id, id, number, state, process_date, group_by, header, account, total,
            payment_count, created_at)
        values ($1, $2, 'P000001', 'paid', '2026-01-05', 'payee', '{}', $3, 2, 2, now())
    """
    server.execute_as_owner(insert_run, plan_manager_id, run_id, account)
    insert_payment = """
        insert into payments (plan_manager_id, id, run_id, position, payee_kind, payee_id, payee_name, account,
            account_ending, account_title, reference, amount, state, created_at)
        values ($1, $2, $3, $4, 'participant', $5, 'Sam', $6, '678', 'SAM', 'P000001', 1, 'paid', now())
    """
    for position, each in enumerate(participant_ids, 1):
        account = cipher.encrypt("062-000 12345678", f"{plan_manager_id}\nparticipant\n{each}".encode())
        server.execute_as_owner(insert_payment, plan_manager_id, uuid7(), run_id, position, each, account)


def test_an_erased_payment_has_no_secret(
    server: RunningServer, plan_manager_id: UUID, new_key_file: Callable[[], tuple[Path, SecretKey]]
) -> None:
    erased_id, other_id = uuid7(), uuid7()
    insert_payments(server, plan_manager_id, [erased_id, other_id])

    async def erase() -> int:
        async with server.db.transaction() as tx:
            return await financial_store.erase_payments(tx, plan_manager_id, erased_id)

    assert server.run(erase()) == 1
    assert locations(server) == ["payment_runs.account", "payments.account"]
    assert server.settings.secret_key_path
    path, new = new_key_file()
    replace_keys(path, [new, *read_keys(server.settings.secret_key_path)])
    cipher = SecretCipher(path)
    assert server.run(encrypt_with_first_key(server.db, cipher)) == 2
    assert server.run(rotation.count_undecryptable(server.db, cipher)) == []
    assert usage_of(server) == {new.id: 2}


def test_a_secret_that_changed_since_it_was_read_is_not_replaced(server: RunningServer, responses: list[Any]) -> None:
    before = all_secrets(server)
    for each in before:
        server.run(rotation.replace(server.db, StoredSecret(each.location, each.key, b"", "other"), "v1:00000000:AAAA"))
    assert all_secrets(server) == before
    for each in before:
        server.run(rotation.replace(server.db, each, f"{each.stored} {each.location}"))
    assert [each.stored for each in all_secrets(server)] == [f"{each.stored} {each.location}" for each in before]


def test_without_a_key_nothing_is_encrypted(server: RunningServer) -> None:
    with pytest.raises(SecretKeyMissingError, match="set PLANKEEPER_SECRET_KEY_FILE"):
        server.run(encrypt_with_first_key(server.db, SecretCipher(None)))
