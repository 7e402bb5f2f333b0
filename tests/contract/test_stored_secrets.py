"""Every stored secret is encrypted: the columns with secrets, and the stored responses with secrets."""

import inspect
from typing import Any

import pytest
from msgspec import Struct
from msgspec.structs import fields

from contract.operations import OPERATIONS
from plankeeper.core.encryption import rotation
from plankeeper.core.files import Download
from support.server import RunningServer

# Columns that hold a secret in a form that can be read again; their names need not tell.
SECRET_COLUMNS = {
    "accounts.totp_secret",
    "webhook_endpoints.secret",
    "webhook_endpoints.old_secret",
    "single_sign_on_providers.encrypted_client_secret",
    "idempotency_records.body",
    "bank_details.current_account",
    "bank_details.proposed_account",
    "office_settings.bank_account",
    "payment_runs.account",
    "payments.account",
}
# Other columns whose names sound like a secret.
NOT_SECRETS = {
    "accounts.password_hash": "argon2id",
    "account_devices.token_hash": "the hash of a random token",
    "account_invitations.token_hash": "the hash of a random token",
    "account_password_resets.token_hash": "the hash of a random token",
    "account_recovery_codes.code_hash": "the hash of a random code",
    "approval_links.token_hash": "the hash of a random token",
    "account_sessions.token_hash": "the hash of a random token",
    "account_sessions.with_password": "whether the session was signed in with a password",
    "pending_identities.token_hash": "the hash of a random token",
    "pending_identities.invitation_token_hash": "the hash of a random token",
    "single_sign_on_flows.token_hash": "the hash of a random token",
    "single_sign_on_flows.invitation_token_hash": "the hash of a random token",
    "api_keys.key_hash": "the hash of a random key",
    "webhook_endpoints.old_secret_until": "a time",
}


class Column(Struct):
    """A column of a table."""

    name: str


@pytest.fixture(scope="module")
def columns(server: RunningServer) -> set[str]:
    statement = """
        select table_name || '.' || column_name as name from information_schema.columns
        where table_schema = 'public' and column_name ~ 'secret|token|password|code_hash|key_hash|private'
    """
    return {each.name for each in server.run(server.db.rows(Column, statement))}


def test_every_column_with_a_secret_is_encrypted_by_a_rotation(columns: set[str]) -> None:
    assert columns - set(NOT_SECRETS) <= SECRET_COLUMNS
    assert set(NOT_SECRETS) <= columns
    for statement in (rotation.COUNT_BY_KEY, rotation.LIST_WITH_OTHER_KEYS):
        assert {each for each in SECRET_COLUMNS if f"'{each}'" in statement} == SECRET_COLUMNS
    assert {
        each for each in SECRET_COLUMNS if f'case "{each}"' in inspect.getsource(rotation.replace)
    } == SECRET_COLUMNS


def _field_names(kind: Any) -> set[str]:
    return set() if kind is Download else {each.encode_name for each in fields(kind)}


def test_every_response_with_a_secret_is_stored_encrypted() -> None:
    with_secrets = {name for name, each in OPERATIONS.items() if "secret" in _field_names(each.response_type)}
    assert with_secrets == {
        "POST /webhook-endpoints",
        "POST /webhook-endpoints/{webhook_endpoint_id}/rotate-secret",
    }
    assert {name for name, each in OPERATIONS.items() if each.has_secret} == with_secrets
