"""Bank details of payees that are deleted, restored and erased."""

from uuid import UUID

from plankeeper.core.context import SYSTEM
from plankeeper.privacy import service as privacy
from plankeeper.resources.bank_details import store
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.trash import service as trash
from support.bank_details import ACCOUNT, Office


def has_details(office: Office, payee: Payee) -> bool:
    return office.server.run(store.get(office.server.db, office.plan_manager_id, payee)) is not None


def test_the_trash_restores_details_and_deletes_them_with_its_entry(office: Office) -> None:
    office.approve(office.actor("Sam Ito"), office.propose(office.actor()))
    entry = office.write(SYSTEM, lambda ctx: trash.delete(ctx, "provider", office.payee.id))
    assert office.client.get(office.path).status_code == 404
    office.write(SYSTEM, lambda ctx: trash.restore(ctx, entry.id))
    assert office.endings() == ("678", None)
    entry = office.write(SYSTEM, lambda ctx: trash.delete(ctx, "provider", office.payee.id))
    office.write(SYSTEM, lambda ctx: trash.delete_permanently(ctx, entry.id))
    assert not has_details(office, office.payee)


def test_deleting_a_payee_deletes_its_details(office: Office) -> None:
    office.propose(office.actor())
    assert office.client.delete(f"/providers/{office.provider_id}").status_code == 200
    assert not has_details(office, office.payee)


def test_an_erasure_keeps_only_the_endings(office: Office) -> None:
    payee = Payee("participant", UUID(office.client.create("/participants", {"first_name": "Ada"})["id"]))
    assert office.client.put(f"/participants/{payee.id}/bank-details", ACCOUNT).status_code == 200
    assert office.approve(office.actor(), office.proposal_id(payee)) == "approved"
    report = office.write(SYSTEM, lambda ctx: privacy.erase(ctx, payee.id, search_events=True))
    assert report.counts["bank_details"] == 1
    assert not has_details(office, payee)
    history = office.server.run(store.list_changes(office.server.db, office.plan_manager_id, payee, 10))
    assert [(each.action, each.new_ending, each.note) for each in history] == [
        ("approved", "678", None),
        ("proposed", "678", None),
    ]
