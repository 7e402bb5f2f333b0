"""`plankeeper plan-managers`: the organisations that own all records."""

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar
from uuid import UUID

import click
from uuid_utils.compat import uuid7

from plankeeper.access.plan_managers import store
from plankeeper.cli.context import in_transaction, system_context, with_database, write
from plankeeper.cli.parameter_types import NAME, UUID_TYPE
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import ValidationError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Transaction
from plankeeper.events.recorder import record_event
from plankeeper.resources.office_settings import store as office_settings
from plankeeper.resources.office_settings.parsers import (
    CLAIMS_AND_PAYMENTS,
    bank_previews,
    parse_claims_and_payments,
    to_texts,
)
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.office_settings.service import set_claims_and_payments

F = TypeVar("F", bound=Callable[..., Any])


@click.group()
def plan_managers() -> None:
    """Create, change and list plan managers."""


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


def _setting_options(command: F) -> F:
    for name, setting, help_text in reversed(_TEXT_OPTIONS):
        command = click.option(f"--{name}", setting, metavar="TEXT", help=help_text)(command)
    for name, setting, help_text in reversed(_FLAG_OPTIONS):
        command = click.option(f"--{name}/--no-{name}", setting, default=None, help=help_text)(command)
    return command


_TEXT_OPTIONS = (
    ("registration-number", "registration_number", "The registration number in claim files: digits."),
    ("abn", "abn", "The plan manager's own ABN."),
    ("prices-include-gst", "prices_include_gst", "Whether unit prices in claim files include GST: yes, no or empty."),
    ("result-tolerance", "result_tolerance", "The difference in dollars up to which a claim is paid in full."),
    ("days-until-claim-is-late", "days_until_claim_is_late", "Business days without a result."),
    ("bank-letters", "bank_letters", "The three letters of the bank."),
    ("bsb", "bank_bsb", "The BSB of the office's account. An empty text removes the account."),
    ("account-number", "bank_account_number", "The number of the office's account."),
    ("account-name", "bank_account_name", "The name of the office's account."),
    ("direct-entry-user-id", "direct_entry_user_id", "The number for direct entry that the bank gave."),
    ("direct-entry-user-name", "direct_entry_user_name", "The office's name in the bank's files."),
    ("direct-entry-description", "direct_entry_description", "What the payments are, in the bank's files."),
    ("remitter", "remitter", "The name that payees see on their statements."),
    ("group-payments-by", "group_payments_by", "payee or invoice."),
    ("max-payments-in-file", "max_payments_in_file", "The most payments of a run."),
)
_FLAG_OPTIONS = (
    ("receipts-first", "needs_receipts", "Whether payment runs wait for the money of the agency."),
    ("balancing-record", "has_balancing_record", "Whether the bank's files end with a debit of the office's account."),
    ("second-person", "needs_second_person", "Whether somebody else than the maker of a run marks it as paid."),
)


@plan_managers.command()
@click.argument("plan_manager_id", metavar="ID", type=UUID_TYPE)
@_setting_options
def update(plan_manager_id: UUID, **options: str | bool | None) -> None:
    """Change the data for claims and payments of a plan manager. An empty text clears a value."""
    given = {name: _text(value) for name, value in options.items() if value is not None}

    async def work(ctx: WriteContext) -> tuple[bool, OfficeSettings]:
        before = await office_settings.get(ctx.tx, ctx.plan_manager_id)
        texts = to_texts(before, CLAIMS_AND_PAYMENTS) | given
        parsed = parse_claims_and_payments(texts, has_account=before.bank_account_ending is not None)
        is_changed = await set_claims_and_payments(ctx, parsed)
        return is_changed, await office_settings.get(ctx.tx, ctx.plan_manager_id)

    try:
        is_changed, after = write(plan_manager_id, "plan-managers update", work)
    except ValidationError as error:
        wrong = [f"--{_OPTION_NAMES[each.field]} {each.message}" for each in error.errors]
        raise click.ClickException(f"{'; '.join(wrong)}. Nothing was changed.") from None
    click.echo("Changed." if is_changed else "Nothing was changed.")
    for name, each in bank_previews(after).items():
        lost = f" Left out: {each.lost}" if each.lost else ""
        click.echo(f"The bank's file has {each.text!r} for --{_OPTION_NAMES[name]}.{lost}")


_OPTION_NAMES = {setting: name for name, setting, _ in (*_TEXT_OPTIONS, *_FLAG_OPTIONS)}


def _text(value: str | bool) -> str:
    return value if isinstance(value, str) else "true" if value else ""


@plan_managers.command(name="list")
def list_() -> None:
    """Print one line per plan manager: id, creation date, name."""
    for each in with_database(lambda db, _: store.list_all(db)):
        click.echo(f"{each.id}  {each.created_at:%Y-%m-%d}  {each.name}")
