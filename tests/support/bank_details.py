"""An office whose people propose and approve bank details."""

from collections.abc import Callable, Coroutine
from copy import copy
from typing import Any
from uuid import UUID

from msgspec import Struct

from plankeeper.access.api_keys import service as api_keys
from plankeeper.core.context import SYSTEM, Actor, WriteContext
from plankeeper.core.errors import DomainError
from plankeeper.resources.bank_details import service
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.bank_details.parsing import parse_account
from support.client import Client
from support.console import Account, create_account
from support.server import RunningServer

ACCOUNT = {"bsb": "062-000", "account_number": "12345678", "account_name": "Amber Physio"}
OTHER_ACCOUNT = {"bsb": "633000", "account_number": "87654321", "account_name": "Brightwater Physio"}
CALLED_BACK = "Called Sam on the number on record"


class _ProposalId(Struct):
    id: UUID | None


class Office:
    """A plan manager with a provider."""

    def __init__(self, server: RunningServer, plan_manager_id: UUID, client: Client) -> None:
        self.server, self.plan_manager_id, self.client = server, plan_manager_id, client
        provider = {"entity_name": "Amber Physio", "primary_phone_number": "02 5550 1234"}
        self.provider_id: str = client.create("/providers", provider)["id"]
        self.payee = Payee("provider", UUID(self.provider_id))
        self.path = f"/providers/{self.provider_id}/bank-details"

    def account(self, name: str = "Robin Hale", role: str = "owner") -> tuple[Account, Actor]:
        account = self.server.run(create_account(self.server, self.plan_manager_id, role, name))
        return account, Actor("user", str(account.account_id), name)

    def actor(self, name: str = "Robin Hale") -> Actor:
        """A new owner."""
        return self.account(name)[1]

    def write(self, actor: Actor, operation: Callable[[WriteContext], Coroutine[Any, Any, Any]]) -> Any:
        async def run() -> Any:
            async with self.server.db.transaction() as tx:
                return await operation(WriteContext(tx, self.plan_manager_id, self.server.settings, actor))

        return self.server.run(run())

    def key_of(self, actor: Actor) -> Client:
        """A client with a key that this person has made."""
        secret = self.write(
            actor, lambda ctx: api_keys.create(ctx, "integration", [self.plan_manager_id], ["payments"], None)
        )
        return self.with_key(secret)

    def with_key(self, secret: str) -> Client:
        """A client with another key, on the same connections."""
        client = copy(self.client)
        client.key = secret
        return client

    def propose(self, actor: Actor, account: dict[str, str] = ACCOUNT, payee: Payee | None = None) -> UUID:
        """Propose bank details in the console, and return the proposal's id."""
        parsed = parse_account(**account)
        self.write(actor, lambda ctx: service.propose(ctx, payee or self.payee, parsed))
        return self.proposal_id(payee)

    def proposal_id(self, payee: Payee | None = None) -> UUID:
        statement = "select proposal_id from bank_details where plan_manager_id = $1 and payee_id = $2"
        row = self.server.run(
            self.server.db.one(_ProposalId, statement, self.plan_manager_id, (payee or self.payee).id)
        )
        assert row.id
        return row.id

    def approve(self, actor: Actor, proposal_id: UUID) -> str:
        """The code of the error, or `approved`."""
        try:
            self.write(actor, lambda ctx: service.approve(ctx, proposal_id, CALLED_BACK))
        except DomainError as error:
            return error.code
        return "approved"

    def reject(self, actor: Actor, proposal_id: UUID) -> None:
        self.write(actor, lambda ctx: service.reject(ctx, proposal_id, "Nobody there knows of it"))

    def approve_by_command(self, proposal_id: UUID) -> str:
        return self.approve(SYSTEM, proposal_id)

    def endings(self) -> tuple[str | None, str | None]:
        """Those of the current and the proposed account."""
        details = self.client.get(self.path).json()
        return tuple(each and each["account_ending"] for each in (details["current"], details["proposed"]))  # type: ignore[return-value]
