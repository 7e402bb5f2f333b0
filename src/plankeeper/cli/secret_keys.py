"""`plankeeper secret-key`: the keys that encrypt stored secrets."""

from collections.abc import Generator, Sequence
from contextlib import contextmanager
from pathlib import Path

import click

from plankeeper.cli.context import load_settings, with_database
from plankeeper.core.encryption import rotation
from plankeeper.core.encryption.cipher import (
    SETTING,
    KeyFileError,
    SecretKey,
    create_key_file,
    read_keys,
    replace_keys,
    secret_cipher,
)
from plankeeper.core.encryption.rotation import KeyUsage, count_undecryptable, encrypt_with_first_key
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database

NO_KEY_FILE = (
    f"{SETTING} is not set, so secrets of webhooks, two-factor authentication and single sign-on can't be encrypted"
    " or decrypted."
    " `plankeeper secret-key create FILE` creates a key file."
)


@click.group(name="secret-key")
def secret_key() -> None:
    """Create, list and rotate the keys that encrypt stored secrets."""


@secret_key.command()
@click.argument("file", type=click.Path(path_type=Path, dir_okay=False))
def create(file: Path) -> None:
    """Create FILE with a new key. Only its owner can read it, and an existing file is never overwritten."""
    with _key_file_errors():
        key = create_key_file(file)
    click.echo(f"{file}: created with the key {key.id}.")
    click.echo(f"Set {SETTING} to this file on all servers. Keep a copy of it, apart from the backups.")


@secret_key.command(name="list")
def list_() -> None:
    """Print one line per key: its id, whether it encrypts, only decrypts or is missing, and its number of secrets."""
    settings = load_settings()
    keys = [] if settings.secret_key_path is None else _read_keys(settings.secret_key_path)
    usage = {each.key_id: each.secrets for each in with_database(lambda db, _: rotation.count_by_key(db))}
    states = {key.id: "decrypts" if number else "encrypts" for number, key in enumerate(keys)}
    for key_id in [*states, *(each for each in usage if each not in states)]:
        click.echo(f"{key_id}  {states.get(key_id, 'missing'):8}  {count_secrets(usage.get(key_id, 0))}")


@secret_key.command()
@click.option("--add-key", is_flag=True, help="Step 1: add a new key to the file, as the last one.")
@click.option("--promote", "promoted_id", metavar="KEY_ID", help="Step 2: make a key of the file the first one.")
@click.option("--drop-old-keys", is_flag=True, help="Step 4: remove all keys but the first from the file.")
def rotate(add_key: bool, promoted_id: str | None, drop_old_keys: bool) -> None:
    """Encrypt all stored secrets with the first key of the key file.

    To replace the key without an interruption, on one server or several:

    1. `rotate --add-key` adds a new key, which only decrypts. Copy the file to all servers.

    2. `rotate --promote KEY_ID` makes it the key that encrypts. Copy the file to all servers.

    3. `rotate` encrypts the secrets again that servers have stored with the old key since.

    4. `rotate --drop-old-keys` removes the old key. Copy the file to all servers.

    Running servers use a changed file at once. Each step can be repeated, except the first.
    """
    if add_key + bool(promoted_id) + drop_old_keys > 1:
        raise click.UsageError("Use one of --add-key, --promote and --drop-old-keys at a time.")
    path = _require_path(load_settings())
    if add_key:
        _add_key(path)
    elif drop_old_keys:
        _drop_old_keys(path)
    else:
        if promoted_id:
            _promote(path, promoted_id)
        _encrypt_all(path)


def _add_key(path: Path) -> None:
    key = SecretKey.generate()
    _replace_keys(path, [*_read_keys(path), key])
    click.echo(f"{path}: added the key {key.id}, which only decrypts. Copy the file to all servers, then run")
    click.echo(f"plankeeper secret-key rotate --promote {key.id}")


def _promote(path: Path, key_id: str) -> None:
    keys = _read_keys(path)
    if key_id not in {key.id for key in keys}:
        raise click.ClickException(f"{path} contains no key {key_id}. See `plankeeper secret-key list`.")
    if keys[0].id != key_id:
        _replace_keys(path, sorted(keys, key=lambda key: key.id != key_id))  # stable: the others keep their order
    click.echo(f"{path}: the key {key_id} is the first. Copy the file to all servers.")


