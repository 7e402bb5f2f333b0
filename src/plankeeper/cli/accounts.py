"""`plankeeper accounts`: the accounts that sign in to the console."""

import sys
from collections.abc import Callable, Sequence
from uuid import UUID

import click

from plankeeper.access.accounts import (
    invitations,
    member_store,
    members,
    password_reset,
    store,
)
from plankeeper.access.accounts.schemas import Member, RoleDetails
from plankeeper.access.policy import PERMISSIONS, ROLES, Permission
from plankeeper.cli.context import in_transaction, system_context, with_database, write
from plankeeper.cli.parameter_types import NAME, UUID_TYPE, plan_manager_option
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Transaction


@click.group()
def accounts() -> None:
    """Create, list, reset and remove accounts for the console."""


def role_details_options(command: Callable[..., None]) -> Callable[..., None]:
    """The options for the permissions of a manager and the limits of a viewer."""
    for option in (
        click.option("--no-download", is_flag=True, help="A viewer can't download CSV and XLSX files."),
        click.option(
            "--participants-of", type=UUID_TYPE, help="A viewer sees only the participants of this account manager."
        ),
        click.option(
            "--permission",
            "permissions",
            type=click.Choice(PERMISSIONS),
            multiple=True,
            help="What a manager can do besides; repeatable.",
        ),
    ):
        command = option(command)
    return command


@accounts.command()
@click.option("--email", required=True, help="The email to sign in with.")
@click.option("--name", type=NAME, required=True, help="The person's name.")
@plan_manager_option("The plan manager that the person works for.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the person can do there.")
@role_details_options
@click.option(
    "--password-stdin",
    is_flag=True,
    help="Read a password from the first line of standard input instead of creating an invitation.",
)
def create(
    email: str,
    name: str,
    plan_manager_id: UUID,
    role: str,
    permissions: tuple[Permission, ...],
    participants_of: UUID | None,
    no_download: bool,
    password_stdin: bool,
) -> None:
    """Create an account and print its id. Without a password, create an invitation, and send or print its link."""
    details = _details_of(role, permissions, participants_of, no_download=no_download)
    password = sys.stdin.readline().rstrip("\r\n") if password_stdin else None

    async def work(ctx: WriteContext) -> str:
        if password is not None:
            return str(await members.create(ctx, email, name, role, password, details))
        token = await invitations.invite(ctx, email, role, name, details)
        if token is None:
            return f"A server will send the invitation to {email}."
        return (ctx.settings.public_url or "") + invitations.invitation_path(token)

    try:
        click.echo(write(plan_manager_id, "accounts create", work))
    except ValidationError as error:
        raise click.ClickException(_error_sentence(error)) from None


@accounts.command(name="set-role")
@click.argument("email")
@plan_manager_option("The plan manager that the role is for.")
@click.option("--role", type=click.Choice(ROLES), required=True, help="What the person can do there.")
@role_details_options
@click.option("--keep-keys", is_flag=True, help="Keep the access of the API keys that the person created.")
def set_role(
    email: str,
    plan_manager_id: UUID,
    role: str,
    permissions: tuple[Permission, ...],
    participants_of: UUID | None,
    no_download: bool,
    keep_keys: bool,
) -> None:
    """Change a person's role, with its permissions and limits, and print it.

    A lower role withdraws the person's open invitations, and the API keys that they created lose access. Without the
    permission to make claims or payments, their keys with that scope do.
    """
    details = _details_of(role, permissions, participants_of, no_download=no_download)

    async def work(ctx: WriteContext) -> Member | None:
        account = await store.get_by_email(ctx.tx, email)
        return await members.change_role(ctx, account.id, role, details, keep_keys=keep_keys) if account else None

    try:
        before = write(plan_manager_id, "accounts set-role", work)
    except ValidationError as error:
        raise click.ClickException(_error_sentence(error)) from None
    if before is None:
        raise click.ClickException(
            f"There is no account with the email {email} and a role there. See `plankeeper accounts list`."
        )
    click.echo(f"{before.name}: {_describe_role(role, details)}")


@accounts.command(name="list")
def list_() -> None:
    """Print one line per account: id, email, whether it uses two-factor authentication, roles, name."""
    for each in with_database(lambda db, _: member_store.list_accounts(db)):
        roles = ",".join(
            f"{_describe_role(membership.role, membership.details)}:{membership.plan_manager_id}"
            for membership in each.memberships
        )
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

    async def work(tx: Transaction, settings: Settings) -> tuple[str, bool] | None:
        account = await store.get_by_email(tx, email)
        if account is None:
            return None
        password = password_reset.generate_password() if chosen_password is None else chosen_password
        command = "accounts reset"
        await password_reset.reset(tx, settings, account, password, command, disable_two_factor=disable_two_factor)
        return password, account.totp_secret is not None and not disable_two_factor

    try:
        result = in_transaction(work)
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
@plan_manager_option("The plan manager to remove the person from; all by default.", is_required=False)
@click.option("--keep-keys", is_flag=True, help="Keep the access of the API keys that the person created.")
def remove(email: str, plan_manager_id: UUID | None, keep_keys: bool) -> None:
    """Remove a person's roles, and end their sessions. An account without roles is deleted.

    Open invitations by the person are withdrawn, and API keys that they created lose access to the plan manager.
    """

    async def work(tx: Transaction, settings: Settings) -> list[Member]:
        account = await store.get_by_email(tx, email)
        held = await member_store.list_memberships(tx, account.id) if account else []
        chosen = [each.plan_manager_id for each in held if plan_manager_id in (None, each.plan_manager_id)]
        contexts = [await system_context(tx, settings, each, "accounts remove") for each in chosen]
        removed = [await members.remove(ctx, account.id, keep_keys=keep_keys) for ctx in contexts if account]
        return [each for each in removed if each]

    removed = in_transaction(work)
    if not removed:
        raise click.ClickException(
            f"There is no account with the email {email} and such a role. See `plankeeper accounts list`."
        )
    click.echo(f"Removed: {removed[0].name}")


def _details_of(
    role: str, permissions: Sequence[Permission], participants_of: UUID | None, *, no_download: bool
) -> RoleDetails:
    """The options as details of a role; raises UsageError for those that the role can't have."""
    if permissions and role != "manager":
        raise click.UsageError("--permission is for managers: owners have all permissions, viewers none.")
    if (participants_of or no_download) and role != "viewer":
        raise click.UsageError("--participants-of and --no-download are for viewers.")
    return RoleDetails(list(permissions), participants_of, not no_download)


def _describe_role(role: str, details: RoleDetails) -> str:
    """Such as `manager+override_blocks` or `viewer+participants_of=…+no_download`."""
    limit = f"participants_of={details.participants_of}" if details.participants_of else ""
    download = "" if details.can_download else "no_download"
    return "+".join(filter(None, (role, *details.permissions, limit, download)))


def _error_sentence(error: ValidationError) -> str:
    """The errors of all fields as one sentence."""
    messages = [f"{each.field.replace('_', ' ')} {each.message}" for each in error.errors or []]
    return f"The {'; the '.join(messages)}."
