"""`plankeeper distribute`, and the lines of `plankeeper doctor` about Citus."""

import click

from plankeeper.cli.context import Line, embedded_cluster, load_settings, owner_dsn, require_schema, run_as_owner
from plankeeper.cli.privileges import grant_privileges
from plankeeper.database import citus
from plankeeper.database.citus import Node, Step
from plankeeper.database.client import Database, Executor
from plankeeper.database.errors import is_unavailable

_DAY = 24 * 60 * 60.0

_PLACEMENTS = {"reference": "on every node", "distributed": "distributed by plan_manager_id"}


@click.command()
@click.option("--dry-run", is_flag=True, help="Only print what would change.")
@click.option(
    "--shards",
    type=click.IntRange(1, 1024),
    default=32,
    show_default=True,
    help="The number of shards of each table, when the first one is distributed.",
)
def distribute(dry_run: bool, shards: int) -> None:
    """Distribute the tables over the nodes of Citus. Run it once after `migrate`; later runs change nothing."""
    settings = load_settings()
    with embedded_cluster(settings) as cluster:
        dsn = owner_dsn(settings, cluster)

        async def work() -> tuple[list[Step], str | None]:
            # Citus copies all rows in one transaction.
            async with Database(dsn, pool_size=1, statement_timeout=_DAY).open() as db:
                await require_schema(db)
                await _require_nodes(db)
                if dry_run:
                    return citus.missing_steps(await citus.list_tables(db)), None
                async with db.transaction() as tx:
                    steps = await citus.distribute(tx, shards, on_step=_report)
                return steps, await grant_privileges(db, settings, cluster)

        steps, role = run_as_owner(work)
    if dry_run:
        for step in steps:
            click.echo(f"{step.table}: would be {_PLACEMENTS[step.placement]}")
    if not steps:
        click.echo("All tables are already distributed.")
    elif not dry_run:
        click.echo(f"{len(steps)} tables are now distributed.")
    if role and settings.database_url:
        click.echo(f"The role {role} has its privileges.")


def _report(step: Step) -> None:
    click.echo(f"{step.table}: {_PLACEMENTS[step.placement]}")


async def _require_nodes(db: Executor) -> None:
    if not await citus.is_citus(db):
        raise click.ClickException(
            "The database doesn't have the extension citus. Install Citus, then run `create extension citus` in the"
            " database of each node, and add the nodes with citus_set_coordinator_host() and citus_add_node()."
        )
    nodes = await citus.list_node_groups(db)
    if not any(each.group == 0 for each in nodes):
        raise click.ClickException(
            "Citus doesn't know the address of its coordinator: run `select citus_set_coordinator_host('HOST')`."
        )
    if not any(each.is_active and each.has_shards for each in nodes):
        raise click.ClickException(
            "Citus has no node for the shards: add each worker with `select citus_add_node('HOST', PORT)`."
        )


async def citus_lines(db: Executor) -> list[Line]:
    """Lines of `doctor`: the nodes with their shards, and the tables that are not distributed. Empty without Citus."""
    if not await citus.is_citus(db):
        return []
    missing = sorted(each.table for each in citus.missing_steps(await citus.list_tables(db)))
    lines = [("FAIL", f"not distributed: {', '.join(missing)}: run `plankeeper distribute`")] if missing else []
    try:
        return [_node_line(each) for each in await citus.list_nodes(db)] + lines
    except Exception as error:
        if not is_unavailable(error):
            raise
        reason = str(error).partition("\n")[0]
        return [("FAIL", f"a node of Citus is unavailable: {reason}"), *lines]


def _node_line(node: Node) -> Line:
    name = f"Citus coordinator {node.address}" if node.group == 0 else f"Citus worker {node.address}"
    if not node.is_active:
        return "FAIL", f"{name} is disabled: run `select citus_activate_node(...)` when it is back"
    size = f"{node.shards:,} shards of each table, {node.size / 1_000_000:,.1f} MB"
    return "ok", f"{name}: {size}" if node.shards else name
