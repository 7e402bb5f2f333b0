"""The release after this one: a copy of the package with one more revision, whose steps run while servers serve."""

import shutil
from pathlib import Path

import pytest

import plankeeper
from plankeeper.database import schema

REVISION = f"{int(schema.LATEST_REVISION) + 1:04}"

MIGRATION = f'''
"""Regions of participants: a column, an index and a table."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "{REVISION}"
down_revision = "{schema.LATEST_REVISION}"


def upgrade() -> None:
    steps.execute("alter table participants add column if not exists region text")
    steps.update_in_batches("participants", "region = coalesce(state, 'unknown')", "region is null")
    steps.add_constraint("participants", "participants_region_check", "check (region <> '')")
    steps.create_index("participants_by_region", "participants (plan_manager_id, region, id)")
    steps.execute("""
        create table if not exists regions (
            plan_manager_id uuid not null,
            id uuid not null,
            name text not null,
            primary key (plan_manager_id, id)
        )
    """)
    steps.execute(distribute_table("regions"))
    steps.add_constraint(
        "regions", "regions_plan_manager_id_fkey", "foreign key (plan_manager_id) references plan_managers"
    )
'''.lstrip()


def copy_package(folder: Path) -> dict[str, str]:
    """Write the release to a folder, and return the variables with which Python runs it."""
    package = folder / "plankeeper"
    shutil.copytree(Path(plankeeper.__file__).parent, package, ignore=shutil.ignore_patterns("__pycache__"))
    add_revision(package / "database/migrations", MIGRATION)
    return {"PYTHONPATH": str(folder)}


def use_migrations(patch: pytest.MonkeyPatch, folder: Path, code: str = MIGRATION) -> None:
    """Let this process be the release, as far as migrations go."""
    patch.setattr(schema, "_MIGRATIONS", copy_migrations(folder, code))
    patch.setattr(schema, "LATEST_REVISION", REVISION)


def copy_migrations(folder: Path, code: str) -> Path:
    """A copy of the migrations with one more revision."""
    copy = folder / "migrations"
    shutil.copytree(Path(schema.__file__).with_name("migrations"), copy, ignore=shutil.ignore_patterns("__pycache__"))
    add_revision(copy, code)
    return copy


def add_revision(migrations: Path, code: str) -> None:
    (migrations / "versions" / f"{REVISION}_next.py").write_text(code)
