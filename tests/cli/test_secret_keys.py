"""`plankeeper secret-key`, and what doctor, backup and restore say about keys."""

import base64
import json
import stat
import subprocess
from pathlib import Path
from typing import NamedTuple

import pytest
from click.testing import CliRunner
from uuid_utils.compat import uuid7

from plankeeper.cli import plankeeper
from plankeeper.core.encryption.cipher import SecretCipher, create_key_file, read_keys
from plankeeper.server.embedded_postgres import binaries
from support.cluster import SharedCluster, execute
from support.program import Done, run_plankeeper

SECRETS = ["JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXP", "JBSWY3DPEHPK3PXPJBSWY3DPEHPK3PXQ"]


class Installation(NamedTuple):
    """A database of its own, with a key file."""

    dsn: str
    key_file: Path

    def run(self, *arguments: str, key_file: Path | None = None) -> Done:
        settings = {"PLANKEEPER_DATABASE_URL": self.dsn, "PLANKEEPER_SECRET_KEY_FILE": str(key_file or self.key_file)}
        return run_plankeeper(*arguments, **settings)

    def succeed(self, *arguments: str, key_file: Path | None = None) -> list[str]:
        """The lines of a command that succeeds without a warning."""
        done = self.run(*arguments, key_file=key_file)
        assert (done.returncode, done.stderr) == (0, ""), done
        return done.stdout.splitlines()

    def doctor(self, key_file: Path | None = None) -> list[str]:
        """The lines of doctor from the schema on."""
        lines = self.run("doctor", key_file=key_file).stdout.splitlines()
        [position] = [position for position, line in enumerate(lines) if line.startswith("ok    schema ")]
        return lines[position + 1 :]

    def add_accounts(self, *secrets: str, key_file: Path | None = None) -> None:
        """Accounts with two-factor authentication, whose secrets the first key of a file encrypts."""
        cipher = SecretCipher(key_file or self.key_file)
        for number, secret in enumerate(secrets):
            id_ = uuid7()
            execute(
                self.dsn,
                "insert into accounts (id, email, name, password_hash, totp_secret, created_at)"
                f" values ('{id_}', '{number}@example.com', 'A', '', '{cipher.encrypt(secret, id_.bytes)}', now())",
            )

    def key_ids(self) -> list[str]:
        return [key.id for key in read_keys(self.key_file)]


@pytest.fixture
def installation(cluster: SharedCluster, tmp_path: Path) -> Installation:
    key_file = tmp_path / "secret.keys"
    create_key_file(key_file)
    return Installation(cluster.new_database(), key_file)


def error_message(done: Done) -> str:
    assert done.returncode == 1, done
    if done.stderr.startswith("{"):  # of a server
        return json.loads(done.stderr)["reason"]
    [sentence] = [line for line in done.stderr.splitlines() if line.startswith("Error: ")]
    return sentence.removeprefix("Error: ")


def test_create_writes_a_file_that_only_its_owner_can_read(tmp_path: Path) -> None:
    file = tmp_path / "secret.keys"
    done = run_plankeeper("secret-key", "create", str(file))
    assert (done.returncode, done.stderr) == (0, "")
    [key] = read_keys(file)
    assert done.stdout.splitlines() == [
        f"{file}: created with the key {key.id}.",
        "Set PLANKEEPER_SECRET_KEY_FILE to this file on all servers. Keep a copy of it, apart from the backups.",
    ]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    again = run_plankeeper("secret-key", "create", str(file))
    assert error_message(again) == f"{file} already exists. Its keys may be in use, so it is not overwritten."
    assert read_keys(file) == [key]


