"""An office with participants whose statements are sent, and what its runs have done."""

from datetime import UTC, datetime
from typing import Any
from uuid import UUID

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.dates import Month
from plankeeper.core.settings import Settings
from plankeeper.resources.statement_runs import service
from plankeeper.resources.statement_runs.worker import make_next
from support.client import Client
from support.server import RunningServer, wait_until

MONTH = "2026-03"
PLAN = {
    "start_date": "2025-07-01", "end_date": "2026-06-30", "is_pace_plan": True,
    "components": [{"name": "Core", "kind": "flexible", "categories": [1, 4], "amount": 12000}],
}  # fmt: skip
ADDRESS = {"address_line_1": "12 Wattle Street", "city": "Ballarat", "state": "VIC", "postcode": "3350"}


class StatementOffice:
    """A plan manager over the API."""

    def __init__(self, server: RunningServer, client: Client) -> None:
        self.server, self.client = server, client
        self.plan_manager_id = UUID(client.plan_manager_id)

    def participant(self, name: str = "Robin", **values: Any) -> str:
        """A participant with a plan: its id."""
        body = {"first_name": name, "last_name": "Hale", "status": "Active"} | values
        found = self.client.post("/participants", body).raise_for_status().json()["id"]
        self.client.create(f"/participants/{found}/plans", PLAN)
        return found

    def member(self, participant_id: str, email: str, *permissions: str) -> str:
        body = {"first_name": "Kim", "last_name": "Hale", "email": email, "permissions": list(permissions)}
        response = self.client.post(f"/participants/{participant_id}/team-members", body)
        assert response.is_success, response.text
        return response.json()["id"]

    def start(self, month: str = MONTH) -> dict[str, Any]:
        return self.client.create("/statement-runs", {"month": month})

    def read(self, run: dict[str, Any]) -> dict[str, Any]:
        return self.client.get(f"/statement-runs/{run['id']}").raise_for_status().json()

    def ended(self, run: dict[str, Any]) -> dict[str, Any]:
        """The run, once it has ended. Its statements are made at once: the server begins within a second."""
        self.server.run(self._make_statements(UUID(run["id"])))
        return self.ended_by_server(run)

    def ended_by_server(self, run: dict[str, Any]) -> dict[str, Any]:
        return wait_until(lambda: found if (found := self.read(run))["state"] == "ended" else None)

    async def _make_statements(self, run_id: UUID) -> None:
        """As far as the server isn't at work on the same run."""
        progress = True
        while progress:
            async with self.server.db.transaction() as tx:
                ctx = WriteContext(tx, self.plan_manager_id, self.server.settings, SYSTEM)
                progress = await make_next(ctx, run_id, now())

    def items(self, run: dict[str, Any], **filters: Any) -> dict[str, dict[str, Any]]:
        """The items by participant."""
        found = self.client.get(f"/statement-runs/{run['id']}/items", limit=1000, **filters).raise_for_status().json()
        return {each["participant_id"]: each for each in found["data"]}

    def rows(self, statement: str) -> list[Any]:
        return self.server.run(self.server.db.rows(str, statement, self.plan_manager_id))  # type: ignore[arg-type]


def now() -> datetime:
    return datetime.now(UTC)


def run_at_once(office: StatementOffice, settings: Settings, month: str = MONTH) -> dict[str, Any]:
    """A run that a server with these settings makes. The server of the tests sees it only when it has ended."""

    async def work() -> str:
        async with office.server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, settings, SYSTEM)
            run = await service.start(ctx, Month.parse(month).first)
            while await make_next(ctx, run.id, now()):
                pass
            return str(run.id)

    return office.read({"id": office.server.run(work())})


def make_statement_runs(server: RunningServer, client: Client) -> dict[str, str]:
    """The ids of runs that have ended: one that is read, with its item, and one whose item is tried again."""
    office = StatementOffice(server, client)
    months = {"statement_run_id": "2026-01", "retry_statement_run_id": "2026-02"}
    ids = {name: office.ended(office.start(month))["id"] for name, month in months.items()}
    item = client.get(f"/statement-runs/{ids['statement_run_id']}/items").json()["data"][0]
    return ids | {"statement_item_id": item["id"]}
