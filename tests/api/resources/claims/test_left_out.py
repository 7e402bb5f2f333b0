"""What a claim batch contains, and what it leaves out, with the records and the warnings that decide it."""

from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.claims import Office, set_office
from support.client import Client
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    return Office(server, api)


def try_(office: Office, *invoices: dict[str, Any]) -> dict[str, Any]:
    response = office.claim(*invoices, params={"dry_run": "true"})
    assert response.status_code == 200, response.text
    return response.json()


def reasons(office: Office, *invoices: dict[str, Any]) -> list[str]:
    return [each["reason"] for each in try_(office, *invoices)["left_out"]]


def payee(office: Office, invoice: dict[str, Any]) -> str:
    file = office.client.get(f"/claim-batches/{office.batch(invoice)['id']}/file").text
    return file.splitlines()[1].rpartition(",")[2]


def test_the_office_needs_a_registration_number(office: Office) -> None:
    invoice = office.invoice("1")
    set_office(office.server, office.client, registration_number=None)
    assert reasons(office, invoice) == ["missing_registration_number"]


def test_the_participant_needs_an_ndis_number(office: Office) -> None:
    without = office.participant_with(first_name="Robin")
    assert reasons(office, office.invoice("1", participant_id=without)) == ["missing_ndis_number"]


def test_a_line_needs_an_item_and_a_service_date(office: Office) -> None:
    nothing = {"service_date_from": None, "service_date_to": None}
    invoice = office.invoice("1", office.line(service_item_number=None), office.line(**nothing))
    assert reasons(office, invoice) == ["missing_item", "missing_service_date"]


def test_a_blocking_warning_keeps_an_invoice_out_until_it_is_ignored(office: Office) -> None:
    tomorrow = (datetime.now(UTC).date() + timedelta(days=5)).isoformat()
    invoice = office.invoice("1", office.line(service_date_from=tomorrow, service_date_to=tomorrow))
    found = try_(office, invoice)["left_out"][0]
    assert (found["reason"], found["message"]) == (
        "blocking_warning", "These warnings block claims: Service in the future.",
    )  # fmt: skip
    office.execute(
        "update invoices set ignored_error_codes = '{service_in_future}' where plan_manager_id = $1",
        office.plan_manager_id,
    )
    office.execute("update invoices set warning_codes = '{}' where plan_manager_id = $1", office.plan_manager_id)
    assert reasons(office, invoice) == ["future_service"]  # nobody can claim what hasn't happened


def test_approvals_keep_an_invoice_out(office: Office) -> None:
    invoice = office.invoice("1")
    office.client.post(f"/invoices/{invoice['id']}/request-approval")
    assert reasons(office, invoice) == ["approval_pending"]
    office.client.post(f"/invoices/{invoice['id']}/reject", {"reason": "Not delivered"})
    assert reasons(office, invoice) == ["approval_rejected"]
    assert reasons(office) == ["approval_rejected"]


def test_a_provider_without_an_abn_is_left_out_unless_exempt(office: Office) -> None:
    provider = office.provider_with(entity_name="Small supplier")
    invoice = office.invoice("1", pm_provider_id=provider)
    assert reasons(office, invoice) == ["missing_abn"]
    office.execute(
        """
        update providers set abn_exempt = true, abn_statement_date = '2026-01-01'
        where plan_manager_id = $1 and id::text = $2
        """,
        office.plan_manager_id,
        provider,
    )
    read = office.client.get(f"/providers/{provider}").json()
    assert (read["abn_exempt"], read["abn_statement_date"]) == (True, "2026-01-01")
    assert payee(office, invoice) == "EXCLS"


def test_a_reimbursement_needs_no_abn(office: Office) -> None:
    provider = office.provider_with(entity_name="Small supplier")
    assert payee(office, office.invoice("1", pm_provider_id=provider, payee="participant")) == "REIMB"


def test_taxed_lines_wait_for_the_setting(office: Office) -> None:
    taxed = office.line(gst_code="P1", quantity=2, unit_price=100, total_price=200)
    invoice = office.invoice("1", taxed, tax=20, total=220)
    assert reasons(office, invoice) == ["p1_undecided"]
    set_office(office.server, office.client, prices_include_gst=True)
    batch = office.batch(invoice)
    assert batch["total"] == 220
    row = office.client.get(f"/claim-batches/{batch['id']}/file").text.splitlines()[1].split(",")
    assert (row[6], row[8], row[9]) == ("2.00", "110.00", "P1")


