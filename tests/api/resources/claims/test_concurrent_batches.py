"""Claim batches of several requests at the same time."""

from collections import Counter
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from decimal import Decimal
from random import Random
from typing import Any, LiteralString

import pytest

from support.claims import Office
from support.client import Client
from support.server import RunningServer

STATES_OF_OPEN = ("draft", "submitted")


@pytest.fixture
def office(server: RunningServer, api: Client) -> Office:
    return Office(server, api)


def at_once(*calls: Callable[[], Any]) -> list[Any]:
    with ThreadPoolExecutor(len(calls)) as pool:
        return [each.result() for each in [pool.submit(call) for call in calls]]


def open_claims(office: Office) -> list[str]:
    statement: LiteralString = """
        select line_id::text from claims where plan_manager_id = $1 and state in ('draft', 'submitted') order by 1
    """
    return office.server.run(office.server.db.rows(str, statement, office.plan_manager_id))


def test_two_batches_at_once_share_no_line(office: Office) -> None:
    invoices = [office.invoice(str(number)) for number in range(8)]
    responses = at_once(lambda: office.claim(*invoices), lambda: office.claim(*reversed(invoices)), office.claim)
    made = [each.json() for each in responses if each.status_code == 201]
    assert {each.status_code for each in responses} == {201, 400}
    assert sum(each["lines"] for each in made) == 8
    assert len(open_claims(office)) == len({*open_claims(office)}) == 8


def test_overlapping_batches_at_once_have_each_line_once(office: Office) -> None:
    invoices = [office.invoice(str(number)) for number in range(9)]
    responses = at_once(lambda: office.claim(*invoices[:6]), lambda: office.claim(*invoices[3:]))
    assert [each.status_code for each in responses] == [201, 201]
    assert sum(each.json()["lines"] for each in responses) == 9
    assert {each.json()["number"] for each in responses} == {"B000001", "B000002"}


def test_invoices_with_one_number_in_two_batches_at_once_have_different_references(office: Office) -> None:
    other = office.provider_with(entity_name="Other", abn="11123456780")
    first, second = office.invoice("001"), office.invoice("001", pm_provider_id=other)
    batches = [each.json() for each in at_once(lambda: office.claim(first), lambda: office.claim(second))]
    claims = [office.client.get(f"/claim-batches/{each['id']}/lines").json()["data"][0] for each in batches]
    assert {each["reference"] for each in claims} == {"001", "001-2"}


def test_of_two_submits_one_succeeds(office: Office) -> None:
    batch = office.batch(office.invoice("1"))
    path = f"/claim-batches/{batch['id']}/submit"
    responses = at_once(lambda: office.client.post(path), lambda: office.client.post(path))
    assert sorted(each.status_code for each in responses) == [200, 409]


def test_a_draft_is_either_submitted_or_cancelled(office: Office) -> None:
    for number in range(4):
        invoice = office.invoice(str(number))
        path = f"/claim-batches/{office.batch(invoice)['id']}"
        responses = at_once(
            lambda path=path: office.client.post(f"{path}/submit"),
            lambda path=path: office.client.post(f"{path}/cancel", {}),
        )
        # A submitted batch requires more of a cancel.
        assert [each.status_code for each in responses] in ([200, 400], [409, 200])
        state = office.client.get(path).json()["state"]
        [line] = office.read(invoice)["line_items"]
        assert (state, line["claim_status"], line["open_claim_batch"] is None) in (
            ("submitted", "pending", False),
            ("cancelled", "new", True),
        )


def test_a_batch_and_a_hold_at_once_never_both_have_the_line(office: Office) -> None:
    for number in range(4):
        invoice = office.invoice(str(number))
        made, _ = at_once(
            lambda invoice=invoice: office.claim(invoice),
            lambda invoice=invoice: office.client.post(f"/invoices/{invoice['id']}/cancel", {"reason": "Twice"}),
        )
        [line] = office.read(invoice)["line_items"]
        assert (line["claim_status"] == "cancelled") is (made.status_code == 400)


@pytest.mark.parametrize("seed", range(3))
def test_random_requests_keep_each_line_in_one_open_batch(office: Office, seed: int) -> None:
    random = Random(seed)
    invoices = [office.invoice(str(number)) for number in range(6)]
    for _ in range(4):
        batches = [each["id"] for each in office.client.get("/claim-batches", limit=100).json()["data"]]
        calls: list[Callable[[], Any]] = []
        for _ in range(3):
            some = random.sample(invoices, 3)
            calls.append(lambda some=some: office.claim(*some))
        for each in random.sample(batches, min(2, len(batches))):
            calls.append(lambda id_=each: office.client.post(f"/claim-batches/{id_}/submit"))
            body = {"uploaded": False, "reason": "Wrong"}
            calls.append(lambda id_=each, body=body: office.client.post(f"/claim-batches/{id_}/cancel", body))
        assert {each.status_code for each in at_once(*calls)} <= {200, 201, 400, 409}
        assert max(Counter(open_claims(office)).values(), default=1) == 1
        require_consistent(office, invoices)


def require_consistent(office: Office, invoices: list[dict[str, Any]]) -> None:
    """A line is in the batch that has its open claim, and the sum of a batch is that of its claims."""
    numbers = dict[str, str]()
    for batch in office.client.get("/claim-batches", limit=100).json()["data"]:
        claims = office.client.get(f"/claim-batches/{batch['id']}/lines", limit=100).json()["data"]
        assert Decimal(str(batch["total"])) == sum(Decimal(str(each["amount"])) for each in claims)
        numbers |= {each["line_id"]: batch["number"] for each in claims if each["state"] in STATES_OF_OPEN}
    for invoice in invoices:
        [line] = office.read(invoice)["line_items"]
        assert line["open_claim_batch"] == numbers.get(line["id"])
