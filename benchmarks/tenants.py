"""Plankeeper with its participants spread over many plan managers. Each request is for another one."""

import time
from pathlib import Path

from benchmarks.data import Dataset, tenant_ids
from benchmarks.load import Row
from benchmarks.plankeeper import Plankeeper, fill_references, import_participants
from benchmarks.scenarios import Scenario

_ROWS = 5_000  # participants of each plan manager
# Copies the records that participants refer to from the first plan manager to the others.
_REFERENCES = """
create temporary table others as select unnest('{{{others}}}'::uuid[]) as id;
insert into plan_managers (id, name) select id, 'Benchmark' from others;
insert into users (plan_manager_id, id, email)
    select others.id, users.id, users.email from others, users where plan_manager_id = '{first}';
insert into account_managers (plan_manager_id, id, first_name, last_name, active, is_internal, deleted)
    select others.id, source.id, first_name, last_name, active, is_internal, deleted
    from others, account_managers source where plan_manager_id = '{first}';
insert into exit_reasons (plan_manager_id, id, name, parent_id)
    select others.id, source.id, name, parent_id from others, exit_reasons source where plan_manager_id = '{first}';
"""


class ManyTenants(Plankeeper):
    """The participants of `data`, divided among `count` plan managers: by default, 5,000 for each."""

    name = "tenants"
    title = "many plan managers"
    data_sources = ("tenants.py", *Plankeeper.data_sources)
    tenant_header = "{tenant}"

    def __init__(self, work: Path, data: Dataset, count: int | None = None) -> None:
        self.tenants = tenant_ids(count or max(2, data.rows // _ROWS))
        super().__init__(work, data)
        self.rows_per_tenant = data.rows // len(self.tenants)

    @property
    def offset(self) -> int:
        return self.dataset_for(self.tenants[0]).offset

    def supports(self, scenario: Scenario) -> bool:
        return not scenario.writes and scenario.limit * 2 <= self.rows_per_tenant

    @property
    def store(self) -> str:
        return f"tenants-{len(self.tenants)}"

    def fill(self, deadline: float) -> None:
        first, *others = self.tenants
        fill_references(self.postgres, self.data, first)
        self.postgres.run(_REFERENCES.format(others=",".join(others), first=first))
        for number, tenant in enumerate(self.tenants):
            rows, seconds = self.data.lines(number, self.rows_per_tenant), max(0.0, deadline - time.monotonic())
            import_participants(self.postgres, tenant, rows, seconds)
        self.create_key(*self.tenants)

    def dataset_for(self, tenant: str) -> Dataset:
        return self.data.part(self.tenants.index(tenant), self.rows_per_tenant)

    def sample_rows(self, scenario: Scenario) -> list[Row]:
        """Up to 250 ids of each plan manager, interleaved so that neighbours belong to different ones."""
        parts = [getattr(self.dataset_for(tenant), scenario.pool)()[:250] for tenant in self.tenants]
        return [
            (row_id, tenant)
            for ids in zip(*parts, strict=False)
            for row_id, tenant in zip(ids, self.tenants, strict=True)
        ]