def test_lines_that_the_file_cannot_express_are_left_out(office: Office) -> None:
    invoice = office.invoice(
        "1",
        office.line(quantity=1.333, unit_price=10, total_price=13.33),
        office.line(quantity=1, unit_price=10.005, total_price=10.01),
        office.line(quantity=0, unit_price=10, total_price=0),
    )
    assert reasons(office, invoice) == ["inexpressible_quantity", "inexpressible_total", "zero_or_less"]


def test_states_keep_lines_out_and_deleted_ones_are_not_mentioned(office: Office) -> None:
    invoice = office.invoice("1", office.line(), office.line(quantity=1, total_price=193.99))
    first, second = (each["id"] for each in invoice["line_items"])
    office.client.post(f"/invoices/{invoice['id']}/lines/{first}/cancel", {"reason": "Wrong day"})
    found = try_(office, invoice)
    assert [(each["line_id"], each["reason"], each["message"]) for each in found["left_out"]] == [
        (first, "state", "Line 1 is cancelled.")
    ]
    assert found["lines"] == 1
    assert try_(office)["left_out"] == []  # `all` looks only at lines whose state lets them be claimed
    office.client.put(f"/invoices/{invoice['id']}", {"line_items": [{"id": second}]})
    assert [each["reason"] for each in try_(office, invoice)["left_out"]] == []


def test_a_service_in_two_plans_or_periods_is_left_out(office: Office) -> None:
    component = {"name": "Core", "kind": "flexible", "categories": [15], "amount": 1000}
    for start, end in (("2025-07-01", "2026-01-10"), ("2026-01-11", "2026-12-31")):
        plan = {"start_date": start, "end_date": end, "components": [component]}
        office.client.create(f"/participants/{office.participant}/plans", plan)
    across = office.line(service_date_from="2026-01-09", service_date_to="2026-01-12")
    invoice = office.invoice("1", across)
    assert reasons(office, invoice) == ["blocking_warning"]
    set_levels(office, {"check_funding_period": "warn"})
    office.execute("update invoices set warning_codes = '{}' where plan_manager_id = $1", office.plan_manager_id)
    assert reasons(office, invoice) == ["across_plans"]


def set_levels(office: Office, levels: dict[str, str]) -> None:
    set_office(office.server, office.client, warning_levels=levels)


def test_lines_with_a_warning_that_does_not_block_are_named(office: Office) -> None:
    component = {"name": "Core", "kind": "flexible", "categories": [15], "amount": 300}
    plan = {"start_date": "2025-07-01", "end_date": "2026-12-31", "components": [component]}
    office.client.create(f"/participants/{office.participant}/plans", plan)
    first = office.invoice("1")
    second = office.invoice("2", office.line(quantity=1, total_price=193.99))
    assert try_(office, first)["warned"] == []
    batch = office.batch(first, second)
    [warned] = batch["warned"]
    assert warned == {"invoice_id": second["id"], "line_id": second["line_items"][0]["id"], "codes": ["check_budget"]}
    assert batch["lines"] == 2


def test_the_budget_is_computed_when_the_batch_is_made(office: Office) -> None:
    component = {"name": "Core", "kind": "flexible", "categories": [15], "amount": 10_000}
    plan = {"start_date": "2025-07-01", "end_date": "2026-12-31", "components": [component]}
    plan_id = office.client.create(f"/participants/{office.participant}/plans", plan)["id"]
    invoice = office.invoice("1")
    assert try_(office, invoice)["warned"] == []
    # Nobody has checked the invoice again since.
    office.execute(
        "update plans set components = jsonb_set(components, '{0,amount}', '100') where id::text = $1", plan_id
    )
    assert [each["codes"] for each in office.batch(invoice)["warned"]] == [["check_budget"]]


def test_the_same_line_twice_is_claimed_with_a_warning(office: Office) -> None:
    first, second = office.invoice("1"), office.invoice("2")
    batch = office.batch(first, second)
    assert {each["invoice_id"]: each["codes"] for each in batch["warned"]} == {
        first["id"]: ["line_duplicate"], second["id"]: ["line_duplicate"],
    }  # fmt: skip
