"""`plankeeper users`: who signs in to the console."""

import sys
from uuid import UUID

import click

from plankeeper.accounts import member_store, members, password_reset, sessions, store
from plankeeper.accounts.policy import ROLES, invitation_path
from plankeeper.accounts.schemas import Listed, Person
from plankeeper.cli.context import NAME, UUID_TYPE, with_database, writing
from plankeeper.database.client import Database, Transaction
from plankeeper.http.errors import Invalid
from plankeeper.settings import Settings


@click.group()
def users() -> None:
    """Make, list and remove those who sign in to the console."""


@users.command()
@click.option("--email", required=True, help="The address to sign in with.")
@click.option("--name", type=NAME, required=True, help="The person's name.")
@click.option("--plan-manager", "plan_manager_id", type=UUID_TYPE, required=True, help="Whom the person works for.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the person may do there.")
@click.option("--password-stdin", is_flag=True, help="Read a password, the first line of standard input; else invite.")
def create(email: str, name: str, plan_manager_id: UUID, role: str, password_stdin: bool) -> None:
    """Make an account with a password and print its id; without a password, print the path of an invitation."""
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None

    async def work(db: Database, found: Settings) -> str:
        async with db.transaction() as tx:
            call = await writing(tx, found, plan_manager_id, "users create")
            if password is None:
                return invitation_path(await sessions.invite(call, email, role, name))
            return str(await members.create(call, email, name, role, password))

    try:
        click.echo(with_database(work))
    except Invalid as error:
        raise click.ClickException(_told(error)) from None


@users.command(name="list")
def list_() -> None:
    """Print a line for each account: id, email, whether it has a second step, roles, name."""

    async def work(db: Database, _found: Settings) -> list[Listed]:
        return await member_store.fetch_all(db)

    for each in with_database(work):
        roles = ",".join(f"{held.role}:{held.plan_manager_id}" for held in each.memberships)
        step = "two steps" if each.totp else "one step"
        click.echo("  ".join((str(each.id), each.email, step, roles or "no role", each.name)))


@users.command()
@click.argument("email")
@click.option("--password-stdin", is_flag=True, help="Read the password, the first line of standard input.")
@click.option("--second-step-off", is_flag=True, help="For who lost the authenticator and the recovery codes.")
def reset(email: str, password_stdin: bool, second_step_off: bool) -> None:
    """Give a person a new password, which is printed unless it is read, and end their sessions."""
    given = sys.stdin.readline().rstrip("\r\n") if password_stdin else None

    async def work(db: Database, found: Settings) -> str | None:
        async with db.transaction() as tx:
            account = await store.by_email(tx, email)
            if account is None:
                return None
            password = password_reset.new_password() if given is None else given
            command = "users reset"
            await password_reset.reset(tx, found, account, password, command, second_step_off=second_step_off)
            return password

    try:
        password = with_database(work)
    except Invalid as error:
        raise click.ClickException(_told(error)) from None
    if password is None:
        raise click.ClickException(f"There is nobody {email}. See `plankeeper users list`.")
    click.echo(f"The password of {email} is changed." if password_stdin else password)


@users.command()
@click.argument("email")
@click.option("--plan-manager", "plan_manager_id", type=UUID_TYPE, help="Whose people it leaves; all, unless given.")
def remove(email: str, plan_manager_id: UUID | None) -> None:
    """Take a person's roles away, which ends their sessions. Who has no role left has no account."""

    async def work(db: Database, found: Settings) -> list[Person]:
        async with db.transaction() as tx:
            return await _removed(tx, found, email, plan_manager_id)

    gone = with_database(work)
    if not gone:
        raise click.ClickException(f"There is nobody {email} with such a role. See `plankeeper users list`.")
    click.echo(f"Removed: {gone[0].name}")


async def _removed(tx: Transaction, found: Settings, email: str, plan_manager_id: UUID | None) -> list[Person]:
    account = await store.by_email(tx, email)
    if account is None:
        return []
    held = [each.plan_manager_id for each in await member_store.of_account(tx, account.id)]
    wanted = [each for each in held if plan_manager_id in (None, each)]
    calls = [await writing(tx, found, each, "users remove") for each in wanted]
    gone = [await members.remove(call, account.id) for call in calls]
    return [each for each in gone if each]


def _told(error: Invalid) -> str:
    """What is wrong, as a sentence."""
    faults = [f"{each.field.replace('_', ' ')} {each.message}" for each in error.errors or []]
    return f"The {'; the '.join(faults)}."
