"""SQL of the stored secrets of all tables.

A new column with secrets has a select in `_SECRETS`, and an update that `replace` runs.
"""

from collections import Counter
from typing import LiteralString

from msgspec import Struct

from plankeeper.core.encryption.bank_accounts import encrypt_plaintext
from plankeeper.core.encryption.cipher import SecretCipher, SecretDecryptionError, encrypting_key_id
from plankeeper.core.errors import SecretKeyMissingError
from plankeeper.database.client import Executor


class StoredSecret(Struct):
    """A secret as it is stored: the table and column, the primary key of its row, and the stored text."""

    location: str
    key: list[str]
    associated_data: bytes
    stored: str


class KeyUsage(Struct):
    """The number of stored secrets that a key encrypts."""

    key_id: str
    secrets: int


_SECRETS: LiteralString = """
    select 'accounts.totp_secret' as location, array[id::text] as key, uuid_send(id) as associated_data,
        totp_secret as stored
    from accounts where totp_secret is not null
    union all
    select 'webhook_endpoints.secret', array[plan_manager_id::text, id::text], uuid_send(id), secret
    from webhook_endpoints
    union all
    select 'webhook_endpoints.old_secret', array[plan_manager_id::text, id::text], uuid_send(id), old_secret
    from webhook_endpoints where old_secret is not null
    union all
    select 'single_sign_on_providers.encrypted_client_secret', array[plan_manager_id::text], uuid_send(id),
        encrypted_client_secret
    from single_sign_on_providers
    union all
    select 'bank_details.current_account', array[plan_manager_id::text, payee_kind, payee_id::text],
        convert_to(concat_ws(E'\\n', plan_manager_id, payee_kind, payee_id), 'UTF8'), current_account
    from bank_details where current_account is not null
    union all
    select 'bank_details.proposed_account', array[plan_manager_id::text, payee_kind, payee_id::text],
        convert_to(concat_ws(E'\\n', plan_manager_id, payee_kind, payee_id), 'UTF8'), proposed_account
    from bank_details where proposed_account is not null
    union all
    select 'office_settings.bank_account', array[plan_manager_id::text],
        convert_to(concat_ws(E'\\n', plan_manager_id, 'office_settings'), 'UTF8'), bank_account
    from office_settings where bank_account is not null
    union all
    select 'payment_runs.account', array[plan_manager_id::text, id::text],
        convert_to(concat_ws(E'\\n', plan_manager_id, 'office_settings'), 'UTF8'), account
    from payment_runs
    union all
    select 'payments.account', array[plan_manager_id::text, id::text],
        convert_to(concat_ws(E'\\n', plan_manager_id, payee_kind, payee_id), 'UTF8'), account
    from payments where account <> '' -- an erasure empties it
    union all
    -- responses with the secret of a webhook endpoint
    select 'idempotency_records.body', array[plan_manager_id::text, original_key_id::text, path, idempotency_key],
        convert_to(concat_ws(E'\\n', plan_manager_id, original_key_id, path, idempotency_key), 'UTF8'),
        convert_from(body, 'UTF8')
    from idempotency_records
    where substr(body, 1, 3) = 'v1:'
"""

COUNT_BY_KEY: LiteralString = f"""
    select coalesce(substring(stored from '^v1:([0-9a-f]{{8}}):'), '') as key_id, count(*) as secrets
    from ({_SECRETS}) secret
    group by 1
    order by 1
"""


async def count_by_key(db: Executor) -> list[KeyUsage]:
    """The keys that encrypt stored secrets, with the number of secrets."""
    return await db.rows(KeyUsage, COUNT_BY_KEY)


LIST_WITH_OTHER_KEYS: LiteralString = f"""
    select location, key, associated_data, stored
    from ({_SECRETS}) secret
    where not starts_with(stored, 'v1:' || $1 || ':')
    order by location, key
"""


async def list_with_other_keys(db: Executor, key_id: str) -> list[StoredSecret]:
    """All stored secrets that other keys encrypt."""
    return await db.rows(StoredSecret, LIST_WITH_OTHER_KEYS, key_id)


REPLACE_IN_ACCOUNT = "update accounts set totp_secret = $3 where id = $1::text::uuid and totp_secret = $2"

REPLACE_IN_ENDPOINT = """
    update webhook_endpoints set secret = $4
    where plan_manager_id = $1::text::uuid and id = $2::text::uuid and secret = $3
"""

REPLACE_OLD_IN_ENDPOINT = """
    update webhook_endpoints set old_secret = $4
    where plan_manager_id = $1::text::uuid and id = $2::text::uuid and old_secret = $3
"""

REPLACE_IN_PROVIDER = """
    update single_sign_on_providers set encrypted_client_secret = $3
    where plan_manager_id = $1::text::uuid and encrypted_client_secret = $2
"""

REPLACE_IN_RESPONSE = """
    update idempotency_records set body = convert_to($6, 'UTF8')
    where plan_manager_id = $1::text::uuid and original_key_id = $2::text::uuid and path = $3 and idempotency_key = $4
        and body = convert_to($5, 'UTF8')
"""

