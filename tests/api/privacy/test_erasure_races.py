"""An erasure beside a transaction that deletes, restores or imports the same person: nothing of the person is left."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import asynccontextmanager
from typing import Any
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.encryption.bank_accounts import BankAccount
from plankeeper.core.errors import NotFound
from plankeeper.privacy import service
from plankeeper.resources.bank_details import service as bank_details
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.store import lock_payee
from plankeeper.resources.participants import service as participant_service
from plankeeper.resources.participants.schemas import ParticipantImport
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.trash import service as trash_service
from plankeeper.resources.upsert import ImportRow
from support.factories import SeededPlanManager
from support.locks import wait_for_locks
from support.stored_rows import places_of

LOCK_MANAGER = "select from account_managers where plan_manager_id = $1 and id = $2 for update"


@asynccontextmanager
async def context(world: SeededPlanManager) -> AsyncGenerator[WriteContext]:
    async with world.server.db.transaction() as tx:
        yield WriteContext(tx, world.plan_manager_id, world.server.settings, SYSTEM)


async def delete_to_trash(world: SeededPlanManager, id_: UUID) -> UUID:
    async with context(world) as ctx:
        return (await trash_service.delete(ctx, "participant", id_)).id


async def erase(world: SeededPlanManager, id_: UUID) -> None:
    async with context(world) as ctx:
        await service.erase(ctx, id_, search_events=False)


async def restore(world: SeededPlanManager, _: UUID, entry_id: UUID) -> None:
    async with context(world) as ctx:
        await trash_service.restore(ctx, entry_id)


async def create_again(world: SeededPlanManager, id_: UUID, _: UUID) -> None:
    values = ParticipantImport(
        id=str(id_),
        first_name=world.texts["participant.first_name"],
        account_manager_id=world.ids["account_manager_id"],
    )
    async with context(world) as ctx:
        await RESOURCES["participants"].upsert(ctx, [ImportRow(1, values)])


@pytest.mark.parametrize("write", [restore, create_again])
def test_a_person_that_is_restored_or_imported_is_erased_afterwards(
    small_world: SeededPlanManager, write: Callable[..., Any]
) -> None:
    """The write waits for its account manager when the erasure begins."""
    id_, db = UUID(small_world.ids["participant_id"]), small_world.server.db
    manager = UUID(small_world.ids["account_manager_id"])
    name = small_world.texts["participant.first_name"]
    small_world.client.put(f"/participants/{id_}", {"account_manager_id": str(manager)}).raise_for_status()

    async def interleave() -> list[BaseException | None]:
        entry_id = await delete_to_trash(small_world, id_)
        async with db.transaction() as tx:
            await tx.execute(LOCK_MANAGER, small_world.plan_manager_id, manager)
            writing = asyncio.create_task(write(small_world, id_, entry_id))
            await wait_for_locks(db)
            erasing = asyncio.create_task(erase(small_world, id_))
            await wait_for_locks(db, count=2)
        return await asyncio.gather(writing, erasing, return_exceptions=True)

    assert small_world.server.run(interleave()) == [None, None]
    assert places_of(small_world, name) == set()


def test_a_person_is_deleted_or_erased_but_not_kept_in_the_trash(small_world: SeededPlanManager) -> None:
    id_, db = UUID(small_world.ids["participant_id"]), small_world.server.db

    async def interleave() -> list[BaseException | None]:
        async with db.transaction() as tx:
            await tx.execute(participant_lock(), small_world.plan_manager_id, id_)
            deleting = asyncio.create_task(delete_to_trash(small_world, id_))
            await wait_for_locks(db)
            erasing = asyncio.create_task(erase(small_world, id_))
            await wait_for_locks(db, count=2)
        return await asyncio.gather(deleting, erasing, return_exceptions=True)

    deleted, erased = small_world.server.run(interleave())
    assert (isinstance(deleted, UUID), erased) == (True, None)
    assert places_of(small_world, small_world.texts["participant.first_name"]) == set()


def participant_lock() -> str:
    return "select from participants where plan_manager_id = $1 and id = $2 for update"


def test_a_permanent_delete_and_an_erasure_follow_each_other(small_world: SeededPlanManager) -> None:
    id_, db = UUID(small_world.ids["participant_id"]), small_world.server.db

    async def delete() -> None:
        async with context(small_world) as ctx:
            await participant_service.delete(ctx, id_)

    async def interleave() -> list[BaseException | None]:
        async with db.transaction() as tx:
            await tx.execute(participant_lock(), small_world.plan_manager_id, id_)
            erasing = asyncio.create_task(erase(small_world, id_))
            await wait_for_locks(db)
            deleting = asyncio.create_task(delete())
            await wait_for_locks(db, count=2)
        return await asyncio.gather(erasing, deleting, return_exceptions=True)

    erased, deleted = small_world.server.run(interleave())
    assert (erased, type(deleted)) == (None, NotFound)
    assert places_of(small_world, small_world.texts["participant.first_name"]) == set()


def test_an_erasure_waits_for_a_write_of_an_invoice_before_it_writes_its_lines(small_world: SeededPlanManager) -> None:
    """As a background check, a claim batch and a payment run write: the invoice is locked, then its lines."""
    id_, db = UUID(small_world.ids["participant_id"]), small_world.server.db
    lock = "select from invoices where plan_manager_id = $1 and participant_id = $2 for update"
    write_lines = """
        update invoice_lines set description = description || ' ' || $3
        where plan_manager_id = $1 and invoice_id in (select id from invoices where participant_id = $2)
    """
    name = small_world.texts["participant.first_name"]

    async def interleave() -> None:
        async with db.transaction() as tx:
            await tx.execute(lock, small_world.plan_manager_id, id_)
            erasing = asyncio.create_task(erase(small_world, id_))
            await wait_for_locks(db)
            await tx.execute(write_lines, small_world.plan_manager_id, id_, name)
        await erasing

    small_world.server.run(interleave())
    assert places_of(small_world, name) == set()


def test_an_erasure_waits_for_a_proposal_of_bank_details(small_world: SeededPlanManager) -> None:
    """A proposal locks the participant before the bank details."""
    id_, db = UUID(small_world.ids["participant_id"]), small_world.server.db
    payee, account = Payee("participant", id_), BankAccount("999001", "12345678", "Account")

    async def propose() -> None:
        async with context(small_world) as ctx:
            await bank_details.propose(ctx, payee, account)

    async def interleave() -> None:
        await propose()
        async with context(small_world) as ctx:
            await lock_payee(ctx.tx, ctx.plan_manager_id, payee)
            erasing = asyncio.create_task(erase(small_world, id_))
            await wait_for_locks(db)
            await bank_details.lock(ctx, payee)
        await erasing

    small_world.server.run(interleave())
    assert places_of(small_world, small_world.texts["participant.first_name"]) == set()