def test_a_rotation_step_by_step(installation: Installation) -> None:
    [old_id], file = installation.key_ids(), installation.key_file
    installation.add_accounts(*SECRETS)
    added, command = installation.succeed("secret-key", "rotate", "--add-key")
    [_, new_id] = installation.key_ids()
    assert added == f"{file}: added the key {new_id}, which only decrypts. Copy the file to all servers, then run"
    assert command == f"plankeeper secret-key rotate --promote {new_id}"
    assert installation.succeed("secret-key", "list") == [
        f"{old_id}  encrypts  2 secrets",
        f"{new_id}  decrypts  0 secrets",
    ]
    for encrypted in (2, 0):
        assert installation.succeed("secret-key", "rotate", "--promote", new_id) == [
            f"{file}: the key {new_id} is the first. Copy the file to all servers.",
            f"{encrypted} secrets encrypted with the key {new_id}.",
        ]
        assert installation.key_ids() == [new_id, old_id]
    assert installation.succeed("secret-key", "rotate", "--drop-old-keys") == [
        f"{file}: dropped {old_id}. Copy the file to all servers.",
        "Keep the previous file as long as you keep backups from before the rotation.",
    ]
    assert installation.succeed("secret-key", "rotate", "--drop-old-keys") == [
        f"{file}: dropped no key. Copy the file to all servers."
    ]
    assert installation.succeed("secret-key", "list") == [f"{new_id}  encrypts  2 secrets"]
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_an_old_key_in_use_is_not_dropped(installation: Installation, tmp_path: Path) -> None:
    """A server that doesn't have the new file yet has stored another secret with the old key."""
    old_file = tmp_path / "old.keys"
    old_file.write_bytes(installation.key_file.read_bytes())
    installation.succeed("secret-key", "rotate", "--add-key")
    old_id, new_id = installation.key_ids()
    installation.succeed("secret-key", "rotate", "--promote", new_id)
    installation.add_accounts(SECRETS[0], key_file=old_file)
    assert error_message(installation.run("secret-key", "rotate", "--drop-old-keys")) == (
        f"Old keys are in use: 1 secret of the key {old_id}. Run `plankeeper secret-key rotate` once all servers have"
        " the file."
    )
    assert installation.key_ids() == [new_id, old_id]
    assert installation.succeed("secret-key", "rotate") == [f"1 secret encrypted with the key {new_id}."]
    installation.succeed("secret-key", "rotate", "--drop-old-keys")
    assert installation.key_ids() == [new_id]


def test_a_secret_that_a_server_stores_with_the_old_key_during_the_rotation_is_no_error(
    installation: Installation,
) -> None:
    [old_id] = installation.key_ids()
    installation.add_accounts(SECRETS[0])
    execute(
        installation.dsn,
        "create function keep_old() returns trigger language plpgsql as 'begin return old; end'",
        "create trigger keep_old before update on accounts for each row execute function keep_old()",
    )
    installation.succeed("secret-key", "rotate", "--add-key")
    new_id = installation.key_ids()[1]
    installation.succeed("secret-key", "rotate", "--promote", new_id)
    execute(installation.dsn, "drop trigger keep_old on accounts")
    assert f"{old_id}  decrypts  1 secret" in installation.succeed("secret-key", "list")
    assert installation.succeed("secret-key", "rotate") == [f"1 secret encrypted with the key {new_id}."]


def test_help_explains_the_steps() -> None:
    text = " ".join(CliRunner().invoke(plankeeper, ["secret-key", "rotate", "--help"]).output.split())
    for step in ("1. `rotate --add-key`", "2. `rotate --promote KEY_ID`", "3. `rotate`", "4. `rotate --drop-old-keys`"):
        assert step in text


def test_rotate_refuses_what_it_cannot_do(installation: Installation, tmp_path: Path) -> None:
    before = installation.key_file.read_bytes()
    both = installation.run("secret-key", "rotate", "--add-key", "--drop-old-keys")
    assert both.returncode == 2
    assert "Use one of --add-key, --promote and --drop-old-keys at a time." in both.stderr
    unknown = error_message(installation.run("secret-key", "rotate", "--promote", "00000000"))
    assert unknown == f"{installation.key_file} contains no key 00000000. See `plankeeper secret-key list`."
    assert installation.key_file.read_bytes() == before
    unset = run_plankeeper("secret-key", "rotate", PLANKEEPER_DATABASE_URL=installation.dsn)
    assert error_message(unset) == (
        "PLANKEEPER_SECRET_KEY_FILE is not set. `plankeeper secret-key create FILE` creates a key file."
    )
    missing = tmp_path / "missing.keys"
    assert error_message(installation.run("secret-key", "rotate", key_file=missing)) == (
        f"There is no key file {missing}. Copy it from another server or from your own copy. If there has never been"
        f" one, run `plankeeper secret-key create {missing}`."
    )
    damaged = tmp_path / "damaged.keys"
    damaged.write_bytes(before[:-3])
    for command in (["secret-key", "rotate"], ["secret-key", "rotate", "--add-key"], ["serve", "--port", "0"]):
        sentence = error_message(installation.run(*command, key_file=damaged))
        assert sentence == f"Line 3 of the key file {damaged} is not a valid key, or is damaged."
    assert damaged.read_bytes() == before[:-3]
    unreadable = installation.run("serve", "--port", "0", key_file=tmp_path)
    assert error_message(unreadable) == f"Cannot read the key file {tmp_path}: Is a directory."


