"""Reimbursements of a participant who has died: an owner approves who gets the money for the estate."""

from collections.abc import Callable
from typing import Any
from uuid import UUID

import pytest

from plankeeper.resources.bank_details import service
from plankeeper.resources.bank_details.parsing import parse_account
from support.bank_details import Office
from support.client import Client
from support.payments import PROCESS_DATE, PayingOffice
from support.server import RunningServer

ACCOUNT = {"bsb": "999-003", "account_number": "555000", "account_name": "Executors of Kim Late"}
PAYEE = "Estate of Kim Late"


class Estate:
    """A participant who has died, and a reimbursement of 25 dollars for which the agency has paid."""

    def __init__(self, paying: PayingOffice, people: Office) -> None:
        self.paying, self.people = paying, people
        self.participant = paying.participant_with("Kim", "Late", deceased_on="2026-11-01")
        self.invoice = paying.invoice("25.00", participant_id=self.participant, is_reimbursement=True)
        self.path = f"/participants/{self.participant}/bank-details"

    def propose(self, client: Client, **more: Any) -> Any:
        return client.put(self.path, ACCOUNT | {"estate_payee": PAYEE} | more)

    def approve(self, role: str) -> str:
        """The code of the error, or `approved`."""
        actor = self.people.account("Alex Moon", role)[1]
        return self.people.approve(actor, self.people.proposal_id(self.payee))

    @property
    def payee(self) -> Any:
        return self.people.payee._replace(kind="participant", id=UUID(self.participant))

    def reasons(self) -> list[str]:
        return [each["reason"] for each in self.paying.post(self.invoice, dry_run=True).json()["left_out"]]


@pytest.fixture
def estate(server: RunningServer, plan_manager_id: UUID, new_client: Callable[..., Client]) -> Estate:
    client = new_client(plan_manager_id, scopes=("read", "write", "payments", "claims"))
    return Estate(PayingOffice(server, client), Office(server, plan_manager_id, client))


def test_an_owner_approves_the_payee_of_an_estate_and_the_run_pays(estate: Estate) -> None:
    client = estate.paying.client
    assert estate.reasons() == ["estate"]
    before = client.get(estate.path).json()
    assert estate.propose(client).json() | {"updated_at": None} == before | {
        "updated_at": None,
        "proposed": {
            "bsb": "999003", "account_ending": "000", "account_name": ACCOUNT["account_name"], "estate_payee": PAYEE,
        },
    }  # fmt: skip
    assert estate.reasons() == ["estate"]
    assert estate.approve("manager") == "invalid_transition"
    assert estate.approve("owner") == "approved"
    current = client.get(estate.path).json()
    assert (current["current"]["estate_payee"], current["proposed"]) == (PAYEE, None)
    assert estate.reasons() == []
    run = estate.paying.run(estate.invoice)
    [payment] = estate.paying.payments(run)
    assert (payment["payee"]["name"], payment["amount"]) == (PAYEE, 25)
    assert "EXECUTORS OF KIM LATE" in estate.paying.download(run).text.upper()


def test_the_payee_of_an_estate_has_a_name_and_only_that_of_an_estate(estate: Estate) -> None:
    client = estate.paying.client
    for name in (None, "  "):
        errors = estate.propose(client, estate_payee=name).json()["errors"]
        assert [(each["field"], each["code"]) for each in errors] == [("estate_payee", "required")]
    for path in (f"/participants/{estate.paying.participant}", f"/providers/{estate.paying.provider}"):
        errors = client.put(f"{path}/bank-details", ACCOUNT | {"estate_payee": PAYEE}).json()["errors"]
        assert [(each["field"], each["code"]) for each in errors] == [("estate_payee", "inconsistent")]


def test_an_account_from_before_the_death_is_not_the_estates(estate: Estate) -> None:
    """Whoever approves it: reimbursements wait."""
    client, person = estate.paying.client, estate.paying.participant
    invoice = estate.paying.invoice("5.00", participant_id=person, is_reimbursement=True)
    client.put(f"/participants/{person}/bank-details", ACCOUNT).raise_for_status()
    client.put(f"/participants/{person}", {"deceased_on": "2026-11-20"}).raise_for_status()
    payee = estate.payee._replace(id=UUID(person))
    assert estate.people.approve(estate.people.actor("Alex Moon"), estate.people.proposal_id(payee)) == "approved"
    found = estate.paying.post(invoice, dry_run=True).json()["left_out"]
    assert [each["reason"] for each in found] == ["estate"]


def test_the_account_of_an_estate_is_not_that_of_a_living_participant(estate: Estate) -> None:
    estate.propose(estate.paying.client).raise_for_status()
    assert estate.approve("owner") == "approved"
    run = estate.paying.run(estate.invoice)
    estate.paying.client.put(f"/participants/{estate.participant}", {"deceased_on": None}).raise_for_status()
    assert estate.paying.download(run).json()["error"] == "run_outdated"
    estate.paying.client.post(f"/payment-runs/{run['id']}/cancel").raise_for_status()
    assert estate.reasons() == ["no_bank_details"]


def test_a_returned_payment_needs_the_approval_of_an_owner_again(estate: Estate) -> None:
    client = estate.paying.client
    estate.propose(client).raise_for_status()
    assert estate.approve("owner") == "approved"
    run = estate.paying.run(estate.invoice)
    client.post(f"/payment-runs/{run['id']}/mark-paid", {"paid_on": PROCESS_DATE}).raise_for_status()
    [payment] = estate.paying.payments(run)
    body = {"date": PROCESS_DATE, "reference": "R1", "reason": "Account closed"}
    client.post(f"/payment-runs/{run['id']}/payments/{payment['id']}/returned", body).raise_for_status()
    assert estate.reasons() == ["bank_details_need_approval"]
    assert estate.approve("manager") == "invalid_transition"
    assert estate.approve("owner") == "approved"
    assert estate.reasons() == []


def test_the_operator_approves_it_only_if_no_other_owner_can(estate: Estate) -> None:
    one = estate.people.actor()
    estate.people.write(one, lambda ctx: _propose(estate, ctx))
    assert estate.people.approve_by_command(estate.people.proposal_id(estate.payee)) == "approved"
    estate.people.actor("Alex Moon")
    estate.people.write(one, lambda ctx: _propose(estate, ctx, "Another firm"))
    assert estate.people.approve_by_command(estate.people.proposal_id(estate.payee)) == "invalid_transition"


async def _propose(estate: Estate, ctx: Any, name: str = PAYEE) -> None:
    await service.propose(ctx, estate.payee, parse_account(**ACCOUNT), name)
