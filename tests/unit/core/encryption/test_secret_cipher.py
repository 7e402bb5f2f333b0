"""Secrets are encrypted with the first key of a file, and belong to one record."""

import base64
import os
from pathlib import Path
from uuid import UUID

import pytest

from plankeeper.core.encryption.cipher import (
    SecretCipher,
    SecretDecryptionError,
    SecretKey,
    create_key_file,
    encrypting_key_id,
    read_keys,
    replace_keys,
    secret_cipher,
)
from plankeeper.core.errors import SecretKeyMissingError
from plankeeper.core.settings import Settings

RECORD = UUID("019a0000-0000-7000-8000-0000000000b1").bytes
OTHER_RECORD = UUID("019a0000-0000-7000-8000-0000000000b2").bytes


@pytest.fixture
def key_file(tmp_path: Path) -> Path:
    path = tmp_path / "secret.keys"
    create_key_file(path)
    return path


def add_key(path: Path, *, first: bool) -> SecretKey:
    key, keys = SecretKey.generate(), read_keys(path)
    replace_keys(path, [key, *keys] if first else [*keys, key])
    return key


def test_a_secret_is_read_again_and_its_text_names_the_key(key_file: Path) -> None:
    cipher = SecretCipher(key_file)
    [key_id] = cipher.key_ids()
    stored = cipher.encrypt("whsec_Grüße", RECORD)
    assert stored.startswith(f"v1:{key_id}:")
    assert encrypting_key_id(stored) == key_id
    assert "whsec" not in stored
    assert b"whsec" not in base64.urlsafe_b64decode(stored.rpartition(":")[2])
    assert cipher.decrypt(stored, RECORD) == SecretCipher(key_file).decrypt(stored, RECORD) == "whsec_Grüße"


def test_the_same_secret_has_a_different_text_each_time(key_file: Path) -> None:
    cipher = SecretCipher(key_file)
    assert len({cipher.encrypt("secret", RECORD) for _ in range(100)}) == 100


def test_a_secret_cannot_be_read_for_another_record(key_file: Path) -> None:
    cipher = SecretCipher(key_file)
    with pytest.raises(SecretDecryptionError):
        cipher.decrypt(cipher.encrypt("secret", RECORD), OTHER_RECORD)


def test_a_changed_text_is_rejected(key_file: Path) -> None:
    cipher = SecretCipher(key_file)
    stored = cipher.encrypt("secret", RECORD)
    prefix, content = stored[:12], base64.urlsafe_b64decode(stored[12:])
    flipped = [content[:at] + bytes([content[at] ^ 1]) + content[at + 1 :] for at in range(len(content))]
    changed = [prefix + base64.urlsafe_b64encode(each).decode() for each in (*flipped, content[:-1], content[:5], b"")]
    for each in [*changed, prefix + "no base64", stored + "\n"]:
        if each == prefix:
            continue
        with pytest.raises(SecretDecryptionError):
            cipher.decrypt(each, RECORD)


def test_text_that_is_not_encrypted_is_rejected(key_file: Path) -> None:
    for text in ("whsec_c2VjcmV0", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", "", '{"id":"v1:01234567:"}'):
        with pytest.raises(SecretDecryptionError):
            SecretCipher(key_file).decrypt(text, RECORD)
        assert encrypting_key_id(text) == ""


def test_without_a_key_nothing_is_encrypted(tmp_path: Path) -> None:
    for path in (None, tmp_path / "missing.keys"):
        cipher = SecretCipher(path)
        assert cipher.key_ids() == []
        with pytest.raises(SecretKeyMissingError, match="set PLANKEEPER_SECRET_KEY_FILE") as error:
            cipher.encrypt("secret", RECORD)
        assert (error.value.status, error.value.code) == (503, "secret_key_missing")


def test_a_missing_key_is_named(key_file: Path, tmp_path: Path) -> None:
    stored = SecretCipher(key_file).encrypt("secret", RECORD)
    other_file = tmp_path / "other.keys"
    create_key_file(other_file)
    for cipher in (SecretCipher(other_file), SecretCipher(None)):
        with pytest.raises(
            SecretKeyMissingError, match=f"key {encrypting_key_id(stored)}, which PLANKEEPER_SECRET_KEY"
        ):
            cipher.decrypt(stored, RECORD)


def test_the_first_key_encrypts_and_all_keys_decrypt(key_file: Path) -> None:
    cipher = SecretCipher(key_file)
    [old_id] = cipher.key_ids()
    old = cipher.encrypt("old", RECORD)
    last = add_key(key_file, first=False)
    assert (cipher.key_ids(), encrypting_key_id(cipher.encrypt("still old", RECORD))) == ([old_id, last.id], old_id)
    first = add_key(key_file, first=True)
    new = cipher.encrypt("new", RECORD)
    assert (cipher.key_ids(), encrypting_key_id(new)) == ([first.id, old_id, last.id], first.id)
    assert [cipher.decrypt(each, RECORD) for each in (old, new)] == ["old", "new"]


def test_a_file_that_appears_later_takes_effect(tmp_path: Path) -> None:
    path = tmp_path / "secret.keys"
    cipher = SecretCipher(path)
    assert cipher.key_ids() == []
    key = create_key_file(path)
    assert cipher.key_ids() == [key.id]


def test_an_unknown_key_is_looked_for_in_a_file_that_looks_unchanged(key_file: Path) -> None:
    cipher, status = SecretCipher(key_file), key_file.stat()
    assert cipher.key_ids()
    other = key_file.with_name("other.keys")
    create_key_file(other)
    stored = SecretCipher(other).encrypt("secret", RECORD)
    key_file.write_text(other.read_text())  # the same size
    os.utime(key_file, ns=(status.st_atime_ns, status.st_mtime_ns))
    assert cipher.decrypt(stored, RECORD) == "secret"


@pytest.mark.parametrize("content", ["", "# no key\n", "01234567:AAAA\n", "\xff"])
def test_while_the_file_is_invalid_the_previous_keys_remain_in_use(
    key_file: Path, content: str, caplog: pytest.LogCaptureFixture
) -> None:
    cipher = SecretCipher(key_file)
    stored = cipher.encrypt("secret", RECORD)
    valid = key_file.read_text()
    key_file.write_text(content, encoding="latin-1")
    assert cipher.decrypt(stored, RECORD) == cipher.decrypt(cipher.encrypt("secret", RECORD), RECORD) == "secret"
    [record] = caplog.records
    assert record.getMessage().endswith("the keys that were read before remain in use")
    assert str(key_file) in vars(record)["reason"]
    key_file.unlink()
    assert cipher.decrypt(stored, RECORD) == "secret"
    key_file.write_text(valid)
    assert cipher.decrypt(stored, RECORD) == "secret"


def test_the_cipher_of_the_settings_uses_the_file_beside_an_embedded_database(key_file: Path, tmp_path: Path) -> None:
    url = {"PLANKEEPER_DATABASE_URL": "postgresql://database"}
    data_dir = {"PLANKEEPER_DATA_DIR": str(tmp_path)}
    file = {"PLANKEEPER_SECRET_KEY_FILE": str(key_file)}
    assert Settings.read(data_dir).secret_key_path == key_file
    assert Settings.read(url | data_dir).secret_key_path is None
    assert Settings.read(url | file).secret_key_path == key_file
    assert secret_cipher(Settings.read(data_dir)).key_ids() == SecretCipher(key_file).key_ids()
    assert secret_cipher(Settings.read(data_dir)) is secret_cipher(Settings.read(url | file))
