"""Parent records: whether they exist, and locks that prevent their deletion.

A part of a participant uses these functions instead of the participant's package, which imports its parts.
"""

from collections import Counter
from collections.abc import Sequence
from typing import Any
from uuid import UUID

from msgspec import UNSET, Struct

from plankeeper.core.fields import unset_to_none
from plankeeper.core.formatting import comparable_number
from plankeeper.database.client import Executor, Transaction
from plankeeper.database.number_keys import participant_number_key
from plankeeper.resources.upsert import ImportRow, InvalidRowsError, RowError


class Parent(Struct):
    """A participant, as its parts see it."""

    id: UUID
    email: str | None
    participant_number: str | None


SELECT_PARTICIPANT_FOR_SHARE = """
    select id, email, participant_number from participants where plan_manager_id = $1 and id = $2 for share
"""


async def select_participant_for_share(tx: Transaction, plan_manager_id: UUID, participant_id: UUID) -> Parent | None:
    """A participant that cannot be deleted until the transaction ends."""
    return await tx.one_or_none(Parent, SELECT_PARTICIPANT_FOR_SHARE, plan_manager_id, participant_id)


PARTICIPANT_EXISTS = "select exists (select from participants where plan_manager_id = $1 and id = $2)"


async def participant_exists(db: Executor, plan_manager_id: UUID, participant_id: UUID) -> bool:
    return await db.one(bool, PARTICIPANT_EXISTS, plan_manager_id, participant_id)


LIST_PARTICIPANTS_BY_NUMBERS = f"""
    select id, email, {participant_number_key()} as participant_number
    from participants
    where plan_manager_id = $1 and {participant_number_key()} = any ($2)
"""


async def list_participants_by_numbers(db: Executor, plan_manager_id: UUID, numbers: Sequence[str]) -> list[Parent]:
    """All participants with one of the numbers, as `number_of` writes them; several may share a number."""
    return await db.rows(Parent, LIST_PARTICIPANTS_BY_NUMBERS, plan_manager_id, numbers)


def number_of(row: ImportRow[Any]) -> str | None:
    """The number of a row's participant, the same for each way to write it."""
    number = unset_to_none(row.values.participant_number)
    return None if number is None else comparable_number(number, 9)


async def resolve_participants(tx: Transaction, plan_manager_id: UUID, rows: Sequence[ImportRow[Any]]) -> list[UUID]:
    """The participant's id of each row. Raises InvalidRowsError for an unknown number, or one that is not unique."""
    numbers = {number for row in rows if row.values.participant_id is UNSET and (number := number_of(row))}
    participants = await list_participants_by_numbers(tx, plan_manager_id, sorted(numbers))
    ids = {participant.participant_number: participant.id for participant in participants}
    counts = Counter(participant.participant_number for participant in participants)
    errors: list[RowError] = []
    participant_ids: list[UUID] = []
    for row in rows:
        number = number_of(row)
        if row.values.participant_id is not UNSET:
            participant_ids.append(UUID(row.values.participant_id))
        elif number in ids and counts[number] == 1:
            participant_ids.append(ids[number])
        elif number is None:
            errors.append(RowError(row.line_number, "participant_id", "or participant_number is required"))
        else:
            message = (
                "is shared by two participants; use participant_id"
                if counts[number]
                else "is not the number of a participant"
            )
            errors.append(RowError(row.line_number, "participant_number", message))
    if errors:
        raise InvalidRowsError(errors)
    return participant_ids
