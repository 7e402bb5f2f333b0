"""`plankeeper privileges`, and the checks of the serving role in other commands."""

import asyncpg
import click

from plankeeper.cli.context import Line, embedded_cluster, load_settings, owner_dsn, require_schema, run_as_owner
from plankeeper.core.settings import Settings
from plankeeper.database import privileges as database_privileges
from plankeeper.database.client import Database
from plankeeper.database.privileges import Role
from plankeeper.database.schema import SchemaVersion
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.server.embedded_postgres.creation import SERVING_ROLE


@click.command()
@click.option("--dry-run", is_flag=True, help="Only print the SQL.")
def privileges(dry_run: bool) -> None:
    """Give the role of PLANKEEPER_DATABASE_URL the privileges that a server needs, and no others.

    `migrate`, `distribute` and `restore` end with the same.
    """
    settings = load_settings()
    with embedded_cluster(settings) as cluster:

        async def work() -> tuple[str | None, list[str]]:
            async with Database(owner_dsn(settings, cluster), pool_size=1, statement_timeout=600).open() as db:
                await require_schema(db)
                await require_owner(db)
                if not dry_run:
                    return await grant_privileges(db, settings, cluster), []
                role = await find_serving_role(db, settings, cluster)
                return role, await database_privileges.grant_statements(db, role) if role else []

        role, statements = run_as_owner(work)
    if role is None:
        click.echo("PLANKEEPER_DATABASE_URL has the role that owns the tables: it needs no privileges.")
    elif dry_run:
        for each in statements:
            click.echo(f"{each};")
    else:
        click.echo(f"The role {role} has its privileges.")


async def require_owner(db: Database) -> None:
    role = await database_privileges.get_role(db)
    if not role.is_owner:
        raise click.ClickException(
            f"The role {role.name} doesn't own the tables: set PLANKEEPER_OWNER_DATABASE_URL to the address with the"
            " role that does."
        )


async def grant_privileges(db: Database, settings: Settings, cluster: Cluster | None) -> str | None:
    """Give the role that serves its privileges, and return its name; None if it is the owner. `db` is the owner's.

    Raises ClickException if the role can't connect. The role of the embedded PostgreSQL is created.
    """
    role = await find_serving_role(db, settings, cluster)
    if role:
        async with db.transaction() as tx:
            await (database_privileges.prepare_role if cluster else database_privileges.grant)(tx, role)
    return role


async def find_serving_role(db: Database, settings: Settings, cluster: Cluster | None) -> str | None:
    """The role that serves; None if it is the owner. `db` is the owner's.

    Raises ClickException if the role can't connect, or connects to another database.
    """
    if cluster:
        return SERVING_ROLE
    if settings.owner_database_url is None:
        return None
    owner = await database_privileges.get_role(db)
    try:
        async with Database(settings.database_url or "", pool_size=1).open() as serving_db:
            role = await database_privileges.get_role(serving_db)
    except (asyncpg.InvalidPasswordError, asyncpg.InvalidAuthorizationSpecificationError) as error:
        raise click.ClickException(
            f"Cannot connect with PLANKEEPER_DATABASE_URL, so its role has no privileges yet: {error}."
            " Correct it, then run `plankeeper privileges`."
        ) from None
    if (role.database, role.server_started_at) != (owner.database, owner.server_started_at):
        raise click.ClickException(
            "PLANKEEPER_DATABASE_URL and PLANKEEPER_OWNER_DATABASE_URL are different databases"
            f" ({role.database}, {owner.database}). They must be the same one, with different roles."
        )
    return None if role.is_owner or role.name == owner.name else role.name


def _describe_excess(role: Role) -> str | None:
    """A warning about a server's role with more privileges than necessary; None if it has no others."""
    kind = "a superuser" if role.is_superuser else "the owner of the tables" if role.is_owner else None
    if kind is None:
        return None
    return (
        f"the server's database role {role.name} is {kind}: give PLANKEEPER_DATABASE_URL a role of its own, and"
        " PLANKEEPER_OWNER_DATABASE_URL this one, then run `plankeeper privileges`"
    )


async def require_privileges(db: Database) -> list[str]:
    """Warnings about the role of a server. Raises ClickException if it lacks privileges. The schema must be current."""
    role = await database_privileges.get_role(db)
    excess = _describe_excess(role)
    if excess:
        return [excess]
    missing = await database_privileges.list_missing(db, role.name)
    if missing:
        text = _describe_missing(role, missing)
        raise click.ClickException(f"{text[0].upper()}{text[1:]}.")
    return []


async def role_lines(db: Database, version: SchemaVersion | None) -> list[Line]:
    """Lines of `doctor`: the role that serves, and the privileges that it lacks."""
    role = await database_privileges.get_role(db)
    excess = _describe_excess(role)
    if excess:
        return [("warn", excess)]
    if version is None or not version.is_compatible:
        return []
    missing = await database_privileges.list_missing(db, role.name)
    return [("FAIL", _describe_missing(role, missing))] if missing else [("ok", f"the role {role.name} owns nothing")]


def _describe_missing(role: Role, missing: list[str]) -> str:
    """The instructions for a role that lacks privileges."""
    shown = ", ".join(missing[:3]) + (f" and {len(missing) - 3} more" if len(missing) > 3 else "")
    return f"the role {role.name} lacks privileges ({shown}): run `plankeeper privileges`"
