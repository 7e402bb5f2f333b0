"""The temporary folder that the processes of a server share: metrics, locks, and whether the server is draining."""

import fcntl
import logging
import os
import shutil
import tempfile
from pathlib import Path
from types import TracebackType
from typing import Self

log = logging.getLogger("plankeeper")

# The library for metrics reads it when it is imported.
VARIABLE = "PROMETHEUS_MULTIPROC_DIR"

_DRAINING = "draining"


def path() -> Path | None:
    """The folder, or None in a process that belongs to no server."""
    return Path(os.environ[VARIABLE]) if VARIABLE in os.environ else None


def is_draining() -> bool:
    """Whether the server is about to stop, so that no proxy should send it more requests."""
    folder = path()
    return folder is not None and (folder / _DRAINING).exists()


class ServerFolder:
    """Creates the folder, and creates it again if it is removed, until the server stops."""

    def __init__(self) -> None:
        self.path = Path(tempfile.mkdtemp(prefix="plankeeper-"))
        os.environ[VARIABLE] = str(self.path)
        self._descriptor = self._lock()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        os.close(self._descriptor)
        shutil.rmtree(self.path, ignore_errors=True)

    def ensure(self) -> None:
        """Create the folder again if it was removed. Each process then writes its metrics again, within a second."""
        if self.path.exists():
            return
        try:
            self.path.mkdir(mode=0o700)
        except OSError as error:
            log.error("the temporary folder cannot be made again", extra={"reason": error.strerror})  # noqa: TRY400
            return
        os.close(self._descriptor)
        self._descriptor = self._lock()
        log.warning("the temporary folder was removed and is made again")

    def begin_draining(self) -> None:
        (self.path / _DRAINING).touch()

    def _lock(self) -> int:
        """Lock the folder while this process runs: systemd-tmpfiles doesn't remove the contents of a locked folder."""
        descriptor = os.open(self.path, os.O_RDONLY | os.O_DIRECTORY)
        fcntl.flock(descriptor, fcntl.LOCK_SH)
        return descriptor
