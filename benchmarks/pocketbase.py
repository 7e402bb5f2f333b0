"""PocketBase: SQLite in the process, with a superuser's token and a filter for the tenant."""

import csv
import json
import sqlite3
import time
from collections.abc import Iterator, Mapping
from contextlib import closing
from pathlib import Path
from typing import Any, ClassVar
from urllib.parse import quote

from benchmarks import install
from benchmarks.data import COLUMNS, STATE, STATUS, TENANT
from benchmarks.load import Request
from benchmarks.peers import HttpPeer
from benchmarks.processes import run_program
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
    send,
)

_LOGIN = {"identity": "bench@example.com", "password": "benchmark-password"}
_RECORDS = "/api/collections/participants/records"
_ID = {
    "name": "id",
    "type": "text",
    "system": True,
    "primaryKey": True,
    "required": True,
    "min": 36,
    "max": 36,
    "pattern": "^[a-f0-9-]+$",
    "autogeneratePattern": "[a-f0-9]{8}-[a-f0-9]{4}-4[a-f0-9]{3}-[89ab][a-f0-9]{3}-[a-f0-9]{12}",
}
# PocketBase has no type for a date without a time. Text is cheaper than its datetime.
_FIELD_TYPES = {"boolean": "bool", "timestamptz": "autodate"}
_INDEXES = {
    name: f"CREATE INDEX {name} ON participants ({columns})"
    for name, columns in {
        "idx_participants": "plan_manager_id, id",
        "idx_participants_by_number": "plan_manager_id, participant_number",
        "idx_participants_by_status_and_state": "plan_manager_id, status, state, id",
    }.items()
}


class PocketBase(HttpPeer):
    """PocketBase with the indexes of the filters. The request log is off."""

    name = "pocketbase"
    title = "PocketBase"
    data_sources = ("pocketbase.py",)
    indexes: ClassVar[Mapping[str, str]] = _INDEXES
    token = ""

    @property
    def version(self) -> str:
        return run_program([self._program, "--version"]).split()[-1]

    @property
    def _program(self) -> Path:
        return install.peer_dir(self.work, "pocketbase") / "bin" / "pocketbase"

    @property
    def _data_dir(self) -> Path:
        return self.folder / "data"

    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        directories = ["--dir", self._data_dir, "--hooksDir", self.folder / "hooks"]
        directories += ["--publicDir", self.folder / "public"]
        return [self._program, "serve", "--http", f"127.0.0.1:{self.port}", "--automigrate=false", *directories], {}

    def start(self) -> None:
        super().start()
        login = Request("POST", "/api/collections/_superusers/auth-with-password", body=json.dumps(_LOGIN))
        self.token = send(self.port, login).body["token"]

    def load(self, deadline: float) -> None:
        run_program([self._program, "superuser", "upsert", *_LOGIN.values(), "--dir", self._data_dir], seconds=60)
        with self.running():
            self._send("POST", "/api/collections", _collection(self.indexes))
            self._send("PATCH", "/api/settings", {"logs": {"maxDays": 0}})
        # The fastest load: write to its file while it is stopped, and create the indexes last.
        with closing(sqlite3.connect(self._data_dir / "data.db")) as database:
            for name in self.indexes:
                database.execute(f"drop index {name}")
            columns = [*COLUMNS, "plan_manager_id"]
            values = ", ".join(f":{name}" for name in columns)
            statement = f"insert into participants ({', '.join(columns)}) values ({values})"
            database.executemany(statement, _read_rows(self.data.participants, deadline))
            for statement in self.indexes.values():
                database.execute(statement)
            database.execute("analyze")
            database.commit()

    def request(self, scenario: Scenario) -> Request:
        headers = {"Authorization": f"Bearer {self.token}"}
        if scenario is CREATE:
            body = json.dumps(json.loads(CREATE_BODY) | {"plan_manager_id": TENANT, "status": STATUS})
            return Request("POST", _RECORDS, headers, body)
        if scenario is UPDATE:
            return Request("PATCH", f"{_RECORDS}/{{id}}", headers, UPDATE_BODY)
        if scenario is GET:
            return Request("GET", f"{_RECORDS}/{{id}}", headers)
        conditions, options = {
            TOTAL: ("", ""),
            FILTERED: (f" && status='{STATUS}' && state='{STATE}'", ""),
            OFFSET: ("", f"&skipTotal=1&page={self.data.offset // scenario.limit + 1}"),
        }.get(scenario, (" && id>'{id}'", "&skipTotal=1"))
        filters = quote(f"plan_manager_id='{TENANT}'{conditions}", safe="{}")
        return Request("GET", f"{_RECORDS}?filter={filters}&sort=id&perPage={scenario.limit}{options}", headers)

    def parse_response(self, response: Response) -> ParsedResponse:
        if "items" in response.body:
            return ParsedResponse(response.body["items"], response.body["totalItems"])
        return ParsedResponse([response.body])

    def _send(self, method: str, path: str, body: dict[str, Any]) -> None:
        send(self.port, Request(method, path, {"Authorization": f"Bearer {self.token}"}, json.dumps(body)))


class DefaultPocketBase(PocketBase):
    """PocketBase as it creates a collection: without an index other than the primary key. Only for create."""

    name = "pocketbase-default"
    title = "PocketBase, defaults"
    indexes: ClassVar[Mapping[str, str]] = {}

    def supports(self, scenario: Scenario) -> bool:
        return scenario is CREATE


def _collection(indexes: Mapping[str, str]) -> dict[str, Any]:
    fields: list[dict[str, Any]] = [_ID, {"name": "plan_manager_id", "type": "text"}]
    for name, sql_type in COLUMNS.items():
        if name != "id":
            options = {"onCreate": True} if sql_type == "timestamptz" else {}
            fields.append({"name": name, "type": _FIELD_TYPES.get(sql_type, "text"), **options})
    return {"name": "participants", "type": "base", "fields": fields, "indexes": list(indexes.values())}


def _read_rows(file: Path, deadline: float) -> Iterator[dict[str, Any]]:
    with file.open(newline="") as lines:
        for row in csv.DictReader(lines):
            if time.monotonic() > deadline:
                raise TimeoutError
            yield {name: _value(kind, row[name]) for name, kind in COLUMNS.items()} | {"plan_manager_id": TENANT}


def _value(sql_type: str, text: str) -> str | int:
    if sql_type == "boolean":
        return int(text == "true")
    return text.replace("T", " ").replace("Z", ".000Z") if sql_type == "timestamptz" else text
