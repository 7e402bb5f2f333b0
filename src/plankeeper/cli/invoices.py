"""`plankeeper invoices`: the operator's part in the office's work with invoices."""

from uuid import UUID

import click

from plankeeper.cli.context import require_plan_manager, system_context, with_database
from plankeeper.cli.parameter_types import UUID_TYPE
from plankeeper.core.errors import DomainError
from plankeeper.core.formatting import format_money
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.resources.claims import line_claims
from plankeeper.resources.claims.result_store import FoundLine, find_lines


@click.group()
def invoices() -> None:
    """Confirm the results of imported invoices."""


@invoices.command()
@click.argument("line_id", type=UUID_TYPE)
@click.option("--plan-manager", "plan_manager_id", type=UUID_TYPE, help="The invoice's plan manager.")
def confirm_result(line_id: UUID, plan_manager_id: UUID | None) -> None:
    """Confirm what the agency has paid for a line that was imported as ready for payment.

    Payment runs leave such a line out until somebody else than its importer has confirmed the amount.
    """

    async def work(db: Database, settings: Settings) -> FoundLine:
        if plan_manager_id:
            await require_plan_manager(db, plan_manager_id)
        found = await find_lines(db, line_id, plan_manager_id)
        if len(found) != 1:
            reason = "No invoice has" if not found else "Several plan managers or invoices have"
            hint = " Give the plan manager with --plan-manager." if found and not plan_manager_id else ""
            raise click.ClickException(f"{reason} a line with the id {line_id}.{hint}")
        async with db.transaction() as tx:
            ctx = await system_context(tx, settings, found[0].plan_manager_id, "invoices confirm-result")
            await line_claims.confirm_result(ctx, found[0].invoice_id, line_id)
        return found[0]

    try:
        found = with_database(work)
    except DomainError as error:
        raise click.ClickException(error.detail) from None
    click.echo(f"Confirmed: {line_id}, {format_money(found.paid_amount or 0)}")
