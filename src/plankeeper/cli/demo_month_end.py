"""The month ends of `serve --demo`: the office's own fees of past months, and the statements of the last one.

They are made by the services that the API uses. No statement is mailed.
"""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from uuid import UUID

from stdnum.au import abn

from plankeeper.cli.demo_claims import apply_results, claim
from plankeeper.cli.sample_data import DemoPlanManager, plan_managers
from plankeeper.cli.sample_data.support_items import FEE_ITEM
from plankeeper.core.context import Actor, WriteContext, or_404
from plankeeper.core.dates import Month
from plankeeper.core.fields import Email
from plankeeper.core.setting_parsers import SmtpServer
from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.mail import store as mails
from plankeeper.mail.store import MailResult
from plankeeper.resources.claims import store as claims
from plankeeper.resources.claims.schemas import ClaimBatchListQuery
from plankeeper.resources.fees import service as fees
from plankeeper.resources.fees import takings
from plankeeper.resources.fees.schemas import NewFeeTaking
from plankeeper.resources.invoices import service as invoices
from plankeeper.resources.invoices.schemas import InvoiceBulkItem, InvoiceBulkQuery
from plankeeper.resources.office_settings.parsers import CLAIMS_AND_PAYMENTS, parse_claims_and_payments, to_texts
from plankeeper.resources.office_settings.service import set_claims_and_payments, set_values
from plankeeper.resources.office_settings.store import get as get_settings
from plankeeper.resources.providers import service as providers
from plankeeper.resources.providers.schemas import ProviderUpdate
from plankeeper.resources.statement_runs import queries, service
from plankeeper.resources.statement_runs import store as runs
from plankeeper.resources.statement_runs.mails import OUTCOMES, StatementMail
from plankeeper.resources.statement_runs.schemas import StatementRunListQuery
from plankeeper.resources.statement_runs.worker import make_next

ABN_DIGITS = "405000123"  # without the check digits; any match with a real business is coincidental
MAX_FEES = 80  # of a month, so that few of the office's invoices are its own
FEE_AGE = timedelta(days=4)  # so that lists don't begin with them, and they are claimed in time
FEE_GROUP = 40  # of so many claims of fees, one is rejected, and one is paid in part
# Nothing is sent to it: the outcomes of the mails are recorded instead.
SMTP_SERVER = SmtpServer("localhost", 25, uses_tls=False, uses_starttls=False, username="", password="")
REJECTED_MAIL = 20  # the number of the mail, from 1, that can't be sent


async def add_demo_month_end(db: Database, settings: Settings) -> None:
    """Add fees and statements to the sample data of each plan manager that has claims and no run of statements.

    The fees of the month before last are to be claimed, wait, or can be taken; those before it have been taken. The
    last month's are to be made. Raises DomainError 503 if the server has no storage for documents.
    """
    for manager in plan_managers():
        async with db.transaction() as tx:
            has_claims = await claims.LIST.count_matching(tx, manager.id, ClaimBatchListQuery())
            if not has_claims or await queries.LIST.count_matching(tx, manager.id, StatementRunListQuery()):
                continue
            actor = Actor("system", None, "plankeeper serve --demo")
            await _add(WriteContext(tx, manager.id, settings, actor, notify=False), manager)


async def _add(ctx: WriteContext, manager: DemoPlanManager) -> None:
    last = Month.of(ctx.settings.today).previous
    await _set_office(ctx, manager.name.partition(" (")[0])
    await _add_statements(ctx, last)
    await _add_taken_fees(ctx, last.previous.previous)
    await _add_fees_to_take(ctx, last.previous)


async def _set_office(ctx: WriteContext, name: str) -> None:
    number, email = abn.calc_check_digits(ABN_DIGITS) + ABN_DIGITS, Email("hello@plankeeper.example")
    texts = to_texts(await get_settings(ctx.tx, ctx.plan_manager_id), CLAIMS_AND_PAYMENTS) | {"abn": number}
    await set_claims_and_payments(ctx, parse_claims_and_payments(texts, has_account=True))
    own = await providers.create(ctx, ProviderUpdate(entity_name=name, abn=number, email=email, active=True))
    await set_values(ctx, {"fee_item_number": FEE_ITEM.code, "fee_provider_id": own.id})
    await set_values(ctx, {"statement_email": email, "statement_phone": "03 5550 0100"})


async def _make_fees(ctx: WriteContext, month: Month) -> list[UUID]:
    """Make the fees of a month, received some days ago. Returns the ids of their invoices."""
    made = await fees.create(ctx, month.text, limit=MAX_FEES)
    ids, received_at = [or_404(each.id) for each in made.fees], datetime.now(UTC) - FEE_AGE
    await invoices.save_many(
        ctx, InvoiceBulkQuery(), [InvoiceBulkItem(id=str(each), received_at=received_at) for each in ids]
    )
    return ids


async def _add_taken_fees(ctx: WriteContext, month: Month) -> None:
    ids = await _make_fees(ctx, month)
    if ids:
        await apply_results(ctx, await claim(ctx, ids), FEE_GROUP)
        await takings.take(ctx, NewFeeTaking(all=True))


async def _add_fees_to_take(ctx: WriteContext, month: Month) -> None:
    """Fees that can be taken, that the agency hasn't answered yet, and that aren't claimed yet."""
    ids = await _make_fees(ctx, month)
    first, second = len(ids) * 6 // 10, len(ids) * 8 // 10
    if first and second > first:
        await apply_results(ctx, await claim(ctx, ids[:first]), FEE_GROUP)
        await claim(ctx, ids[first:second])


async def _add_statements(ctx: WriteContext, month: Month) -> None:
    """A run whose mails have been sent, except one. Letters are in its print file."""
    ctx = replace(ctx, settings=replace(ctx.settings, smtp_server=SMTP_SERVER))
    run = await service.start(ctx, month.first)
    while await make_next(ctx, run.id, datetime.now(UTC), renders=False):
        pass
    queued = await mails.take_statements(ctx.tx, ctx.plan_manager_id)
    for number, recipient_id in enumerate(sorted(queued), 1):
        target = await runs.get_mail_target(ctx.tx, ctx.plan_manager_id, recipient_id)
        result = MailResult(datetime.now(UTC), recipient=target.email if target else None)
        if number == REJECTED_MAIL:
            result = MailResult(datetime.now(UTC), error="the recipient was rejected (550)")
        mail = StatementMail(ctx.plan_manager_id, recipient_id)
        await OUTCOMES[StatementMail](ctx.tx, ctx.settings, mail, result)
