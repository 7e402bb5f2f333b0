"""Claims that have waited too long for a result: on Home, and in a list of their own."""

from collections.abc import Callable

from support.claims import Office, set_office
from support.console import Browser, main_text
from support.results import SubmittedBatch

LATE, TILE = "/console/claims/late", "Late results of claims"
WAIT = "update claim_batches set submitted_at = submitted_at - interval '20 days' where plan_manager_id = $1"


def test_late_claims_are_on_home_and_listed(office: Office, manager: Callable[..., Browser]) -> None:
    batch = SubmittedBatch(office, office.invoice("A1", office.line(), office.line(service_date_from="2026-01-14")))
    browser = manager("make_claims")
    assert TILE not in main_text(browser.get("/console").text)
    assert "No claim is late." in main_text(browser.get(LATE).text)
    office.execute(WAIT, office.plan_manager_id)
    assert f"{TILE} 2 $581.98" in main_text(browser.get("/console").text)
    assert TILE not in main_text(manager("make_payments").get("/console").text)
    text = main_text(browser.get(LATE).text)
    assert "2 lines ($581.98) have waited for a result longer than 5 business days." in text
    assert batch.number in text
    batch.apply(batch.paid(0), batch.rejected(1))
    assert TILE not in main_text(browser.get("/console").text)


def test_the_office_chooses_the_days_and_claims_elsewhere_count(office: Office, owner: Browser) -> None:
    invoice = office.invoice("A1")
    office.client.post(f"/invoices/{invoice['id']}/claimed-elsewhere", {"reference": "PORTAL-17"}).raise_for_status()
    office.execute("update claims set created_at = created_at - interval '20 days' where plan_manager_id = $1",
                   office.plan_manager_id)  # fmt: skip
    text = main_text(owner.get(LATE).text)
    assert "1 line ($290.99) has waited" in text
    assert "PORTAL-17 Elsewhere" in text
    set_office(office.server, office.client, days_until_claim_is_late=40)
    assert "No claim is late." in main_text(owner.get(LATE).text)
