"""The office's own fee from the month to the office's account, beside a bill of the same participant, over HTTP."""

from collections.abc import Callable, Iterator
from datetime import timedelta
from typing import Any
from uuid import UUID

import pytest

from support.catalogues import THERAPY, import_catalogue
from support.cluster import SharedCluster
from support.fees import FEE_ITEM
from support.outbox import MailingServer, mailing_server
from system.office.ledger import cents
from system.office.office import ORIGIN, SETTINGS, Office, Row

FEE, SHORT, BILL, REVERSED = 10_445, 9_000, 29_099, 4_000  # in cents; SHORT is what the agency first pays of the fee
SETTINGS_PAGE = "/console/settings/fees"


@pytest.fixture(scope="module")
def mailing(cluster: SharedCluster) -> Iterator[MailingServer]:
    """A server with a database of its own, because all plan managers of a database share the catalogue."""
    with mailing_server(cluster) as made:
        import_catalogue(made.server.dsn, FEE_ITEM, THERAPY | {"Start date": "20200101"})
        yield made


@pytest.fixture(params=[False, True], ids=["by results", "by receipts"])
def office(
    mailing: MailingServer, new_plan_manager: Callable[[], UUID], request: pytest.FixtureRequest
) -> Iterator[Office]:
    made = Office(mailing, new_plan_manager(), needs_receipts=request.param)
    made.put(f"/participants/{made.participant}", {"approval_required": False, "state": "NSW"})
    yield made
    made.people.close()


def test_every_cent_of_a_fee(office: Office) -> None:
    set_fees(office)
    fee = make_fee(office)
    bill = office.enter("2026/442", office.item(1.5, 193.99, 290.99))
    [fee_line], [bill_line] = ([each["id"] for each in row["line_items"]] for row in (fee, bill))
    batch = office.submit(fee, bill)
    check_money(office)
    office.apply(batch, [SHORT if each["line_id"] == fee_line else BILL for each in office.claims(batch)])
    check_money(office)
    if office.ledger.needs_receipts:
        assert take(office) == "invalid_request"  # the money hasn't come yet
    office.receive(batch)
    check_money(office)
    take_fee(office, fee, SHORT)
    pay_bill(office, fee, bill, bill_line)
    claim_the_rest(office, fee)
    take_back(office, fee)
    assert office.ledger.held() == {}
    assert office.ledger.figures()["fees"] == FEE


def check_money(office: Office) -> None:
    """The reconciliation is what the ledger says."""
    figures, held = office.reconcile()
    assert (figures, held) == (office.ledger.figures(), office.ledger.held())
    assert sum(held.values()) == figures["closing"]


def set_fees(office: Office) -> None:
    """Kim sets the item of the fee, and the office's record among the providers."""
    own = office.post("/providers", {"entity_name": "Harbour Plans", "abn": SETTINGS["abn"].replace(" ", "")})
    form = {"fee_item_number": FEE_ITEM["Support Item Number"], "fee_provider_id": own["id"]}
    assert office.people.browser.submit(SETTINGS_PAGE, form, SETTINGS_PAGE, headers=ORIGIN).status_code == 303


def make_fee(office: Office) -> Row:
    """The fee of the last month, which is made once."""
    last = office.today.replace(day=1) - timedelta(days=1)
    body = {"month": f"{last:%Y-%m}"}
    made = office.post("/fees", body)
    assert (made["count"], cents(made["total"])) == (1, FEE)
    again = office.post("/fees", body)
    assert (again["count"], [each["reason"] for each in again["left_out"]]) == (0, ["already_made"])
    return office.read(made["fees"][0])


def take(office: Office) -> Any:
    """What the office takes, or the code of the error."""
    response = office.client.post("/fee-takings", {"all": True})
    return response.json() if response.is_success else office.refused(response)


def take_fee(office: Office, fee: Row, amount: int) -> None:
    """The office takes what the agency has paid of the fee, once, and no payment run has it."""
    assert office.unpaid(fee) == ["own_fee"]
    taking = take(office)
    assert (cents(taking["total"]), taking["lines"]) == (amount, 1)
    office.ledger.take({fee["line_items"][0]["id"]: amount})
    check_money(office)
    assert take(office) == "invalid_request"
    [line] = office.read(fee)["line_items"]
    assert line["payment_ref"] == taking["number"]


def pay_bill(office: Office, fee: Row, bill: Row, line_id: str) -> None:
    """A run pays the bill, and not the fee."""
    assert office.people.approve_accounts() == 2
    run = office.payment_run(fee, bill)
    assert (cents(run["total"]), run["payments"]) == (BILL, 1)
    office.file(run)
    office.mark_paid(run, {line_id: BILL})
    check_money(office)


def claim_the_rest(office: Office, fee: Row) -> None:
    """The agency pays the rest of the fee, which is taken with another reference."""
    line_id = fee["line_items"][0]["id"]
    office.post(f"/invoices/{fee['id']}/lines/{line_id}/claim-rest", {})
    batch = office.submit(fee)
    office.apply(batch, [FEE - SHORT])
    office.receive(batch)
    check_money(office)
    take_fee(office, fee, FEE - SHORT)
    assert office.states(fee) == ["paid"]
    assert [cents(each["total"]) for each in office.client.get("/fee-takings").json()["data"]] == [SHORT, FEE - SHORT]


def take_back(office: Office, fee: Row) -> None:
    """The agency takes a part back of what was taken. The office returns it, and repays it."""
    [line] = fee["line_items"]
    office.adjust(fee, line, "agency_reversal", REVERSED)
    assert office.recoveries() == [(line["id"], REVERSED, REVERSED)]
    office.adjust(fee, line, "provider_refund", REVERSED)
    check_money(office)
    office.adjust(fee, line, "repaid_to_agency", REVERSED)
    assert office.recoveries() == []
    check_money(office)