def _encrypt_all(path: Path) -> None:
    first, *_ = _read_keys(path)

    async def work(db: Database, settings: Settings) -> tuple[int, list[KeyUsage]]:
        cipher = secret_cipher(settings)
        return await encrypt_with_first_key(db, cipher), await count_undecryptable(db, cipher)

    encrypted, undecryptable = with_database(work)
    click.echo(f"{count_secrets(encrypted)} encrypted with the key {first.id}.")
    if undecryptable:
        raise click.ClickException(f"Not all secrets could be decrypted: {describe_usage(undecryptable)}.")


def _drop_old_keys(path: Path) -> None:
    first, *old_keys = _read_keys(path)
    old_ids = {key.id for key in old_keys}
    in_use = [each for each in with_database(lambda db, _: rotation.count_by_key(db)) if each.key_id in old_ids]
    if in_use:
        raise click.ClickException(
            f"Old keys are in use: {describe_usage(in_use)}. Run `plankeeper secret-key rotate` once all servers have"
            " the file."
        )
    _replace_keys(path, [first])
    click.echo(f"{path}: dropped {', '.join(sorted(old_ids)) or 'no key'}. Copy the file to all servers.")
    if old_ids:
        click.echo("Keep the previous file as long as you keep backups from before the rotation.")


def _require_path(settings: Settings) -> Path:
    if settings.secret_key_path is None:
        raise click.ClickException(f"{SETTING} is not set. `plankeeper secret-key create FILE` creates a key file.")
    return settings.secret_key_path


def _read_keys(path: Path) -> list[SecretKey]:
    with _key_file_errors():
        try:
            return read_keys(path)
        except FileNotFoundError:
            raise click.ClickException(missing_file_sentence(path)) from None


def _replace_keys(path: Path, keys: Sequence[SecretKey]) -> None:
    with _key_file_errors():
        replace_keys(path, keys)


@contextmanager
def _key_file_errors() -> Generator[None]:
    try:
        yield
    except KeyFileError as error:
        raise click.ClickException(str(error)) from None


def key_file_warnings(settings: Settings) -> list[str]:
    """A sentence if there is no key file. Raises ClickException if there is an invalid one."""
    path = settings.secret_key_path
    if path is None:
        return [NO_KEY_FILE]
    with _key_file_errors():
        try:
            read_keys(path)
        except FileNotFoundError:
            return [missing_file_sentence(path)]
    return []


def missing_file_sentence(path: Path) -> str:
    return (
        f"There is no key file {path}. Copy it from another server or from your own copy. If there has never been one,"
        f" run `plankeeper secret-key create {path}`."
    )


async def prepare_embedded_keys(db: Database, settings: Settings) -> list[str]:
    """Create the key file beside an embedded database. Returns warnings.

    The file is not created if stored secrets need other keys: it must then be copied from where they were stored.
    """
    path = settings.secret_key_path
    is_default = settings.secret_key_file is None
    usage = await rotation.count_by_key(db)
    if path and is_default and not usage and not path.exists():
        with _key_file_errors():
            create_key_file(path)
    return [*key_file_warnings(settings), *missing_key_warnings(settings, usage)]


def missing_key_warnings(settings: Settings, usage: Sequence[KeyUsage]) -> list[str]:
    """A sentence if stored secrets need keys that the key file does not contain."""
    known_ids = secret_cipher(settings).key_ids()
    missing = [each for each in usage if each.key_id not in known_ids]
    if not missing:
        return []
    return [f"The key file ({SETTING}) lacks keys of stored secrets: {describe_usage(missing)}."]


def describe_usage(usage: Sequence[KeyUsage]) -> str:
    """The keys with their numbers of secrets: `12 secrets of the key 1f2e3d4c, 1 secret of the key 5a6b7c8d`."""
    return ", ".join(f"{count_secrets(each.secrets)} of the key {each.key_id}" for each in usage) or "no secrets"


def count_secrets(count: int) -> str:
    return "1 secret" if count == 1 else f"{count:,} secrets"
