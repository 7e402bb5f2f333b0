"""The reports of a server: a log line when it has started, and errors as log lines unless people read them."""

import os
import platform
import sys
from collections.abc import Generator
from contextlib import contextmanager
from dataclasses import fields
from urllib.parse import parse_qs, urlsplit

import click

from plankeeper import __version__
from plankeeper.cli.context import DatabaseError
from plankeeper.cli.progress import LineWriter, echo_line
from plankeeper.core import logs
from plankeeper.core.setting_parsers import is_loopback
from plankeeper.core.settings import Settings
from plankeeper.core.version import commit
from plankeeper.database import schema

log = logs.log


def is_for_people(*, demo: bool = False) -> bool:
    """Whether sentences are printed, and not only JSON lines: in a terminal, and always with the sample data."""
    return demo or sys.stdout.isatty()


@contextmanager
def errors_as_log_lines(*, enabled: bool) -> Generator[None]:
    """Log an error that ends the program as a JSON line instead of a sentence."""
    if not enabled:
        yield
        return
    logs.configure()
    try:
        yield
    except click.ClickException as error:
        # Their sentences are written for operators. Those about the database also quote PostgreSQL or the driver.
        extra, cause = {"reason": error.format_message()}, None
        if isinstance(error, DatabaseError):
            extra, cause = {"reason": error.reason, "database_host": describe_database(Settings.read())}, error.cause
        log.error("the program cannot start", extra=extra, exc_info=cause)  # noqa: TRY400 - the cause
        sys.exit(error.exit_code)
    except Exception:
        log.exception("the program failed")
        sys.exit(1)


def warn(text: str, *, for_people: bool) -> None:
    """Report something that doesn't stop the program: a sentence without its full stop, or a log line."""
    if for_people:
        click.echo(f"Warning: {text}", err=True)
    else:
        log.warning("the configuration needs attention", extra={"reason": text})


def address_warnings(settings: Settings) -> list[str]:
    """A sentence without its full stop if others can reach the server, and a request's `Host` determines links."""
    if settings.public_url or is_loopback(settings.host):
        return []
    sentence = (
        f"the server listens on {settings.host} without PLANKEEPER_PUBLIC_URL: links of the console, such as those of"
        " invitations, and its cookies depend on the Host of each request"
    )
    return [sentence]


def progress_writer(*, for_people: bool) -> LineWriter:
    """The writer of progress lines of a migration: to standard error, or into the log."""
    return echo_line if for_people else lambda text: log.info("migrating the schema", extra={"step": text})


def changed_settings() -> dict[str, str]:
    """The variables whose text differs from the default. The values of secret ones are replaced."""
    settings = {each.metadata["name"]: each.metadata for each in fields(Settings)}
    return {
        name: "(secret)" if each["is_secret"] else os.environ[name]
        for name, each in settings.items()
        if os.environ.get(name, "") not in ("", each["default"])
    }


def log_start(event: str, settings: Settings, changed: dict[str, str], **extra: object) -> None:
    """Log one line about a started program, with its version, settings and database.

    `settings` are those that the operator chose, and `changed` those that differ from the defaults.
    """
    about = {
        "version": __version__,
        "commit": commit(),
        "python": platform.python_version(),
        "database_host": describe_database(settings),
        "schema": schema.LATEST_REVISION,
        "settings": changed,
    }
    log.info(event, extra=extra | about)


def describe_database(settings: Settings) -> str:
    """The hosts of the database, without its user and password; for the embedded PostgreSQL its data directory."""
    if not settings.database_url:
        return f"embedded in {settings.data_dir}"
    try:
        url = urlsplit(settings.database_url)
    except ValueError:
        return "unknown"
    if "@" in f"{url.path}{url.query}{url.fragment}":  # the password may contain a / that isn't encoded
        return "unknown"
    hosts = url.netloc.rpartition("@")[2] or ",".join(parse_qs(url.query).get("host", []))
    return hosts or os.environ.get("PGHOST", "localhost")
