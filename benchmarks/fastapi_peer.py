"""The service of `fastapi_app.py` over the common table, with as many workers as Plankeeper."""

from pathlib import Path

from benchmarks import install
from benchmarks.data import STATE, STATUS, TENANT
from benchmarks.load import Request
from benchmarks.peers import PostgresPeer
from benchmarks.scenarios import (
    CREATE,
    CREATE_BODY,
    FILTERED,
    GET,
    OFFSET,
    TOTAL,
    UPDATE,
    UPDATE_BODY,
    ParsedResponse,
    Response,
    Scenario,
)

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

    def request(self, scenario: Scenario) -> Request:
        headers = {"Authorization": f"Bearer {_KEY}", "X-Plan-Manager-Id": TENANT}
        if scenario is CREATE:
            return Request("POST", "/participants", headers, CREATE_BODY)
        if scenario is UPDATE:
            return Request("PUT", "/participants/{id}", headers, UPDATE_BODY)
        paths = {
            GET: "/{id}",
            TOTAL: f"?limit={scenario.limit}",
            FILTERED: f"?status={STATUS}&state={STATE}&limit={scenario.limit}",
            OFFSET: f"?limit={scenario.limit}&offset={self.data.offset}",
        }
        path = paths.get(scenario, f"?limit={scenario.limit}&after={{id}}")
        return Request("GET", f"/participants{path}", headers)

    def parse_response(self, response: Response) -> ParsedResponse:
        if "data" in response.body:
            return ParsedResponse(response.body["data"], response.body["total"])
        return ParsedResponse([response.body])
