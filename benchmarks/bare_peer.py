"""The lower bound of a Python server: `bare_asgi.py` over the same tables, with as many workers as Plankeeper."""

import sys
from importlib.metadata import version
from pathlib import Path

from benchmarks.peers import PostgresPeer
from benchmarks.plankeeper import MIGRATIONS, fill_by_copy


class BareHandler(PostgresPeer):
    """A bare ASGI handler over asyncpg."""

    name = "bare"
    title = "bare handler"
    is_floor = True
    data_sources = ("plankeeper.py", MIGRATIONS)

    @property
    def version(self) -> str:
        return ", ".join(f"{each} {version(each)}" for each in ("uvicorn", "asyncpg", "msgspec"))

    @property
    def store(self) -> str:
        return "floor"

    def fill(self, deadline: float) -> None:
        fill_by_copy(self.postgres, self.data, deadline)

    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        here = Path(__file__).parent
        server = [sys.executable, "-m", "uvicorn", f"{here.name}.bare_asgi:app", "--app-dir", here.parent]
        flags = ["--loop", "uvloop", "--http", "httptools", "--no-access-log", "--log-level", "warning"]
        return [*server, *flags, "--workers", str(self.workers), "--port", str(self.port)], {
            "DATABASE_URL": self.postgres.dsn
        }
