"""`plankeeper bank-details`: proposals that wait for approval, for an office with a single account."""

from collections.abc import Awaitable, Callable, Generator
from contextlib import contextmanager
from uuid import UUID

import click

from plankeeper.cli.context import in_transaction, require_plan_manager, system_context, with_database
from plankeeper.cli.parameter_types import UUID_TYPE, plan_manager_option
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import DomainError
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database, Transaction
from plankeeper.resources.bank_details import service, store
from plankeeper.resources.bank_details.schemas import MAX_TEXT, BankDetailsRow
from plankeeper.resources.bank_details.waiting import WaitingProposal, list_waiting

PROPOSAL = click.argument("proposal_id", metavar="PROPOSAL_ID", type=UUID_TYPE)


@click.group(name="bank-details")
def bank_details() -> None:
    """List, approve and reject bank details that wait for approval."""


@bank_details.command(name="list")
@plan_manager_option("The plan manager of the providers and participants.")
def list_(plan_manager_id: UUID) -> None:
    """Print the proposals that wait for approval, those that have waited longest first."""

    async def work(db: Database, settings: Settings) -> list[WaitingProposal]:
        await require_plan_manager(db, plan_manager_id)
        return await list_waiting(db, settings, plan_manager_id)

    for each in with_database(work):
        click.echo(_describe(each))


def _describe(waiting: WaitingProposal) -> str:
    row = waiting.row
    change = f"{f'...{row.current_ending}' if row.current_ending else 'none'} -> ...{row.proposed_ending}"
    phone = row.proposed_phone or "no phone number on record"
    if waiting.phone_changes:
        phone += f" (changed in the last 90 days; before: {waiting.phone_changes[0].before or 'none'})"
    same = f"; the same account as {', '.join(each.text for each in waiting.same)}" if waiting.same else ""
    return (
        f"{row.proposal_id}  {row.proposed_at:%Y-%m-%d %H:%M}  {row.payee_kind} {row.payee_id}  {waiting.name}:"
        f" {change}, proposed by {row.proposed_by}; call {phone}{same}"
    )


@bank_details.command()
@PROPOSAL
@click.option(
    "--called-back",
    "called_back",
    required=True,
    help="How the payee confirmed the account when you called a number that was on record before the proposal.",
)
def approve(proposal_id: UUID, called_back: str) -> None:
    """Make proposed bank details the current ones, after a call to the payee."""
    text = _require_text(called_back, "--called-back")
    after = _decide(proposal_id, "bank-details approve", lambda ctx: service.approve(ctx, proposal_id, text))
    click.echo(f"Approved: payments to {after.payee_kind} {after.payee_id} go to ...{after.current_ending}")


@bank_details.command()
@PROPOSAL
@click.option("--reason", required=True, help="Why the account is wrong.")
def reject(proposal_id: UUID, reason: str) -> None:
    """Reject proposed bank details. The current ones stay."""
    text = _require_text(reason, "--reason")
    after = _decide(proposal_id, "bank-details reject", lambda ctx: service.reject(ctx, proposal_id, text))
    click.echo(f"Rejected: the bank details of {after.payee_kind} {after.payee_id} stay as they were")


def _require_text(text: str, option: str) -> str:
    if not text.strip() or len(text) > MAX_TEXT:
        raise click.BadParameter(f"must have 1 to {MAX_TEXT} characters, and not be blank.", param_hint=option)
    return text.strip()


def _decide(
    proposal_id: UUID, command: str, decide: Callable[[WriteContext], Awaitable[BankDetailsRow]]
) -> BankDetailsRow:
    async def work(tx: Transaction, settings: Settings) -> BankDetailsRow:
        plan_manager_id = await store.find_plan_manager(tx, proposal_id)
        if plan_manager_id is None:
            raise click.ClickException(f"No bank details wait for approval with the proposal {proposal_id}.")
        return await decide(await system_context(tx, settings, plan_manager_id, command))

    with _errors():
        return in_transaction(work)


@contextmanager
def _errors() -> Generator[None]:
    try:
        yield
    except DomainError as error:
        raise click.ClickException(error.detail) from None
