"""Plans of statements with their values, as the pool's connections make them."""

import json
from collections.abc import Iterator
from itertools import count as counting
from typing import Any

from plankeeper.database.client import Executor
from plankeeper.database.pool import SET_CUSTOM_PLAN, SET_GENERIC_PLAN


class ExplainingExecutor(Executor):
    """Explains every statement that a list runs, with the settings of the pool's connections."""

    def __init__(self, connection: Any) -> None:
        super().__init__(connection)
        self.plans: list[dict[str, Any]] = []
        self._numbers = counting(1)

    async def rows(self, row_type: Any, statement: Any, *values: object, custom_plan: bool = False) -> Any:
        await self._explain(statement, values, custom_plan=custom_plan)
        return await super().rows(row_type, statement, *values, custom_plan=custom_plan)

    async def one(self, row_type: Any, statement: Any, *values: object) -> Any:
        await self._explain(statement, values)
        return await super().one(row_type, statement, *values)

    async def _explain(self, statement: str, values: tuple[object, ...], *, custom_plan: bool = False) -> None:
        """Explain by name: `explain` of a statement with values would always plan it for these values."""
        name = f"explained_{next(self._numbers)}"
        await self._connection.execute(f"prepare {name} as {statement}")
        arguments = f"({', '.join(to_sql_literal(value) for value in values)})" if values else ""
        await self._connection.execute(SET_CUSTOM_PLAN if custom_plan else SET_GENERIC_PLAN)
        plan = await self._connection.fetchval(f"explain (format json, analyze, buffers) execute {name}{arguments}")
        await self._connection.execute(SET_GENERIC_PLAN)
        self.plans.append(json.loads(plan)[0]["Plan"])


def to_sql_literal(value: object) -> str:
    if value is None:
        return "null"
    if isinstance(value, list):
        return to_sql_literal("{" + ",".join(str(each) for each in value) + "}")
    return "'" + str(value).replace("'", "''") + "'"


def plan_nodes(plan: dict[str, Any]) -> Iterator[dict[str, Any]]:
    yield plan
    for inner in plan.get("Plans", []):
        yield from plan_nodes(inner)
