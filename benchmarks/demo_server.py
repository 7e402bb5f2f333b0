"""A server with the sample data, and many copies of its records for one plan manager."""

import re
import sys
import time
from collections.abc import Generator, Iterable, Iterator, Mapping
from contextlib import contextmanager
from datetime import date, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

import httpx

from benchmarks.processes import Program, ProgramError, free_port, run_program
from plankeeper.cli.sample_data import plan_managers, records
from plankeeper.core.json import to_json

PROGRAM: list[str | Path] = [sys.executable, "-m", "plankeeper"]
_UUID = re.compile(r"[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}")
# References that have the same value in every copy.
_SHARED = {"account_manager_id", "exit_reason_category_id", "exit_reason_subcategory_id"}


class DemoServer:
    """`plankeeper serve --demo` with its embedded cluster in `folder`."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.plan_manager, self.other_plan_manager = (each.id for each in plan_managers()[:2])
        self.url = ""
        self.pid = 0

    @property
    def cluster_folder(self) -> Path:
        return self.folder / "cluster"

    @property
    def _settings(self) -> dict[str, str]:
        return {
            "PLANKEEPER_DATA_DIR": str(self.cluster_folder),
            "PLANKEEPER_ACCESS_LOG": "off",
            "PLANKEEPER_RATE_LIMIT": "1000000000/minute",
        }

    @property
    def _log(self) -> Path:
        return self.folder / "serve.log"

    @contextmanager
    def running(self, workers: int) -> Generator[None]:
        """Start it without a webhook worker, and stop it at the end."""
        port = free_port()
        serve = [*PROGRAM, "serve", "--demo", "--no-webhook-worker", "--workers", str(workers), "--port", str(port)]
        program = Program(serve, self._log, self._settings)
        try:
            self._wait_for_ready()
            self.url, self.pid = f"http://127.0.0.1:{port}", program.pid
            yield
        finally:
            program.stop()

    def _wait_for_ready(self) -> None:
        deadline = time.monotonic() + 120
        while "Plankeeper is ready" not in self._log.read_text():
            if time.monotonic() > deadline:
                raise ProgramError(f"the server is not ready after 120 s: {self._log.read_text()[-1000:]}")
            time.sleep(0.1)

    def run(self, *arguments: str | Path) -> str:
        """Run a command of Plankeeper on the cluster and return its output."""
        return run_program([*PROGRAM, *arguments], extra_env=self._settings, seconds=2 * 3600).strip()

    def import_copies(self, plan_manager: UUID, resources: Iterable[str], participants: int) -> int:
        """Import copies of a plan manager's sample records until it has so many participants, with each invoice twice.

        Returns how many participants were imported.
        """
        now = datetime.now(ZoneInfo("Australia/Sydney"))  # as the records that the server has loaded
        rows = {resource: list(items) for resource, items in records(plan_manager, now=now)}
        rows["invoices"] += [_second_invoice(row) for row in rows["invoices"]]
        copies = max(1, participants // len(rows["participants"]) - 1)
        for resource in resources:
            file = self.folder / f"{resource}.jsonl"
            with file.open("w") as out:
                out.writelines(to_json(row) + "\n" for row in _copies(rows[resource], copies))
            self.run("import", resource, file, "--plan-manager", str(plan_manager))
        return copies * len(rows["participants"])

    def create_key(self, plan_manager: UUID) -> Mapping[str, str]:
        """The headers of requests with a new key."""
        key = self.run("keys", "create", "--name", "benchmark", "--plan-manager", str(plan_manager))
        return {"Authorization": f"Bearer {key}", "X-Plan-Manager-Id": str(plan_manager)}

    def sign_in(self, client: httpx.Client) -> None:
        """Sign in to the console as the first person of the sample data."""
        email, password = re.findall(r"^Sign-in: +(\S+), password (\S+)$", self._log.read_text(), re.MULTILINE)[0]
        token = re.findall(r'name="csrf" value="([^"]+)"', client.get("/console/sign-in").text)[0]
        form = {"csrf": token, "email": email, "password": password}
        response = client.post("/console/sign-in", data=form, headers={"Origin": self.url})
        if response.status_code != 303:
            raise ProgramError(f"signing in returned status {response.status_code}")


def _copies(rows: list[dict[str, Any]], copies: int) -> Iterator[dict[str, Any]]:
    for number in range(1, copies + 1):
        for row in rows:
            yield _copy_row(row, number)


def _second_invoice(invoice: dict[str, Any]) -> dict[str, Any]:
    """The same invoice under another id and number, with lines of the week before: it is no duplicate."""
    copy = _with_other_id(invoice)
    copy["invoice_number"] = f"{copy['invoice_number']}-2" if copy["invoice_number"] else None
    copy["line_items"] = [_week_before(_with_other_id(line)) for line in copy["line_items"]]
    return copy


def _week_before(line: dict[str, Any]) -> dict[str, Any]:
    days = {name: line[name] for name in ("service_date_from", "service_date_to") if line.get(name)}
    return line | {name: (date.fromisoformat(day) - timedelta(weeks=1)).isoformat() for name, day in days.items()}


def _with_other_id(row: dict[str, Any]) -> dict[str, Any]:
    return {**row, "id": str(UUID(int=UUID(row["id"]).int ^ (1 << 60)))}


def _copy_row(row: dict[str, Any], number: int) -> dict[str, Any]:
    """A row of a copy: ids consistent with the other rows of the copy, and an email and a number of an invoice of its
    own, because copies of a provider have its ABN.
    """
    copy: dict[str, Any] = {}
    for name, value in row.items():
        if isinstance(value, list) and value and isinstance(value[0], dict):
            copy[name] = [_copy_row(each, number) for each in value]
        elif isinstance(value, str) and _UUID.fullmatch(value) and name not in _SHARED:
            copy[name] = str(UUID(int=UUID(value).int ^ (number << 16)))
        elif name == "email" and value:
            copy[name] = f"{number}.{value}"
        elif name == "invoice_number" and value:
            copy[name] = f"{value}/{number}"
        elif name == "participant_number" and value:
            copy[name] = f"{(int(value) + number * 7919) % 10**9:09}" if value.isdigit() else value
        else:
            copy[name] = value
    return copy
