"""Bank details of providers and participants: get, propose. People approve them in the console."""

from uuid import UUID

from plankeeper.core.context import ReadContext, WriteContext
from plankeeper.http.routing import PAYMENTS, Router
from plankeeper.resources.bank_details import service
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.parsing import parse_account
from plankeeper.resources.bank_details.schemas import BankDetails, BankDetailsChange


async def _lock(ctx: WriteContext, provider_id: UUID | None = None, participant_id: UUID | None = None) -> None:
    if provider_id:
        await service.lock(ctx, Payee("provider", provider_id))
    elif participant_id:
        await service.lock(ctx, Payee("participant", participant_id))


router = Router("bank_details", lock=_lock)


@router.get("/providers/{provider_id}/bank-details", scope=PAYMENTS, extension=True, has_etag=True)
async def get_of_provider(ctx: ReadContext, provider_id: UUID) -> BankDetails:
    """Get the bank details of a provider, without its account number."""
    return await service.get(ctx.db, ctx.settings, ctx.plan_manager_id, Payee("provider", provider_id))


@router.put("/providers/{provider_id}/bank-details", scope=PAYMENTS, extension=True)
async def propose_of_provider(ctx: WriteContext, provider_id: UUID, change: BankDetailsChange) -> BankDetails:
    """Propose bank details of a provider. They take effect when another person approves them."""
    return await _propose(ctx, Payee("provider", provider_id), change)


@router.get(
    "/participants/{participant_id}/bank-details",
    scope=PAYMENTS,
    extension=True,
    has_etag=True,
    access_log="participant",
)
async def get_of_participant(ctx: ReadContext, participant_id: UUID) -> BankDetails:
    """Get the bank details of a participant, without the account number."""
    return await service.get(ctx.db, ctx.settings, ctx.plan_manager_id, Payee("participant", participant_id))


@router.put("/participants/{participant_id}/bank-details", scope=PAYMENTS, extension=True)
async def propose_of_participant(ctx: WriteContext, participant_id: UUID, change: BankDetailsChange) -> BankDetails:
    """Propose bank details of a participant. They take effect when another person approves them."""
    return await _propose(ctx, Payee("participant", participant_id), change)


async def _propose(ctx: WriteContext, payee: Payee, change: BankDetailsChange) -> BankDetails:
    account = parse_account(change.bsb, change.account_number, change.account_name)
    return await service.propose(ctx, payee, account, change.estate_payee)
