"""`plankeeper sso`: the single sign-on providers of plan managers, and recovery by the operator."""

import sys
from uuid import UUID

import click

from plankeeper.access.accounts import members, single_sign_on, store
from plankeeper.access.accounts.audit import record_account_event_by_operator
from plankeeper.access.accounts.password_reset import EXCEPT_NONE
from plankeeper.access.plan_managers import store as plan_managers
from plankeeper.access.single_sign_on import providers
from plankeeper.access.single_sign_on import store as provider_store
from plankeeper.access.single_sign_on.client import ProviderError
from plankeeper.access.single_sign_on.schemas import Provider
from plankeeper.access.single_sign_on.service import redirect_uri
from plankeeper.cli.context import in_transaction, system_context, with_database, write
from plankeeper.cli.parameter_types import plan_manager_option
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import SecretKeyMissingError, ValidationError
from plankeeper.core.settings import SettingError, Settings
from plankeeper.database.client import Database, Transaction

PLAN_MANAGER = plan_manager_option("The plan manager.")


@click.group()
def sso() -> None:
    """Set up single sign-on with OpenID Connect."""


@sso.command()
@PLAN_MANAGER
@click.option("--issuer", required=True, help="The provider's issuer, such as https://login.example.com.")
@click.option("--client-id", required=True, help="The client id that the provider assigned to Plankeeper.")
@click.option(
    "--domain", "domains", multiple=True, required=True, help="A domain of the people's emails; can be repeated."
)
@click.option("--skip-check", is_flag=True, help="Don't fetch the provider's discovery document.")
def add(plan_manager_id: UUID, issuer: str, client_id: str, domains: tuple[str, ...], skip_check: bool) -> None:
    """Set up a plan manager's provider, and print the redirect address to register there.

    Reads the client secret from the first line of standard input. Replaces an earlier provider of the plan manager.
    """
    secret = sys.stdin.readline().rstrip("\r\n")

    async def work(db: Database, settings: Settings) -> str:
        _require_public_url(settings)
        providers.validate(issuer, client_id, secret, domains)
        if not skip_check:  # before the transaction, which locks the table of providers
            await providers.check_discovery(issuer)
        async with db.transaction() as tx:
            ctx = await system_context(tx, settings, plan_manager_id, "sso add")
            await providers.set_up(ctx, issuer, client_id, secret, domains)
        return redirect_uri(settings, plan_manager_id)

    try:
        click.echo(with_database(work))
    except ValidationError as error:
        messages = [f"--{each.field.replace('_', '-')} {each.message}" for each in error.errors]
        raise click.ClickException(f"{'; '.join(messages)}.") from None
    except ProviderError as error:
        raise click.ClickException(f"Nothing was changed: {error}. To skip this check, use --skip-check.") from None
    except SecretKeyMissingError as error:
        raise click.ClickException(error.detail) from None


@sso.command(name="list")
def list_() -> None:
    """Print one line per provider: plan manager, whether it is required, issuer, client id, domains."""

    async def work(db: Database, _settings: Settings) -> list[tuple[Provider, bool]]:
        found = await provider_store.list_all(db)
        policies = [await plan_managers.get_policy(db, each.plan_manager_id) for each in found]
        return [(each, policy.requires_single_sign_on) for each, policy in zip(found, policies, strict=True)]

    for each, is_required in with_database(work):
        requirement = "required" if is_required else "optional"
        domains = ",".join(each.allowed_domains)
        click.echo("  ".join((str(each.plan_manager_id), requirement, each.issuer, each.client_id, domains)))


@sso.command()
@PLAN_MANAGER
def remove(plan_manager_id: UUID) -> None:
    """Remove a plan manager's provider, and make single sign-on optional.

    Sessions that began at the provider lose their access. People sign in with their password.
    """

    async def work(ctx: WriteContext) -> Provider | None:
        await members.set_requires_single_sign_on(ctx, False, has_single_sign_on=False)
        return await providers.remove(ctx)

    removed = write(plan_manager_id, "sso remove", work)
    if removed is None:
        raise click.ClickException(f"The plan manager {plan_manager_id} has no provider. See `plankeeper sso list`.")
    click.echo(f"Removed: {removed.issuer}")


@sso.command()
@PLAN_MANAGER
def optional(plan_manager_id: UUID) -> None:
    """Let people use a plan manager with a password again, if an owner requires single sign-on."""
    write(
        plan_manager_id,
        "sso optional",
        lambda ctx: members.set_requires_single_sign_on(ctx, False, has_single_sign_on=False),
    )
    click.echo("Single sign-on is now optional.")


@sso.command()
@click.argument("email")
def unlink(email: str) -> None:
    """Unlink an account from all identities, and end its sessions.

    The next single sign-on asks for the account's password again.
    """

    async def work(tx: Transaction, settings: Settings) -> int | None:
        found = await store.get_by_email(tx, email)
        account = await store.select_for_update(tx, found.id) if found else None
        if account is None:
            return None
        count = await single_sign_on.delete_all_of_account(tx, account.id)
        if count:
            await store.delete_other_sessions(tx, account.id, EXCEPT_NONE)
            event_type = "account.single_sign_on_unlinked"
            await record_account_event_by_operator(tx, settings, account, event_type, "sso unlink")
        return count

    count = in_transaction(work)
    if count is None:
        raise click.ClickException(f"There is no account with the email {email}. See `plankeeper accounts list`.")
    click.echo(f"Unlinked identities: {count}")


async def require_public_url(db: Database, settings: Settings) -> None:
    """Raise ClickException if a provider is set up without a public URL for its redirect address."""
    if await provider_store.list_first(db, 1):
        _require_public_url(settings)


def _require_public_url(settings: Settings) -> None:
    try:
        settings.require_public_url("Single sign-on")
    except SettingError as error:
        raise click.ClickException(str(error)) from None
