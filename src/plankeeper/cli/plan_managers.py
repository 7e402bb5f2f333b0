"""`plankeeper plan-managers`: the organisations that own all records."""

from dataclasses import replace
from uuid import UUID

import click
from uuid_utils.compat import uuid7

from plankeeper.access.plan_managers import store
from plankeeper.cli.context import in_transaction, system_context, with_database
from plankeeper.cli.parameter_types import NAME, UUID_TYPE
from plankeeper.core.settings import Settings
from plankeeper.database.client import Transaction
from plankeeper.events.recorder import record_event


@click.group()
def plan_managers() -> None:
    """Create and list plan managers."""


@plan_managers.command()
@click.option("--name", type=NAME, required=True, help="The organisation's name.")
@click.option("--id", "plan_manager_id", type=UUID_TYPE, help="A UUID of your choice; by default, a new one.")
def create(name: str, plan_manager_id: UUID | None) -> None:
    """Create a plan manager and print its id."""

    async def work(tx: Transaction, settings: Settings) -> UUID:
        created = await store.insert(tx, plan_manager_id or uuid7(), name)
        if created is None:
            raise click.ClickException(f"The plan manager {plan_manager_id} already exists. Choose another --id.")
        ctx = replace(await system_context(tx, settings, created.id, "plan-managers create"), notify=False)
        await record_event(ctx, "plan_manager.created", None, created)
        return created.id

    click.echo(in_transaction(work))


@plan_managers.command(name="list")
def list_() -> None:
    """Print one line per plan manager: id, creation date, name."""
    for each in with_database(lambda db, _: store.list_all(db)):
        click.echo(f"{each.id}  {each.created_at:%Y-%m-%d}  {each.name}")
