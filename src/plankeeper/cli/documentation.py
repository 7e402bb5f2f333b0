"""`plankeeper serve --build-docs`: builds the documentation site of a checkout while the server runs."""

import os
import signal
import subprocess
import sys
from contextlib import suppress
from pathlib import Path
from threading import Thread

import click

from plankeeper.core.logs import log

CHECKOUT = Path(__file__).parents[3]


class DocumentationBuild:
    """Runs `make docs` at the lowest priority, from `start` to the end of the context at the latest.

    If the build fails, one log line says why.
    """

    def __init__(self, checkout: Path = CHECKOUT) -> None:
        if not (checkout / "mkdocs.yml").exists():
            raise click.ClickException(
                "--build-docs works only in a checkout of the project. An installed Plankeeper contains the site."
            )
        self._checkout = checkout
        self._process: subprocess.Popen[str] | None = None
        self._is_ended = False

    def start(self) -> None:
        """Return immediately. The build is in a session of its own, so that Ctrl-C reaches only the server."""
        # Plankeeper itself may run under make, whose variables would change this one.
        environment = {name: value for name, value in os.environ.items() if "MAKE" not in name and name != "MFLAGS"}
        try:
            self._process = subprocess.Popen(  # noqa: S603 - our own Makefile
                ["nice", "-n", "19", "make", "--silent", f"PYTHON={sys.executable}", "docs"],  # noqa: S607 - as in PATH
                cwd=self._checkout,
                env=environment,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                text=True,
                start_new_session=True,
            )
        except OSError as error:
            _log_failure(str(error))
        else:
            Thread(target=self._wait, args=[self._process], daemon=True).start()

    def __enter__(self) -> None:
        pass

    def __exit__(self, *_: object) -> None:
        """End a build that is still running. The next start repeats it."""
        self._is_ended = True  # before make can notice that its command was ended, and fail
        if self._process and self._process.poll() is None:
            with suppress(ProcessLookupError):  # it has just ended by itself
                os.killpg(self._process.pid, signal.SIGTERM)

    def _wait(self, process: subprocess.Popen[str]) -> None:
        _, output = process.communicate()
        if process.returncode > 0 and not self._is_ended:
            lines = [line.strip() for line in reversed(output.splitlines()) if line.strip()]
            lines.sort(key=lambda line: line.startswith("make"))  # a command's output explains more than make's
            _log_failure(lines[0] if lines else f"make exited with {process.returncode}")


def _log_failure(reason: str) -> None:
    log.error("the documentation site could not be built, so /docs shows the API reference", extra={"reason": reason})
