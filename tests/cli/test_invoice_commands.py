"""`plankeeper invoices confirm-result`: an imported result is paid only once it is confirmed."""

from collections.abc import Callable

import pytest
from uuid_utils.compat import uuid7

from support.client import Client
from support.payments import PayingOffice
from support.program import Done, run_plankeeper
from support.server import RunningServer


@pytest.fixture
def office(server: RunningServer, new_client: Callable[..., Client]) -> PayingOffice:
    return PayingOffice(server, new_client())


def confirm(office: PayingOffice, *arguments: str) -> Done:
    return run_plankeeper("invoices", "confirm-result", *arguments, PLANKEEPER_DATABASE_URL=office.server.dsn)


def import_line(office: PayingOffice, line_id: str, status: str = "payment_ready", amount: float = 90.5) -> str:
    """Import an invoice with a line. Returns the invoice's id."""
    id_ = str(uuid7())
    line = {"id": line_id, "total_price": amount, "paid_amount": amount or None, "claim_status": status}
    row = {"id": id_, "invoice_number": "I-1", "pm_provider_id": office.provider, "participant_id": office.participant}
    office.import_rows("invoices", row | {"claim_status": status, "line_items": [line]})
    return id_


def test_an_imported_line_is_paid_once_it_is_confirmed(office: PayingOffice) -> None:
    line_id = str(uuid7())
    invoice_id = import_line(office, line_id)
    [left_out] = office.post(invoice_id, dry_run=True).json()["left_out"]
    assert left_out["reason"] == "no_result"
    done = confirm(office, line_id)
    assert (done.returncode, done.stdout) == (0, f"Confirmed: {line_id}, $90.50\n"), done
    assert office.run(invoice_id)["total"] == 90.5
    again = confirm(office, line_id)
    assert (again.returncode, again.stderr) == (1, "Error: Line 1 has a claim, so its result is known.\n")


def test_only_a_line_that_is_ready_is_confirmed(office: PayingOffice) -> None:
    line_id = str(uuid7())
    unknown = confirm(office, line_id)
    assert (unknown.returncode, unknown.stderr) == (1, f"Error: No invoice has a line with the id {line_id}.\n")
    import_line(office, line_id, "pending", 0)
    detail = "Line 1 is pending: only a line that is ready for payment can be confirmed."
    done = confirm(office, line_id, "--plan-manager", str(office.plan_manager_id))
    assert (done.returncode, done.stderr) == (1, f"Error: {detail}\n")


def test_a_line_of_two_offices_needs_the_plan_manager(
    office: PayingOffice, server: RunningServer, new_client: Callable[..., Client]
) -> None:
    line_id, other = str(uuid7()), PayingOffice(server, new_client())
    import_line(office, line_id)
    invoice_id = import_line(other, line_id)
    ambiguous = confirm(office, line_id)
    assert ambiguous.stderr == (
        f"Error: Several plan managers or invoices have a line with the id {line_id}."
        " Give the plan manager with --plan-manager.\n"
    )
    assert confirm(office, line_id, "--plan-manager", str(other.plan_manager_id)).returncode == 0
    assert other.run(invoice_id)["total"] == 90.5
    assert office.post().status_code == 400
