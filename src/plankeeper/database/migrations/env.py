"""Alembic's entry point: runs the migrations over the caller's connection, one program at a time.

Revisions in plain SQL share one transaction, up to the first of the steps of `steps.py`, which have one each.
"""

from alembic import context
from sqlalchemy import Connection, text

from plankeeper.database.migrations import steps
from plankeeper.database.schema import MigrationProgress

# Any fixed number: the holder of this advisory lock runs the migrations.
_LOCK = 7_526_541_001
_LOCK_POLL_INTERVAL = 0.2  # seconds

# Of the connection, for all statements of all migrations.
_SESSION_SETTINGS = {
    "lock_timeout": steps.LOCK_TIMEOUT,
    # Citus then changes all shards over one connection for each node, so that a statement sees the changes of the one
    # before. Elsewhere, the setting has no effect.
    "citus.multi_shard_modify_mode": "sequential",
    "citus.enable_local_reference_table_foreign_keys": "off",
}


def _wait_for_lock(connection: Connection, progress: MigrationProgress) -> None:
    # A statement that waits for the lock has a snapshot, and the holder's `create index concurrently` waits for all
    # older snapshots: a deadlock.
    while not connection.scalar(text("select pg_try_advisory_lock(:lock)"), {"lock": _LOCK}):
        connection.commit()
        progress.step = "waiting for another migration"
        steps.sleep(_LOCK_POLL_INTERVAL)
    connection.commit()


def _upgrade(progress: MigrationProgress) -> None:
    with context.begin_transaction():
        current = context.get_context().get_current_revision()
        pending = [*context.script.iterate_revisions(context.get_revision_argument(), current or "base")][::-1]
        progress.start([f"{each.revision} {each.doc.rstrip('.')}" for each in pending])
        context.run_migrations()


def run(connection: Connection, progress: MigrationProgress) -> None:
    _wait_for_lock(connection, progress)
    for name, value in _SESSION_SETTINGS.items():
        connection.execute(text("select set_config(:name, :value, false)"), {"name": name, "value": value})
    connection.commit()

    def on_version_apply(*_: object, **__: object) -> None:
        progress.complete_revision()

    context.configure(connection=connection, on_version_apply=on_version_apply)
    steps.retry_while_locked(lambda: _upgrade(progress))


run(context.config.attributes["connection"], context.config.attributes["progress"])
