"""pg_dump and pg_restore: which there are, which of them can talk to a server, and how they are run."""

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

from plankeeper.embedded_postgres import binaries
from plankeeper.embedded_postgres.binaries import ClusterError
from plankeeper.settings import Settings

_SAID = re.compile(r"^pg_\w+: error: (.+)$", re.MULTILINE)

# From this version on pg_restore sets a parameter that older servers refuse, and older programs can't read its files.
_BREAK = 17


@dataclass(frozen=True)
class Programs:
    """A folder with pg_dump and pg_restore, and the environment that they run in."""

    folder: Path
    environment: dict[str, str]

    def run(
        self, program: str, *options: str, database: str | None = None,
        reads: BinaryIO | None = None, writes: BinaryIO | None = None, told: Callable[[], None] = lambda: None,
    ) -> None:  # fmt: skip
        """Run a program to its end; raises ClickException with what it said of a failure."""
        address, password = _without_password(database) if database else ("", {})
        command = [str(self.folder / program), *options]
        command += ["--no-password", f"--dbname={address}"] if database else []
        with tempfile.TemporaryFile() as said:
            try:
                process = subprocess.Popen(  # noqa: S603 - the programs that choose() has chosen
                    command, stdin=reads or subprocess.DEVNULL, stdout=writes or subprocess.DEVNULL, stderr=said,
                    env=self.environment | password,
                )  # fmt: skip
            except OSError as error:
                raise click.ClickException(f"{command[0]} cannot be run: {error.strerror}.") from None
            try:
                while process.poll() is None:
                    told()
                    with contextlib.suppress(subprocess.TimeoutExpired):
                        process.wait(0.2)
            except BaseException:
                process.terminate()
                process.wait()
                raise
            if process.returncode:
                said.seek(0)
                raise click.ClickException(_complaint(program, process.returncode, said.read()))


def _complaint(program: str, code: int, said: bytes) -> str:
    text = said.decode(errors="replace")
    error = _SAID.search(text)
    last = text.strip().splitlines()[-1:] or [f"it ended with {code}"]
    return f"{program} failed: {(error[1] if error else last[0]).rstrip('.')}. Nothing was written."


def choose(found: Settings, server: int) -> Programs:
    """The programs that can talk to a server of this major version; raises ClickException where there are none."""
    if found.postgres_bin:
        folders = [found.postgres_bin.absolute()]
    else:
        folders = [*([] if found.database_url is None else _on_path()), *_packaged()]
    versions = {each: _major(each) for each in folders}
    fitting = [(major, each) for each, major in versions.items() if major and _fits(major, server)]
    if not fitting:
        wanted = f"{server} or newer" if server >= _BREAK else f"{server} or newer, but older than {_BREAK},"
        raise click.ClickException(
            f"The server is PostgreSQL {server}, and there is no pg_dump of version {wanted}"
            f" in {' or '.join(map(str, folders)) or 'PATH'}. Set PLANKEEPER_POSTGRES_BIN to a folder that has one."
        )
    _, chosen = min(fitting, key=lambda each: each[0])
    return Programs(chosen, _environment(embedded=found.database_url is None))


def _fits(major: int, server: int) -> bool:
    return major >= server and (major < _BREAK) == (server < _BREAK)


def _on_path() -> list[Path]:
    found = shutil.which("pg_dump")
    return [Path(found).absolute().parent] if found else []


def _packaged() -> list[Path]:
    try:
        return [binaries.find(None, None).folder]
    except ClusterError:
        return []


def _major(folder: Path) -> int | None:
    try:
        answer = subprocess.run(  # noqa: S603
            [str(folder / "pg_dump"), "--version"], check=False, capture_output=True, text=True
        )
    except OSError:
        return None
    found = re.search(r"\) (\d+)", answer.stdout)
    return int(found[1]) if found and (folder / "pg_restore").is_file() else None


def _environment(*, embedded: bool) -> dict[str, str]:
    # asyncpg heeds the PG… variables where a database's address leaves something open, so the programs shall too.
    kept = {name: value for name, value in os.environ.items() if not (embedded and name.startswith("PG"))}
    return kept | {"LC_ALL": "C", "PGCONNECT_TIMEOUT": "5"}


def _without_password(dsn: str) -> tuple[str, dict[str, str]]:
    """An address for a command line, which every user of the machine can read, and the password apart from it."""
    parts = urlsplit(dsn)
    login, at, hosts = parts.netloc.rpartition("@")
    user, _, password = login.partition(":")
    query = dict(parse_qsl(parts.query, keep_blank_values=True))
    if "sslpassword" in query:
        raise click.ClickException(
            "PLANKEEPER_DATABASE_URL has an sslpassword, which pg_dump takes on its command line alone:"
            " use a key without one for backups."
        )
    password = query.pop("password", unquote(password))
    shown = f"{parts.scheme}://{user}{at}{hosts}{parts.path}?{urlencode(query, quote_via=quote)}"
    return shown, {"PGPASSWORD": password} if password else {}
