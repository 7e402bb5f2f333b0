"""Searches of limited viewers: the same statements, with a condition for the participants that they see."""

from typing import LiteralString, TypeVar
from uuid import UUID

from plankeeper.database.client import Executor
from plankeeper.resources.search import store
from plankeeper.resources.viewer_limits import OF_LIMIT

T = TypeVar("T")

_FIRST: LiteralString = "where plan_manager_id = $1"  # of a statement: its condition on the plan manager
_IS_INSIDE: LiteralString = "account_manager_id = "


def _limit(statement: LiteralString, number: LiteralString) -> LiteralString:
    """A statement about participants with the condition; its last parameter, `number`, is the account manager."""
    return statement.replace(_FIRST, f"{_FIRST} and {_IS_INSIDE}{number}::uuid", 1)


def _limit_records(statement: LiteralString, number: LiteralString) -> LiteralString:
    """The same for a statement about records that belong to a participant."""
    return statement.replace(_FIRST, f"{_FIRST} and {OF_LIMIT.format(number)}", 1)


def _limit_notes(statement: LiteralString, number: LiteralString) -> LiteralString:
    """The same for notes on a participant or on one of their invoices. Those on providers can be about anybody."""
    of_participant: LiteralString = f"""resource_kind = 'participant' and resource_id in (
            select limited.id from participants limited
            where limited.plan_manager_id = $1 and limited.account_manager_id = {number}::uuid
        )"""
    of_invoice: LiteralString = f"""resource_kind = 'invoice' and resource_id in (
            select inside.id from invoices inside
            where inside.plan_manager_id = $1 and inside.{OF_LIMIT.format(number)}
        )"""
    return statement.replace(_FIRST, f"{_FIRST} and ({of_participant} or {of_invoice})", 1)


# Providers aren't about people: their searches have no limit.
LIMITED: dict[str, LiteralString] = {
    store.PARTICIPANTS_BY_WORDS: _limit(store.PARTICIPANTS_BY_WORDS, "$6"),
    store.PARTICIPANTS_BY_KEYS: _limit(store.PARTICIPANTS_BY_KEYS, "$5"),
    store.PARTICIPANTS_BY_BOTH: _limit(store.PARTICIPANTS_BY_BOTH, "$6"),
    store.PARTICIPANTS_BY_EMAIL: _limit(store.PARTICIPANTS_BY_EMAIL, "$4"),
    store.PARTICIPANTS_BY_BIRTH: _limit(store.PARTICIPANTS_BY_BIRTH, "$4"),
    store.PARTICIPANTS_BY_ADDRESS: _limit(store.PARTICIPANTS_BY_ADDRESS, "$6"),
    store.MEMBERS_BY_WORDS: _limit_records(store.MEMBERS_BY_WORDS, "$6"),
    store.MEMBERS_BY_KEYS: _limit_records(store.MEMBERS_BY_KEYS, "$5"),
    store.MEMBERS_BY_BOTH: _limit_records(store.MEMBERS_BY_BOTH, "$6"),
    store.MEMBERS_BY_EMAIL: _limit_records(store.MEMBERS_BY_EMAIL, "$4"),
    store.MEMBERS_BY_USER: _limit_records(store.MEMBERS_BY_USER, "$4"),
    store.INVOICES_BY_NUMBER: _limit_records(store.INVOICES_BY_NUMBER, "$4"),
    store.INVOICES_BY_TOTAL: _limit_records(store.INVOICES_BY_TOTAL, "$4"),
    store.NOTES_BY_WORDS: _limit_notes(store.NOTES_BY_WORDS, "$6"),
    store.NOTES_BY_KEYS: _limit_notes(store.NOTES_BY_KEYS, "$5"),
}
UNLIMITED = {
    store.PROVIDERS_BY_WORDS,
    store.PROVIDERS_BY_KEYS,
    store.PROVIDERS_BY_BOTH,
    store.PROVIDERS_BY_EMAIL,
}


class LimitedSearch(Executor):
    """Runs the statements of the search for a limited viewer. Another statement about records raises KeyError."""

    __slots__ = ("_account_manager_id", "_executor")

    def __init__(self, executor: Executor, account_manager_id: UUID) -> None:
        self._executor, self._account_manager_id = executor, account_manager_id

    async def rows(
        self, row_type: type[T], statement: LiteralString, *values: object, custom_plan: bool = False
    ) -> list[T]:
        if statement in UNLIMITED:
            return await self._executor.rows(row_type, statement, *values, custom_plan=custom_plan)
        limited = (*values, self._account_manager_id)
        return await self._executor.rows(row_type, LIMITED[statement], *limited, custom_plan=custom_plan)

    async def one(self, row_type: type[T], statement: LiteralString, *values: object) -> T:
        """The folding of the text, which reads no records."""
        if statement != store.FOLD:
            raise KeyError(statement)
        return await self._executor.one(row_type, statement, *values)


def limit_search(db: Executor, account_manager_id: UUID | None) -> Executor:
    """The executor for a search; an account without a limit searches all records."""
    return LimitedSearch(db, account_manager_id) if account_manager_id else db
