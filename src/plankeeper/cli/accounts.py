"""`plankeeper accounts`: the accounts that sign in to the console."""

import sys
from uuid import UUID

import click

from plankeeper.access.accounts import (
    invitations,
    member_store,
    members,
    password_reset,
    store,
)
from plankeeper.access.accounts.schemas import AccountWithRoles, Member
from plankeeper.access.policy import ROLES
from plankeeper.cli.context import system_context, with_database
from plankeeper.cli.parameter_types import NAME, UUID_TYPE
from plankeeper.core.errors import ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Transaction


@click.group()
def accounts() -> None:
    """Create, list, reset and remove accounts for the console."""


@accounts.command()
@click.option("--email", required=True, help="The email to sign in with.")
@click.option("--name", type=NAME, required=True, help="The person's name.")
@click.option(
    "--plan-manager",
    "plan_manager_id",
    type=UUID_TYPE,
    required=True,
    help="The plan manager that the person works for.",
)
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the person can do there.")
@click.option(
    "--password-stdin",
    is_flag=True,
    help="Read a password from the first line of standard input instead of creating an invitation.",
)
def create(email: str, name: str, plan_manager_id: UUID, role: str, password_stdin: bool) -> None:
    """Create an account and print its id. Without a password, create an invitation, and send or print its link."""
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None

    async def work(db: Database, settings: Settings) -> str:
        async with db.transaction() as tx:
            ctx = await system_context(tx, settings, plan_manager_id, "accounts create")
            if password is None:
                token = await invitations.invite(ctx, email, role, name)
                if token is None:
                    return f"A server will send the invitation to {email}."
                return (settings.public_url or "") + invitations.invitation_path(token)
            return str(await members.create(ctx, email, name, role, password))

    try:
        click.echo(with_database(work))
    except ValidationError as error:
        raise click.ClickException(_error_sentence(error)) from None


@accounts.command(name="list")
def list_() -> None:
    """Print one line per account: id, email, whether it uses two-factor authentication, roles, name."""

    async def work(db: Database, _settings: Settings) -> list[AccountWithRoles]:
        return await member_store.list_accounts(db)

    for each in with_database(work):
        roles = ",".join(f"{membership.role}:{membership.plan_manager_id}" for membership in each.memberships)
        two_factor = "two-factor" if each.totp else "password only"
        click.echo("  ".join((str(each.id), each.email, two_factor, roles or "no role", each.name)))


@accounts.command()
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password from the first line of standard input.")
@click.option("--disable-two-factor", is_flag=True, help="Turn off two-factor authentication.")
def reset(email: str, password_stdin: bool, disable_two_factor: bool) -> None:
    """Reset a password, end the person's sessions, and print the new password unless it is read from standard input.

    Standard error says whether two-factor authentication is on.
    """
    chosen_password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None

    async def work(db: Database, settings: Settings) -> tuple[str, bool] | None:
        async with db.transaction() as tx:
            account = await store.get_by_email(tx, email)
            if account is None:
                return None
            password = password_reset.generate_password() if chosen_password is None else chosen_password
            command = "accounts reset"
            await password_reset.reset(tx, settings, account, password, command, disable_two_factor=disable_two_factor)
            return password, account.totp_secret is not None and not disable_two_factor

    try:
        result = with_database(work)
    except ValidationError as error:
        raise click.ClickException(_error_sentence(error)) from None
    if result is None:
        raise click.ClickException(f"There is no account with the email {email}. See `plankeeper accounts list`.")
    password, has_two_factor = result
    hint = "on: signing in requires a code. --disable-two-factor turns it off" if has_two_factor else "off"
    click.echo(f"Two-factor authentication of {email} is {hint}.", err=True)
    click.echo(f"The password of {email} was changed." if password_stdin else password)


@accounts.command()
@click.argument("email")
@click.option(
    "--plan-manager",
    "plan_manager_id",
    type=UUID_TYPE,
    help="The plan manager to remove the person from; all by default.",
)
@click.option("--keep-keys", is_flag=True, help="Keep the access of the API keys that the person created.")
def remove(email: str, plan_manager_id: UUID | None, keep_keys: bool) -> None:
    """Remove a person's roles, and end their sessions. An account without roles is deleted.

    Open invitations by the person are withdrawn, and API keys that they created lose access to the plan manager.
    """

    async def work(db: Database, settings: Settings) -> list[Member]:
        async with db.transaction() as tx:
            return await _remove_member(tx, settings, email, plan_manager_id, keep_keys=keep_keys)

    removed = with_database(work)
    if not removed:
        raise click.ClickException(
            f"There is no account with the email {email} and such a role. See `plankeeper accounts list`."
        )
    click.echo(f"Removed: {removed[0].name}")


async def _remove_member(
    tx: Transaction, settings: Settings, email: str, plan_manager_id: UUID | None, *, keep_keys: bool
) -> list[Member]:
    account = await store.get_by_email(tx, email)
    if account is None:
        return []
    held_ids = [each.plan_manager_id for each in await member_store.list_memberships(tx, account.id)]
    plan_manager_ids = [each for each in held_ids if plan_manager_id in (None, each)]
    contexts = [await system_context(tx, settings, each, "accounts remove") for each in plan_manager_ids]
    removed = [await members.remove(ctx, account.id, keep_keys=keep_keys) for ctx in contexts]
    return [each for each in removed if each]


def _error_sentence(error: ValidationError) -> str:
    """The errors of all fields as one sentence."""
    messages = [f"{each.field.replace('_', ' ')} {each.message}" for each in error.errors or []]
    return f"The {'; the '.join(messages)}."