def test_secrets_of_a_missing_key_are_reported(installation: Installation, tmp_path: Path) -> None:
    installation.add_accounts(*SECRETS)
    [old_id], other = installation.key_ids(), tmp_path / "other.keys"
    key = create_key_file(other)
    rejected = installation.run("secret-key", "rotate", key_file=other)
    assert error_message(rejected) == f"Not all secrets could be decrypted: 2 secrets of the key {old_id}."
    assert installation.succeed("secret-key", "list", key_file=other) == [
        f"{key.id}  encrypts  0 secrets",
        f"{old_id}  missing   2 secrets",
    ]
    assert installation.run("doctor", key_file=other).returncode == 1
    assert installation.doctor(other) == [
        f"ok    key file {other}: {key.id} encrypts",
        f"ok    the database contains 2 secrets of the key {old_id}",
        f"FAIL  The key file (PLANKEEPER_SECRET_KEY_FILE) lacks keys of stored secrets: 2 secrets of the key {old_id}",
    ]


def test_doctor_reports_keys_and_counts_their_secrets(installation: Installation, tmp_path: Path) -> None:
    [first_id], file = installation.key_ids(), installation.key_file
    assert installation.doctor() == [f"ok    key file {file}: {first_id} encrypts"]
    not_set = "PLANKEEPER_SECRET_KEY_FILE is not set: `plankeeper secret-key create FILE` creates a key file"
    without_file = run_plankeeper("doctor", PLANKEEPER_DATABASE_URL=installation.dsn)
    assert (without_file.returncode, without_file.stdout.splitlines()[-1]) == (0, f"warn  {not_set}")
    installation.add_accounts(*SECRETS)
    installation.succeed("secret-key", "rotate", "--add-key")
    second_id = installation.key_ids()[1]
    file.chmod(0o640)
    assert installation.doctor() == [
        f"ok    key file {file}: {first_id} encrypts, {second_id} only decrypts",
        f"warn  other users of the system can read {file}: run `chmod 600 {file}`",
        f"ok    the database contains 2 secrets of the key {first_id}",
    ]
    without_file = run_plankeeper("doctor", PLANKEEPER_DATABASE_URL=installation.dsn)
    assert (without_file.returncode, f"FAIL  {not_set}" in without_file.stdout.splitlines()) == (1, True)
    missing = tmp_path / "missing.keys"
    assert installation.doctor(missing)[0].startswith(f"FAIL  There is no key file {missing}. Copy it from")


def test_a_backup_contains_no_key_and_restore_names_the_keys(
    installation: Installation, cluster: SharedCluster, tmp_path: Path
) -> None:
    installation.add_accounts(*SECRETS)
    [key] = read_keys(installation.key_file)
    dump = tmp_path / "plankeeper.dump"
    installation.succeed("backup", str(dump))
    content = _restored_text(dump, tmp_path / "plain.sql")
    assert f"v1:{key.id}:" in content
    encodings = [key.value.hex(), base64.b64encode(key.value).decode(), base64.urlsafe_b64encode(key.value).decode()]
    assert [each for each in [*encodings, *SECRETS] if each in content] == []
    assert key.value not in dump.read_bytes()

    restored = [
        f"Restored {dump}: the schema is {_schema(installation)}.",
        f"It contains 2 secrets of the key {key.id}.",
    ]
    target = Installation(cluster.new_database(migrated=False), installation.key_file)
    assert target.succeed("restore", str(dump)) == restored
    assert target.doctor()[1:] == [f"ok    the database contains 2 secrets of the key {key.id}"]
    other = Installation(cluster.new_database(migrated=False), tmp_path / "other.keys")
    create_key_file(other.key_file)
    done = other.run("restore", str(dump))
    assert (done.returncode, done.stdout.splitlines()) == (0, restored)
    assert done.stderr == (
        "Warning: The key file (PLANKEEPER_SECRET_KEY_FILE) lacks keys of stored secrets: 2 secrets of the key"
        f" {key.id}.\n"
    )


def _schema(installation: Installation) -> str:
    [line] = installation.succeed("migrate")
    return line.split()[-1].removesuffix(".")


def _restored_text(dump: Path, file: Path) -> str:
    """The backup as SQL."""
    program = binaries.find(None, None).folder / "pg_restore"
    subprocess.run([program, f"--file={file}", dump], check=True, timeout=60)
    return file.read_text()
