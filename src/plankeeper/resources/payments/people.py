"""Who acts on a payment run, and whether another person must."""

from uuid import UUID

from plankeeper.access.api_keys.service import responsible_account
from plankeeper.core.context import WriteContext
from plankeeper.core.errors import DomainError, ErrorResource
from plankeeper.database.client import Executor
from plankeeper.resources.office_settings.schemas import OfficeSettings
from plankeeper.resources.payments import store
from plankeeper.resources.payments.schemas import StoredRun


async def require_second_person(ctx: WriteContext, settings: OfficeSettings, run: StoredRun) -> None:
    """Raise DomainError `second_person_required` if the office needs two people, and the actor is the first one."""
    if not settings.needs_second_person:
        return
    if await responsible_account(ctx) in _first_people(run):
        raise DomainError("second_person_required", resource=ErrorResource("payment_run", str(run.id)))


def _first_people(run: StoredRun) -> set[UUID | None]:
    """The accounts that have made a run or downloaded its file first; null for the operator."""
    return {run.created_by_account} | ({run.downloaded_by_account} if run.downloaded_at else set[UUID | None]())


async def list_first_people(db: Executor, plan_manager_id: UUID, settings: OfficeSettings, run_id: UUID) -> set[UUID]:
    """The accounts that can't mark a run as paid because the office needs another person for it."""
    if not settings.needs_second_person:
        return set()
    return set(await store.list_first_people(db, plan_manager_id, run_id))
