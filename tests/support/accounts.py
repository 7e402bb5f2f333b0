"""An account with a role for its own plan manager, with the operations of tests."""

import json
from collections.abc import Callable, Coroutine
from typing import Any, NamedTuple
from uuid import UUID

from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.access.accounts import members, sessions
from plankeeper.access.accounts.schemas import LoginResult, Session
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, Actor, WriteContext
from plankeeper.database.client import Transaction
from support.logins import FailedLogin, login_outcome
from support.server import RunningServer

PASSWORD = "nine violet umbrellas"


class RecordedEvent(NamedTuple):
    """An event as a test looks at it."""

    type: str
    actor: str | None
    data: dict[str, Any] | None
    previous: dict[str, Any] | None


class _EventRow(Struct):
    type: str
    actor_kind: str
    actor_id: str | None
    data: str | None
    previous: str | None


class AccountDriver:
    """An account, and the ways in."""

    def __init__(self, server: RunningServer, plan_manager_id: UUID, role: str = "owner", name: str = "Ada") -> None:
        self.server, self.plan_manager_id = server, plan_manager_id
        self.email = f"{uuid7().hex}@example.com"
        self.id = self.write(lambda ctx: members.create(ctx, self.email, name, role, PASSWORD))

    def write(self, operation: Callable[[WriteContext], Coroutine[Any, Any, Any]], *, as_self: bool = False) -> Any:
        actor = Actor("user", str(self.id), "Ada") if as_self else SYSTEM

        async def run() -> Any:
            async with self.server.db.transaction() as tx:
                return await operation(WriteContext(tx, self.plan_manager_id, self.server.settings, actor))

        return self.server.run(run())

    def sign_in(
        self, password: str = PASSWORD, email: str | None = None, *, network: str = "192.0.2.7", device: str = ""
    ) -> LoginResult | FailedLogin:
        work = sessions.sign_in(
            self.server.db, self.server.settings, email or self.email, password, network, "Browser 1", device
        )
        return self.server.run(login_outcome(work))

    def token(self) -> str:
        found = self.sign_in()
        assert isinstance(found, LoginResult), found
        return found.token

    def verify_two_factor(self, token: str, code: str) -> LoginResult | FailedLogin:
        work = sessions.verify_two_factor(self.server.db, self.server.settings, token, code)
        return self.server.run(login_outcome(work))

    def session(self, token: str) -> Session | None:
        return self.server.run(sessions.verify_session(self.server.db, token))

    def run_as_session(self, operation: Callable[[Transaction, Session], Coroutine[Any, Any, Any]], token: str) -> Any:
        """Run an action of the signed-in account in a transaction."""

        async def run() -> Any:
            session = await sessions.verify_session(self.server.db, token)
            assert session
            async with self.server.db.transaction() as tx:
                return await operation(tx, session)

        return self.server.run(run())

    def clear_login_delay(self) -> None:
        statement = "update account_failures set locked_until = failed_at where email_hash = $1"
        self.server.run(self.server.db.execute(statement, hash_token(self.email.lower())))


def recorded_account_events(server: RunningServer, plan_manager_id: UUID) -> list[RecordedEvent]:
    """The events of accounts of a plan manager, in order; an actor is its id, or else its kind."""
    statement = """
        select type, actor_kind, actor_id, data::text, previous::text from events
        where plan_manager_id = $1 and type like 'account.%' order by created_at, id
    """
    rows = server.run(server.db.rows(_EventRow, statement, plan_manager_id))
    return [
        RecordedEvent(
            each.type,
            each.actor_id or each.actor_kind,
            *(text and json.loads(text) for text in (each.data, each.previous)),
        )
        for each in rows
    ]