REPLACE_CURRENT_ACCOUNT = """
    update bank_details set current_account = $5, current_hash = $6
    where plan_manager_id = $1::text::uuid and payee_kind = $2 and payee_id = $3::text::uuid and current_account = $4
"""

REPLACE_PROPOSED_ACCOUNT = """
    update bank_details set proposed_account = $5, proposed_hash = $6
    where plan_manager_id = $1::text::uuid and payee_kind = $2 and payee_id = $3::text::uuid and proposed_account = $4
"""

REPLACE_IN_OFFICE_SETTINGS = """
    update office_settings set bank_account = $3 where plan_manager_id = $1::text::uuid and bank_account = $2
"""

REPLACE_IN_RUN = """
    update payment_runs set account = $4
    where plan_manager_id = $1::text::uuid and id = $2::text::uuid and account = $3
"""

REPLACE_IN_PAYMENT = """
    update payments set account = $4
    where plan_manager_id = $1::text::uuid and id = $2::text::uuid and account = $3
"""


async def replace(  # noqa: C901 - a table of statements
    db: Executor, secret: StoredSecret, stored: str, hash_: bytes | None = None
) -> None:
    """Replace the stored text of a secret, unless the secret has changed since it was read. Accounts have a hash."""
    match secret.location:
        case "accounts.totp_secret":
            await db.execute(REPLACE_IN_ACCOUNT, *secret.key, secret.stored, stored)
        case "webhook_endpoints.secret":
            plan_manager_id, endpoint_id = secret.key
            await db.execute(REPLACE_IN_ENDPOINT, plan_manager_id, endpoint_id, secret.stored, stored)
        case "webhook_endpoints.old_secret":
            plan_manager_id, endpoint_id = secret.key
            await db.execute(REPLACE_OLD_IN_ENDPOINT, plan_manager_id, endpoint_id, secret.stored, stored)
        case "single_sign_on_providers.encrypted_client_secret":
            [plan_manager_id] = secret.key
            await db.execute(REPLACE_IN_PROVIDER, plan_manager_id, secret.stored, stored)
        case "bank_details.current_account":
            plan_manager_id, *key = secret.key
            await db.execute(REPLACE_CURRENT_ACCOUNT, plan_manager_id, *key, secret.stored, stored, hash_)
        case "bank_details.proposed_account":
            plan_manager_id, *key = secret.key
            await db.execute(REPLACE_PROPOSED_ACCOUNT, plan_manager_id, *key, secret.stored, stored, hash_)
        case "office_settings.bank_account":
            [plan_manager_id] = secret.key
            await db.execute(REPLACE_IN_OFFICE_SETTINGS, plan_manager_id, secret.stored, stored)
        case "payment_runs.account":
            plan_manager_id, run_id = secret.key
            await db.execute(REPLACE_IN_RUN, plan_manager_id, run_id, secret.stored, stored)
        case "payments.account":
            plan_manager_id, payment_id = secret.key
            await db.execute(REPLACE_IN_PAYMENT, plan_manager_id, payment_id, secret.stored, stored)
        case "idempotency_records.body":
            plan_manager_id, *key = secret.key
            await db.execute(REPLACE_IN_RESPONSE, plan_manager_id, *key, secret.stored, stored)
        case unknown:
            raise ValueError(f"no statement replaces the secrets in {unknown}")


_MAX_PASSES = 10


async def encrypt_with_first_key(db: Executor, cipher: SecretCipher) -> int:
    """Encrypt the secrets of other keys with the first key, and return their number.

    Servers can keep running. Secrets whose key is missing and damaged secrets stay as they are. Raises
    SecretKeyMissingError if there is no key at all.
    """
    key_id, encrypted = cipher.require_key(), 0
    for _ in range(_MAX_PASSES):  # again, because a secret can move from one column to another in the meantime
        secrets = await list_with_other_keys(db, key_id)
        results = [await encrypt(db, cipher, secret) for secret in secrets]
        encrypted += sum(results)
        if not any(results):
            break
    return encrypted


async def count_undecryptable(db: Executor, cipher: SecretCipher) -> list[KeyUsage]:
    """The number of secrets that can't be decrypted: their keys are missing, or they are damaged.

    Secrets that servers have stored with an older key of the file in the meantime are not among them.
    """
    secrets = await list_with_other_keys(db, cipher.require_key())
    counts = Counter(encrypting_key_id(each.stored) for each in secrets if _decrypt(cipher, each) is None)
    return [KeyUsage(key_id, number) for key_id, number in counts.items()]


async def encrypt(db: Executor, cipher: SecretCipher, secret: StoredSecret) -> bool:
    """Encrypt a secret with the first key; False if it cannot be decrypted."""
    plaintext = _decrypt(cipher, secret)
    if plaintext is None:
        return False
    if secret.location.startswith("bank_details."):
        account = encrypt_plaintext(cipher, secret.key[0], plaintext, secret.associated_data)
        await replace(db, secret, account.stored, account.hash)
    else:
        await replace(db, secret, cipher.encrypt(plaintext, secret.associated_data))
    return True


def _decrypt(cipher: SecretCipher, secret: StoredSecret) -> str | None:
    try:
        return cipher.decrypt(secret.stored, secret.associated_data)
    except (SecretKeyMissingError, SecretDecryptionError):
        return None
