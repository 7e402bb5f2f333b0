"""The service of `fastapi_app.py` over the common table, with as many workers as Plankeeper."""

from pathlib import Path

from benchmarks import install
from benchmarks.data import TENANT
from benchmarks.peers import PostgresPeer

_KEY = "benchmark-key"


class FastApi(PostgresPeer):
    """FastAPI and SQLAlchemy."""

    name = "fastapi"
    title = "FastAPI + SQLAlchemy"

    @property
    def version(self) -> str:
        packages = ("fastapi", "sqlalchemy", "asyncpg", "uvicorn")
        return ", ".join(f"{each} {install.package_version(self.work, 'fastapi', each)}" for each in packages)

    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        env = {
            "DATABASE_URL": f"postgresql+asyncpg://postgres@/plankeeper?host={self.postgres.socket_dir}",
            "API_KEY": _KEY,
            "PLAN_MANAGERS": TENANT,
        }
        uvicorn = install.peer_dir(self.work, "fastapi") / "bin" / "uvicorn"
        here = Path(__file__).parent
        flags = ["--app-dir", here.parent, "--workers", str(self.workers), "--port", str(self.port)]
        return [uvicorn, f"{here.name}.fastapi_app:app", *flags, "--no-access-log", "--log-level", "warning"], env

    @property
    def headers(self) -> dict[str, str]:
        return {"Authorization": f"Bearer {_KEY}", "X-Plan-Manager-Id": TENANT}
