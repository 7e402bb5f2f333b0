"""`plankeeper plan-managers`: the organisations that everything belongs to."""

from uuid import UUID

import click
from uuid_utils.compat import uuid7

from plankeeper.cli.context import NAME, UUID_TYPE, with_database, writing
from plankeeper.database.client import Database
from plankeeper.events.recorder import record
from plankeeper.plan_managers import store
from plankeeper.settings import Settings


@click.group()
def plan_managers() -> None:
    """Make and list plan managers."""


@plan_managers.command()
@click.option("--name", type=NAME, required=True, help="The organisation's name.")
@click.option("--id", "plan_manager_id", type=UUID_TYPE, help="An id of your own; else one is made.")
def create(name: str, plan_manager_id: UUID | None) -> None:
    """Make a plan manager and print its id."""

    async def work(db: Database, found: Settings) -> UUID:
        async with db.transaction() as tx:
            made = await store.insert(tx, plan_manager_id or uuid7(), name)
            if made is None:
                raise click.ClickException(f"There is a plan manager {plan_manager_id} already.")
            await record(await writing(tx, found, made.id, "plan-managers create"), "plan_manager.created", None, made)
        return made.id

    click.echo(with_database(work))


@plan_managers.command(name="list")
def list_() -> None:
    """Print a line for each plan manager: id, when it was made, name."""

    async def work(db: Database, _found: Settings) -> list[store.PlanManager]:
        return await store.fetch_all(db)

    for each in with_database(work):
        click.echo(f"{each.id}  {each.created_at:%Y-%m-%d}  {each.name}")
