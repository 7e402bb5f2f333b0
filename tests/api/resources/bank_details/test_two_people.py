"""Attacks on bank details by one person. The guide "Bank details" has the same table."""

import asyncio
from collections.abc import Callable
from uuid import UUID

import pytest

from plankeeper.core.context import SYSTEM
from plankeeper.core.errors import DomainError
from plankeeper.resources.bank_details import service
from support.bank_details import ACCOUNT, CALLED_BACK, OTHER_ACCOUNT, Office
from support.client import Client

NOTHING = (None, None)


def test_one_person_cannot_approve_what_they_have_proposed(office: Office) -> None:
    person = office.actor()
    proposal = office.propose(person)
    assert office.approve(person, proposal) == "invalid_transition"
    assert office.endings() == (None, "678")
    assert office.approve(office.actor("Sam Ito"), proposal) == "approved"
    assert office.endings() == ("678", None)


def test_a_key_counts_as_the_person_who_made_it(office: Office) -> None:
    person = office.actor()
    key = office.key_of(person)
    assert key.put(office.path, ACCOUNT).status_code == 200
    proposal = office.proposal_id()
    assert office.approve(person, proposal) == "invalid_transition"
    assert office.approve(office.actor("Sam Ito"), proposal) == "approved"


def test_a_rotation_by_command_does_not_hide_who_made_a_key(office: Office) -> None:
    from datetime import timedelta

    from plankeeper.access.api_keys import service as api_keys
    from plankeeper.access.api_keys import store
    from plankeeper.access.tokens import hash_token

    person = office.actor()
    old = office.key_of(person)

    async def rotate(ctx: object) -> str:
        key = await store.get_by_hash(ctx.tx, hash_token(old.key))  # type: ignore[attr-defined]
        assert key
        return await api_keys.rotate(ctx, key, timedelta(), None)  # type: ignore[arg-type]

    new = office.with_key(office.write(SYSTEM, rotate))
    assert new.put(office.path, ACCOUNT).status_code == 200
    assert office.approve(person, office.proposal_id()) == "invalid_transition"


def test_a_key_that_was_made_by_command_counts_as_the_operator(office: Office) -> None:
    assert office.client.put(office.path, ACCOUNT).status_code == 200
    assert office.approve(office.actor(), office.proposal_id()) == "approved"
    # With two people who can approve, the operator doesn't approve what its own key has proposed.
    office.actor("Sam Ito")
    assert office.client.put(office.path, OTHER_ACCOUNT).status_code == 200
    assert office.approve_by_command(office.proposal_id()) == "invalid_transition"


def test_an_office_with_a_single_account_approves_by_command(office: Office) -> None:
    person = office.actor()
    proposal = office.propose(person)
    assert office.approve(person, proposal) == "invalid_transition"
    assert office.approve_by_command(proposal) == "approved"
    assert office.client.put(office.path, OTHER_ACCOUNT).status_code == 200
    assert office.approve_by_command(office.proposal_id()) == "approved"
    assert office.endings() == ("321", None)


def test_two_people_who_approve_at_once_do_not_both_succeed(office: Office) -> None:
    proposal, people = office.propose(office.actor()), [office.actor(name) for name in ("Sam Ito", "Kim Lu")]

    async def approve(actor: object) -> str:
        from plankeeper.core.context import WriteContext

        try:
            async with office.server.db.transaction() as tx:
                ctx = WriteContext(tx, office.plan_manager_id, office.server.settings, actor)  # type: ignore[arg-type]
                await service.approve(ctx, proposal, CALLED_BACK)
        except DomainError as error:
            return error.code
        return "approved"

    async def race() -> list[str]:
        return await asyncio.gather(*(approve(each) for each in people))

    assert sorted(office.server.run(race())) == ["approved", "invalid_transition"]


def test_an_approval_of_a_replaced_proposal_fails(office: Office) -> None:
    person, other = office.actor(), office.actor("Sam Ito")
    seen = office.propose(person)
    replaced = office.propose(person, OTHER_ACCOUNT)
    assert office.approve(other, seen) == "invalid_transition"
    assert office.endings() == (None, "321")
    assert office.approve(other, replaced) == "approved"
    assert office.approve(other, replaced) == "invalid_transition"


def test_sending_the_waiting_proposal_again_changes_nothing(office: Office) -> None:
    person, other = office.actor(), office.actor("Sam Ito")
    proposal = office.propose(person)
    assert office.propose(other) == proposal
    assert office.approve(person, proposal) == "invalid_transition"


def test_a_proposal_of_another_plan_manager_is_not_found(
    office: Office, new_plan_manager: Callable[[], UUID], new_client: Callable[..., Client]
) -> None:
    owner_of_two = new_plan_manager()
    other = Office(office.server, owner_of_two, new_client(owner_of_two, scopes=("read", "write", "payments")))
    proposal = office.propose(office.actor())
    assert other.approve(other.actor(), proposal) == "not_found"
    assert office.endings() == (None, "678")


def test_a_key_cannot_approve(office: Office) -> None:
    from plankeeper.core.context import Actor

    proposal = office.propose(office.actor())
    assert office.approve(Actor("api_key", str(UUID(int=1)), "key"), proposal) == "insufficient_scope"


@pytest.mark.parametrize("scopes", [("read", "write"), ("claims",)])
def test_other_scopes_do_not_reach_bank_details(
    office: Office, new_client: Callable[..., Client], scopes: tuple[str, ...]
) -> None:
    client = new_client(office.plan_manager_id, scopes=scopes)
    assert client.get(office.path).status_code == 403
    assert client.put(office.path, ACCOUNT).status_code == 403
    assert office.endings() == NOTHING
