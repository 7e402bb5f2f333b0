"""PostgREST: the common table, row-level security by a request header, JWT."""

from pathlib import Path
from typing import ClassVar

from joserfc import jwt
from joserfc.jwk import OctKey

from benchmarks import install
from benchmarks.data import COLUMNS, STATE, STATUS, TENANT
from benchmarks.load import Request
from benchmarks.peers import PostgresPeer
from benchmarks.processes import free_port, run_program
from benchmarks.scenarios import (
    CREATE,
    CREATE_BODY,
    CURSOR,
    FILTERED,
    GET,
    OFFSET,
    THOUSAND,
    TOTAL,
    UPDATE,
    UPDATE_BODY,
    ParsedResponse,
    Response,
    Scenario,
)

_SECRET = "benchmark-secret-of-at-least-32-characters"
_SINGLE_OBJECT = "application/vnd.pgrst.object+json"

# `select` around the setting makes PostgreSQL read it once per statement instead of once per row.
_ROLES_AND_POLICIES = """
create role member nologin;
grant usage on schema public to member;
grant select, insert, update, delete on participants to member;
create function tenant() returns uuid stable language sql
    return (current_setting('request.headers', true)::json ->> 'x-plan-manager-id')::uuid;
alter table participants alter plan_manager_id set default tenant();
alter table participants enable row level security;
create policy tenants on participants to member
    using (plan_manager_id = (select tenant())) with check (plan_manager_id = (select tenant()));
"""


class PostgRest(PostgresPeer):
    """PostgREST with a pool as large as those of Plankeeper's two workers together."""

    name = "postgrest"
    title = "PostgREST"
    data_sources = ("postgrest.py",)
    after_load = _ROLES_AND_POLICIES
    all_members: ClassVar[str] = "select=*"
    admin_port = 0

    @property
    def version(self) -> str:
        return run_program([install.postgrest_program(self.work), "--version"]).split()[1]

    @property
    def readiness_url(self) -> str:
        return f"http://127.0.0.1:{self.admin_port}/ready"

    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        self.admin_port = free_port()
        env = {
            "PGRST_DB_URI": self.postgres.dsn,
            "PGRST_DB_POOL": "20",
            "PGRST_DB_SCHEMAS": "public",
            "PGRST_JWT_SECRET": _SECRET,
            "PGRST_JWT_CACHE_MAX_LIFETIME": "3600",
            "PGRST_SERVER_HOST": "127.0.0.1",
            "PGRST_SERVER_PORT": str(self.port),
            "PGRST_ADMIN_SERVER_PORT": str(self.admin_port),
        }
        return [install.postgrest_program(self.work)], env

    def request(self, scenario: Scenario) -> Request:
        headers = {"Authorization": f"Bearer {_jwt()}", "X-Plan-Manager-Id": TENANT}
        single = headers | {"Accept": _SINGLE_OBJECT}
        with_row = single | {"Prefer": "return=representation"}
        with_count = headers | {"Prefer": "count=exact"}
        if scenario is CREATE:
            return Request("POST", f"/participants?{self.all_members}", with_row, CREATE_BODY)
        if scenario is UPDATE:
            return Request("PATCH", f"/participants?id=eq.{{id}}&{self.all_members}", with_row, UPDATE_BODY)
        if scenario is GET:
            return Request("GET", f"/participants?id=eq.{{id}}&{self.all_members}", single)
        filters = {
            TOTAL: "",
            FILTERED: f"status=eq.{STATUS}&state=eq.{STATE}&",
            OFFSET: f"offset={self.data.offset}&",
        }.get(scenario, "id=gt.{id}&")
        path = f"/participants?{filters}{self.all_members}&order=id&limit={scenario.limit}"
        return Request("GET", path, with_count if scenario in (TOTAL, FILTERED) else headers)

    def parse_response(self, response: Response) -> ParsedResponse:
        if isinstance(response.body, dict):
            return ParsedResponse([response.body])
        total = response.headers["Content-Range"].rpartition("/")[2]
        return ParsedResponse(response.body, int(total) if total.isdecimal() else None)


class SelectingPostgRest(PostgRest):
    """The same, with each member of the full record in `select`: without the plan manager."""

    name = "postgrest-select"
    title = "PostgREST, select="
    all_members: ClassVar[str] = f"select={','.join(COLUMNS)}"

    @property
    def store(self) -> str:
        return PostgRest.name

    def supports(self, scenario: Scenario) -> bool:
        return scenario in (GET, CURSOR, TOTAL, THOUSAND)


def _jwt() -> str:
    """A JSON Web Token with a distant expiry."""
    return jwt.encode({"alg": "HS256"}, {"role": "member", "exp": 4_000_000_000}, OctKey.import_key(_SECRET))
