"""`plankeeper accounts`: who signs in to the console."""

import sys
from uuid import UUID

import click

from plankeeper.accounts import invitations, member_store, members, password_reset, store
from plankeeper.accounts.policy import ROLES
from plankeeper.accounts.schemas import AccountWithRoles, Member
from plankeeper.cli.context import NAME, UUID_TYPE, system_context, with_database
from plankeeper.database.client import Database, Transaction
from plankeeper.http.errors import ValidationError
from plankeeper.settings import Settings


@click.group()
def accounts() -> None:
    """Make, list and remove those who sign in to the console."""


@accounts.command()
@click.option("--email", required=True, help="The address to sign in with.")
@click.option("--name", type=NAME, required=True, help="The person's name.")
@click.option("--plan-manager", "plan_manager_id", type=UUID_TYPE, required=True, help="Whom the person works for.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the person may do there.")
@click.option("--password-stdin", is_flag=True, help="Read a password, the first line of standard input; else invite.")
def create(email: str, name: str, plan_manager_id: UUID, role: str, password_stdin: bool) -> None:
    """Make an account with a password and print its id; without a password, print the path of an invitation."""
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None

    async def work(db: Database, settings: Settings) -> str:
        async with db.transaction() as tx:
            ctx = await system_context(tx, settings, plan_manager_id, "accounts create")
            if password is None:
                return invitations.invitation_path(await invitations.invite(ctx, email, role, name))
            return str(await members.create(ctx, email, name, role, password))

    try:
        click.echo(with_database(work))
    except ValidationError as error:
        raise click.ClickException(_error_sentence(error)) from None


@accounts.command(name="list")
def list_() -> None:
    """Print a line for each account: id, email, whether it has two-factor authentication, roles, name."""

    async def work(db: Database, _settings: Settings) -> list[AccountWithRoles]:
        return await member_store.list_accounts(db)

    for each in with_database(work):
        roles = ",".join(f"{membership.role}:{membership.plan_manager_id}" for membership in each.memberships)
        two_factor = "two steps" if each.totp else "one step"
        click.echo("  ".join((str(each.id), each.email, two_factor, roles or "no role", each.name)))


@accounts.command()
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password, the first line of standard input.")
@click.option("--disable-two-factor", is_flag=True, help="For who lost the authenticator and the recovery codes.")
def reset(email: str, password_stdin: bool, disable_two_factor: bool) -> None:
    """Give a person a new password, which is printed unless it is read, and end their sessions."""
    chosen_password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None

    async def work(db: Database, settings: Settings) -> str | None:
        async with db.transaction() as tx:
            account = await store.get_by_email(tx, email)
            if account is None:
                return None
            password = password_reset.generate_password() if chosen_password is None else chosen_password
            command = "accounts reset"
            await password_reset.reset(tx, settings, account, password, command, disable_two_factor=disable_two_factor)
            return password

    try:
        password = with_database(work)
    except ValidationError as error:
        raise click.ClickException(_error_sentence(error)) from None
    if password is None:
        raise click.ClickException(f"There is nobody {email}. See `plankeeper accounts list`.")
    click.echo(f"The password of {email} is changed." if password_stdin else password)


@accounts.command()
@click.argument("email")
@click.option("--plan-manager", "plan_manager_id", type=UUID_TYPE, help="Whose people it leaves; all, unless given.")
def remove(email: str, plan_manager_id: UUID | None) -> None:
    """Take a person's roles away, which ends their sessions. Who has no role left has no account."""

    async def work(db: Database, settings: Settings) -> list[Member]:
        async with db.transaction() as tx:
            return await _remove_member(tx, settings, email, plan_manager_id)

    removed = with_database(work)
    if not removed:
        raise click.ClickException(f"There is nobody {email} with such a role. See `plankeeper accounts list`.")
    click.echo(f"Removed: {removed[0].name}")


async def _remove_member(tx: Transaction, settings: Settings, email: str, plan_manager_id: UUID | None) -> list[Member]:
    account = await store.get_by_email(tx, email)
    if account is None:
        return []
    held_ids = [each.plan_manager_id for each in await member_store.list_memberships(tx, account.id)]
    plan_manager_ids = [each for each in held_ids if plan_manager_id in (None, each)]
    contexts = [await system_context(tx, settings, each, "accounts remove") for each in plan_manager_ids]
    removed = [await members.remove(ctx, account.id) for ctx in contexts]
    return [each for each in removed if each]


def _error_sentence(error: ValidationError) -> str:
    """What is wrong, as a sentence."""
    messages = [f"{each.field.replace('_', ' ')} {each.message}" for each in error.errors or []]
    return f"The {'; the '.join(messages)}."
