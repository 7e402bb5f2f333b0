"""Every row of a plan manager as text, to search for what is stored about a person."""

import re
from typing import Any

from support.factories import SeededPlanManager

_BYTES = re.compile(r"\\\\x([0-9a-f]+)")  # PostgreSQL shows them in hexadecimal
# Filled in the background while a test runs.
BACKGROUND_TABLES = {
    "access_records", "api_key_days", "api_request_batches", "api_request_minutes", "event_marks", "event_order",
    "event_queue", "recheck_queue", "webhook_attempt_hours", "webhook_deliveries", "webhook_endpoints",
}  # fmt: skip


def all_rows(world: SeededPlanManager) -> dict[str, list[str]]:
    """Every row of the plan manager by table, with every column as text."""

    async def read() -> dict[str, list[str]]:
        tables = await world.server.db.rows(
            str,
            "select table_name::text from information_schema.columns"
            " where table_schema = 'public' and column_name = 'plan_manager_id' order by 1",
        )
        statements: Any = {
            table: f"select {table}::text from {table} where plan_manager_id = $1 order by 1" for table in tables
        }
        return {
            table: [_decode(each) for each in await world.server.db.rows(str, statement, world.plan_manager_id)]
            for table, statement in statements.items()
        }

    return world.server.run(read())


def _decode(row: str) -> str:
    return _BYTES.sub(lambda match: bytes.fromhex(match[1]).decode(errors="replace"), row)


def stable_rows(world: SeededPlanManager) -> dict[str, list[str]]:
    """The rows that change only if a test changes them."""
    return {table: rows for table, rows in all_rows(world).items() if table not in BACKGROUND_TABLES}


def places_of(world: SeededPlanManager, *texts: str) -> set[str]:
    """The tables in which one of the texts occurs, in any case."""
    return {
        table
        for table, rows in all_rows(world).items()
        if any(text.lower() in row.lower() for text in texts for row in rows)
    }
