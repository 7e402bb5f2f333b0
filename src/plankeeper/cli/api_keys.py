"""`plankeeper keys`: API keys."""

from datetime import UTC, datetime, timedelta
from uuid import UUID

import click

from plankeeper.access.api_keys import service, store
from plankeeper.cli.context import in_transaction, system_context, with_database
from plankeeper.cli.parameter_types import DURATION, LIMIT, NAME, UUID_TYPE
from plankeeper.core.context import Actor, WriteContext
from plankeeper.core.settings import Settings
from plankeeper.database.client import Transaction

_ROTATE = Actor("system", None, "plankeeper keys rotate")
_REVOKE = Actor("system", None, "plankeeper keys revoke")


@click.group()
def keys() -> None:
    """Create, list, rotate and revoke API keys."""


@keys.command()
@click.option("--name", type=NAME, required=True, help="The purpose of the key.")
@click.option(
    "--plan-manager",
    "plan_manager_ids",
    type=UUID_TYPE,
    multiple=True,
    required=True,
    help="A plan manager that the key can act for; repeatable.",
)
@click.option(
    "--scope",
    "scopes",
    type=click.Choice(["read", "write", "claims", "payments"]),
    multiple=True,
    default=("read", "write"),
    help="What the key can do; repeatable. By default, read and write.",
)
@click.option("--expires-in", type=DURATION, help="The lifetime of the key, such as 90d; by default, it never expires.")
@click.option(
    "--rate-limit", type=LIMIT, help="Requests per minute, such as 1200/minute, or off; the server's limit by default."
)
def create(
    name: str,
    plan_manager_ids: tuple[UUID, ...],
    scopes: tuple[str, ...],
    expires_in: timedelta | None,
    rate_limit: int | None,
) -> None:
    """Create a key and print it. The key is shown only once and isn't stored."""

    async def work(tx: Transaction, settings: Settings) -> str:
        contexts = [await system_context(tx, settings, each, "keys create") for each in plan_manager_ids]
        return await service.create(contexts[0], name, plan_manager_ids, scopes, expires_in, rate_limit)

    click.echo(in_transaction(work))


@keys.command(name="list")
def list_() -> None:
    """Print one line per key: id, state, last four characters, scopes, expiry, last use, plan managers, name."""
    for key in with_database(lambda db, _: store.list_all(db)):
        expiry = f"until {key.expires_at:%Y-%m-%dT%H:%M:%SZ}" if key.expires_at else "no expiry"
        last_used = f"used {key.last_used_at:%Y-%m-%dT%H:%MZ}" if key.last_used_at else "never used"
        plan_managers = ",".join(str(each) for each in key.plan_managers)
        state = f"{key.id}  {service.key_state(key):7}  …{key.last_four}  {'+'.join(key.scopes)}"
        click.echo(f"{state}  {expiry}  {last_used}  {plan_managers}  {key.name}")


@keys.command()
@click.argument("key_id", type=UUID_TYPE)
@click.option("--overlap", type=DURATION, default="24h", show_default=True, help="How long the old key remains valid.")
@click.option(
    "--expires-in",
    type=DURATION,
    help="The lifetime of the new key; by default, it expires when the old key would have.",
)
def rotate(key_id: UUID, overlap: timedelta, expires_in: timedelta | None) -> None:
    """Create a key with the same rights as an existing key, and print it. The old key expires after the overlap."""

    async def work(tx: Transaction, settings: Settings) -> str | None:
        old_key = await store.select_for_update(tx, key_id)
        if old_key is None or service.key_state(old_key) != "active":
            return None
        expiry = datetime.now(UTC) + expires_in if expires_in else old_key.expires_at
        return await service.rotate(WriteContext(tx, key_id, settings, _ROTATE), old_key, overlap, expiry)

    secret = in_transaction(work)
    if secret is None:
        raise click.ClickException(f"There is no active key {key_id}. See `plankeeper keys list`.")
    click.echo(secret)


@keys.command()
@click.argument("key_id", type=UUID_TYPE)
def revoke(key_id: UUID) -> None:
    """Revoke a key permanently, by its id. Every server rejects it within a second."""
    revoked_key = in_transaction(
        lambda tx, settings: service.revoke(WriteContext(tx, key_id, settings, _REVOKE), key_id)
    )
    if revoked_key is None:
        raise click.ClickException(f"There is no key {key_id}. See `plankeeper keys list`.")
    click.echo(f"Revoked: {revoked_key.name}")
