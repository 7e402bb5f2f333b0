"""pg_dump and pg_restore: finds installations, selects one that is compatible with the server, and runs it."""

import contextlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

import click

from plankeeper.core.settings import Settings
from plankeeper.server.embedded_postgres import binaries
from plankeeper.server.embedded_postgres.binaries import ClusterError

_ERROR_LINE = re.compile(r"^pg_\w+: error: (.+)$", re.MULTILINE)

# From this version, pg_restore sets a parameter that older servers reject, and older programs can't read its files.
_INCOMPATIBLE_SINCE = 17


@dataclass(frozen=True)
class PgTools:
    """A folder with pg_dump and pg_restore, and the environment variables to run them with."""

    folder: Path
    environment: dict[str, str]

    def run(
        self,
        program: str,
        *options: str,
        database: str | None = None,
        stdin: BinaryIO | None = None,
        stdout: BinaryIO | None = None,
        on_progress: Callable[[], None] = lambda: None,
    ) -> None:
        """Run a program and wait for it. Raises ClickException with its error message if it fails."""
        address, password = _split_password(database) if database else ("", {})
        command = [str(self.folder / program), *options]
        command += ["--no-password", f"--dbname={address}"] if database else []
        with tempfile.TemporaryFile() as stderr:
            try:
                process = subprocess.Popen(  # noqa: S603 - the programs that find_tools() returned
                    command,
                    stdin=stdin or subprocess.DEVNULL,
                    stdout=stdout or subprocess.DEVNULL,
                    stderr=stderr,
                    env=self.environment | password,
                )
            except OSError as error:
                raise click.ClickException(f"Cannot run {command[0]}: {error.strerror}.") from None
            try:
                while process.poll() is None:
                    on_progress()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
            except BaseException:
                process.terminate()
                process.wait()
                raise
            if process.returncode:
                stderr.seek(0)
                raise click.ClickException(_error_message(program, process.returncode, stderr.read()))


def _error_message(program: str, code: int, stderr: bytes) -> str:
    text = stderr.decode(errors="replace")
    error = _ERROR_LINE.search(text)
    message = error[1] if error else (text.strip().splitlines() or [f"exit status {code}"])[-1]
    return f"{program} failed: {message.rstrip('.')}. Nothing was written."


def find_tools(settings: Settings, server_version: int) -> PgTools:
    """The programs to use with a server of this major version. Raises ClickException if there are none."""
    if settings.postgres_bin:
        folders = [settings.postgres_bin.absolute()]
    else:
        folders = [*([] if settings.database_url is None else _folders_on_path()), *_bundled_folders()]
    versions = {each: _major_version(each) for each in folders}
    compatible = [(major, each) for each, major in versions.items() if major and _is_compatible(major, server_version)]
    if not compatible:
        required = (
            f"{server_version} or newer"
            if server_version >= _INCOMPATIBLE_SINCE
            else f"{server_version} to {_INCOMPATIBLE_SINCE - 1}"
        )
        raise click.ClickException(
            f"The server is PostgreSQL {server_version}, but there is no pg_dump of version {required}"
            f" in {' or '.join(map(str, folders)) or 'PATH'}. Set PLANKEEPER_POSTGRES_BIN to a folder that has one."
        )
    _, folder = min(compatible, key=lambda each: each[0])
    return PgTools(folder, _environment(embedded=settings.database_url is None))


def _is_compatible(major: int, server_version: int) -> bool:
    return major >= server_version and (major < _INCOMPATIBLE_SINCE) == (server_version < _INCOMPATIBLE_SINCE)


def _folders_on_path() -> list[Path]:
    executable = shutil.which("pg_dump")
    return [Path(executable).absolute().parent] if executable else []


def _bundled_folders() -> list[Path]:
    try:
        return [binaries.find(None, None).folder]
    except ClusterError:
        return []


def _major_version(folder: Path) -> int | None:
    try:
        result = subprocess.run(  # noqa: S603
            [str(folder / "pg_dump"), "--version"], check=False, capture_output=True, text=True
        )
    except OSError:
        return None
    match = re.search(r"\) (\d+)", result.stdout)
    return int(match[1]) if match and (folder / "pg_restore").is_file() else None


def _environment(*, embedded: bool) -> dict[str, str]:
    # asyncpg takes what the address leaves out from the PG… variables, so the programs must see the same ones.
    inherited = {name: value for name, value in os.environ.items() if not (embedded and name.startswith("PG"))}
    return inherited | {"LC_ALL": "C", "PGCONNECT_TIMEOUT": "5"}


def _split_password(dsn: str) -> tuple[str, dict[str, str]]:
    """Split the password from an address: every user of the machine can read the command line of a process."""
    parts = urlsplit(dsn)
    login, at, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "sslpassword" in query:
        raise click.ClickException(
            "PLANKEEPER_DATABASE_URL has an sslpassword, which pg_dump accepts only on its command line, where other"
            " users can read it. Use a client key without a password for backups."
        )
    password = query.pop("password", unquote(password))
    public_dsn = f"{parts.scheme}://{user}{at}{hosts}{parts.path}?{urlencode(query, quote_via=quote)}"
    return public_dsn, {"PGPASSWORD": password} if password else {}
