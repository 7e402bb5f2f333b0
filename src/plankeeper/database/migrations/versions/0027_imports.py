"""Imports of the console with their rows, and the columns that people mapped."""

from plankeeper.database.citus import distribute_table
from plankeeper.database.migrations import steps

revision = "0027"
down_revision = "0026"


def upgrade() -> None:
    _create_imports()
    _create_import_rows()
    _create_import_mappings()


def _create_imports() -> None:
    steps.execute("""
        create table if not exists imports (
            plan_manager_id uuid not null,
            id uuid not null,
            resource text not null,
            file_name text not null,
            digest text not null,
            columns text[],
            mapping text[],
            existing text not null default 'update',
            clears_empty boolean not null default false,
            notify boolean not null default false,
            state text not null default 'uploaded',
            created_by uuid not null,
            created_by_name text not null,
            created_at timestamptz not null,
            imported_at timestamptz,
            undone_at timestamptz,
            undone_by_name text,
            created_count integer not null default 0,
            changed_count integer not null default 0,
            unchanged_count integer not null default 0,
            skipped_count integer not null default 0,
            rejected_count integer not null default 0,
            warning_count integer not null default 0,
            primary key (plan_manager_id, id)
        )
    """)
    steps.execute(distribute_table("imports"))
    steps.add_constraint(
        "imports", "imports_plan_manager_id_fkey", "foreign key (plan_manager_id) references plan_managers"
    )
    steps.create_index("imports_by_digest", "imports (plan_manager_id, digest)")


def _create_import_rows() -> None:
    steps.execute("""
        create table if not exists import_rows (
            plan_manager_id uuid not null,
            import_id uuid not null,
            line_number integer not null,
            outcome text not null,
            has_warnings boolean not null,
            record_id text,
            event_id uuid,
            before json,
            after json,
            problems json,
            cells text[],
            primary key (plan_manager_id, import_id, line_number)
        )
    """)
    steps.execute(distribute_table("import_rows"))
    steps.add_constraint(
        "import_rows",
        "import_rows_import_id_fkey",
        "foreign key (plan_manager_id, import_id) references imports on delete cascade",
    )
    steps.create_index("import_rows_by_outcome", "import_rows (plan_manager_id, import_id, outcome, line_number)")


def _create_import_mappings() -> None:
    steps.execute("""
        create table if not exists import_mappings (
            plan_manager_id uuid not null,
            resource text not null,
            column_name text not null,
            field text not null,
            primary key (plan_manager_id, resource, column_name)
        )
    """)
    steps.execute(distribute_table("import_mappings"))
    steps.add_constraint(
        "import_mappings",
        "import_mappings_plan_manager_id_fkey",
        "foreign key (plan_manager_id) references plan_managers",
    )
