"""What the code of migrations may contain: they only add to the schema, in steps that block nobody for long."""

import re

from contract.sources import ROOT
from support import next_release

VERSIONS = ROOT / "database" / "migrations" / "versions"
# The first schema, in plain SQL. Servers can serve while a later revision is applied.
FIRST = "0001"
# What servers of the release before can't stand.
CONTRACTION = re.compile(
    r"\b(drop (table|column|constraint)|rename|set not null|alter (column )?\w+ type)\b", re.IGNORECASE
)


def faults(code: str) -> list[str]:
    """The forbidden statements of migrations."""
    found: list[str] = []
    if re.search(r"\bimport op\b|\bop\.", code):
        found.append("calls `op`: call the functions of `steps`")
    if re.search(r"\bcreate (unique )?index\b", code, re.IGNORECASE):
        found.append("creates an index that blocks writes: call `steps.create_index`")
    if CONTRACTION.search(code) and not re.search(r"^def upgrade.*\n    steps\.require_servers\(", code, re.MULTILINE):
        found.append("removes something: begin with `steps.require_servers`")
    return found


def test_migrations_only_add_to_the_schema_or_name_the_servers_that_they_require() -> None:
    later = sorted(path for path in VERSIONS.glob("*.py") if path.name[:4] > FIRST)
    assert {path.name: found for path in later if (found := faults(path.read_text()))} == {}


def test_faults_are_found() -> None:
    assert faults(next_release.MIGRATION) == []
    assert len(faults("from alembic import op")) == 1
    assert len(faults('    steps.execute("create unique index i on t (a)")')) == 1
    removals = (
        "drop table t",
        "alter table t drop column a",
        "alter table t rename a to b",
        "alter table t rename to s",
        "alter table t alter column a set not null",
        "alter table t alter a type bigint",
    )
    for statement in removals:
        step = f'    steps.execute("{statement}")\n'
        assert len(faults(f"def upgrade() -> None:\n{step}")) == 1, statement
        assert faults(f'def upgrade() -> None:\n    steps.require_servers("0002")\n{step}') == []
