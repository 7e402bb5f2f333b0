"""`plankeeper keys`: API keys."""

from datetime import timedelta
from uuid import UUID

import click

from plankeeper.api_keys import service, store
from plankeeper.api_keys.schemas import ApiKey
from plankeeper.cli.context import DURATION, LIMIT, NAME, UUID_TYPE, system_context, with_database
from plankeeper.database.client import Database
from plankeeper.http.context import Actor, WriteContext
from plankeeper.settings import Settings

_ROTATE = Actor("system", None, "plankeeper keys rotate")
_REVOKE = Actor("system", None, "plankeeper keys revoke")


@click.group()
def keys() -> None:
    """Make, list, rotate and revoke API keys."""


@keys.command()
@click.option("--name", type=NAME, required=True, help="What the key is for.")
@click.option(
    "--plan-manager",
    "plan_manager_ids",
    type=UUID_TYPE,
    multiple=True,
    required=True,
    help="A plan manager that the key may act for; may be repeated.",
)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "write"]),
    multiple=True,
    default=("read", "write"),
    help="What the key may do; may be repeated. Both, unless given.",
)
@click.option("--expires-in", type=DURATION, help="How long the key lasts, such as 90d. For ever, unless given.")
@click.option(
    "--rate-limit", type=LIMIT, help="Requests a minute, such as 1200/minute, or off. The server's, unless given."
)
def create(
    name: str,
    plan_manager_ids: tuple[UUID, ...],
    scopes: tuple[str, ...],
    expires_in: timedelta | None,
    rate_limit: int | None,
) -> None:
    """Make a key and print it: it is shown this once, and kept nowhere."""

    async def work(db: Database, settings: Settings) -> str:
        async with db.transaction() as tx:
            contexts = [await system_context(tx, settings, each, "keys create") for each in plan_manager_ids]
            return await service.create(contexts[0], name, plan_manager_ids, scopes, expires_in, rate_limit)

    click.echo(with_database(work))


@keys.command(name="list")
def list_() -> None:
    """Print a line for each key: id, state, last four characters, scopes, expiry, last use, plan managers, name."""

    async def work(db: Database, _settings: Settings) -> list[ApiKey]:
        return await store.list_all(db)

    for key in with_database(work):
        expiry = f"until {key.expires_at:%Y-%m-%dT%H:%M:%SZ}" if key.expires_at else "no expiry"
        last_used = f"used {key.last_used_at:%Y-%m-%dT%H:%MZ}" if key.last_used_at else "never used"
        plan_managers = ",".join(str(each) for each in key.plan_managers)
        columns = (
            key.id,
            f"{service.key_state(key):7}",
            f"…{key.last_four}",
            "+".join(key.scopes),
            expiry,
            last_used,
            plan_managers,
            key.name,
        )
        click.echo("  ".join(str(each) for each in columns))


@keys.command()
@click.argument("key_id", type=UUID_TYPE)
@click.option(
    "--overlap",
    type=DURATION,
    default="24h",
    show_default=True,
    help="How long the old key goes on beside the new one.",
)
@click.option("--expires-in", type=DURATION, help="How long the new key lasts, such as 90d. For ever, unless given.")
def rotate(key_id: UUID, overlap: timedelta, expires_in: timedelta | None) -> None:
    """Make a key that may do what another may, and print it. The other one ends after the overlap."""

    async def work(db: Database, settings: Settings) -> str | None:
        async with db.transaction() as tx:
            old_key = await store.select_for_update(tx, key_id)
            if old_key is None or service.key_state(old_key) != "active":
                return None
            return await service.rotate(WriteContext(tx, key_id, settings, _ROTATE), old_key, overlap, expires_in)

    secret = with_database(work)
    if secret is None:
        raise click.ClickException(f"There is no key {key_id} in use. See `plankeeper keys list`.")
    click.echo(secret)


@keys.command()
@click.argument("key_id", type=UUID_TYPE)
def revoke(key_id: UUID) -> None:
    """Revoke a key for good, by its id. Every server refuses it within a second."""

    async def work(db: Database, settings: Settings) -> ApiKey | None:
        async with db.transaction() as tx:
            return await service.revoke(WriteContext(tx, key_id, settings, _REVOKE), key_id)

    revoked_key = with_database(work)
    if revoked_key is None:
        raise click.ClickException(f"There is no key {key_id}. See `plankeeper keys list`.")
    click.echo(f"Revoked: {revoked_key.name}")
