"""Attempts to get money out of the office, which docs/security.md lists with their results."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from datetime import timedelta
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.api_keys import service as api_keys
from plankeeper.access.api_keys import store as key_store
from plankeeper.access.tokens import hash_token
from plankeeper.core.context import SYSTEM, Actor, WriteContext
from support.claims import Office
from support.client import ALL_SCOPES, Client
from support.console import Account
from support.importing import import_records
from support.payments import PayingOffice
from support.results import SubmittedBatch, results_csv
from support.server import RunningServer, wait_until


def write(office: PayingOffice, actor: Actor, operation: Callable[[WriteContext], Any]) -> Any:
    async def work() -> Any:
        async with office.server.db.transaction() as tx:
            return await operation(WriteContext(tx, office.plan_manager_id, office.server.settings, actor))

    return office.server.run(work())


def with_key(office: PayingOffice, key: str) -> Client:
    client = copy(office.client)
    client.key = key
    return client


def key_of(office: PayingOffice, account: Account, name: str = "Robin", scopes: tuple[str, ...] = ALL_SCOPES) -> Client:
    """A client with a new key of a person."""
    actor, ids = Actor("user", str(account.account_id), name), [office.plan_manager_id]
    return with_key(office, write(office, actor, lambda ctx: api_keys.create(ctx, name, ids, scopes, None)))


def rotated(office: PayingOffice, client: Client) -> Client:
    """A client with the key that the operator has given for this one, by command."""

    async def rotate(ctx: WriteContext) -> str:
        key = await key_store.get_by_hash(ctx.tx, hash_token(client.key))
        assert key
        return await api_keys.rotate(ctx, key, timedelta(hours=1), None)

    return with_key(office, write(office, SYSTEM, rotate))


def code(response: Any) -> str:
    return response.json()["error"] if response.is_error else "done"


@pytest.fixture
def robin(office: PayingOffice, new_account: Callable[..., Account]) -> Client:
    office.set(needs_second_person=True)
    return key_of(office, new_account(owner=office.plan_manager_id))


def make_run(office: PayingOffice, client: Client) -> str:
    body = {"invoice_ids": [office.invoice("30.00")], "process_date": "2026-10-15"}
    return f"/payment-runs/{client.create('/payment-runs', body)['id']}"


def test_neither_the_maker_nor_the_first_downloader_marks_a_run_as_paid(
    office: PayingOffice, robin: Client, new_account: Callable[..., Account]
) -> None:
    kim, lee = (key_of(office, new_account(owner=office.plan_manager_id), name) for name in ("Kim", "Lee"))
    path = make_run(office, robin)
    assert kim.get(f"{path}/file").status_code == 200
    cancel = {"not_sent_to_bank": True, "reason": "Wrong"}
    for each in (robin, kim):
        assert code(each.post(f"{path}/mark-paid", {})) == "second_person_required"
        assert code(each.post(f"{path}/cancel", cancel)) == "second_person_required"
    assert lee.get(f"{path}/file").status_code == 200
    assert code(lee.post(f"{path}/mark-paid", {})) == "done"


def test_a_second_or_a_rotated_key_is_the_same_person(
    office: PayingOffice, new_account: Callable[..., Account]
) -> None:
    office.set(needs_second_person=True)
    account = new_account(owner=office.plan_manager_id)
    first = key_of(office, account)
    path = make_run(office, first)
    for again in (key_of(office, account, "Another"), rotated(office, first)):
        assert code(again.post(f"{path}/mark-paid", {})) == "second_person_required"
    by_command = office.client
    assert code(by_command.post(f"{path}/mark-paid", {})) == "done"
    path = make_run(office, by_command)
    assert code(rotated(office, by_command).post(f"{path}/mark-paid", {})) == "second_person_required"


def test_a_change_of_bank_details_comes_before_or_after_the_first_download(office: PayingOffice) -> None:
    invoice = office.invoice("10.00")
    for _ in range(5):
        run = office.run(invoice)
        with ThreadPoolExecutor(2) as executor:
            changed = executor.submit(office.propose, office.provider)
            downloaded = executor.submit(office.download, run)
            changed.result()
            response = downloaded.result()
        recorded = office.client.get(f"/payment-runs/{run['id']}").json()["downloaded_at"]
        assert (response.status_code, recorded is None) in ((200, False), (409, True))
        assert response.is_error or b"Somebody Else" not in response.content
        office.act(run, "cancel", not_sent_to_bank=True, reason="Again").raise_for_status()
        office.set_account("provider", office.provider, "Amber Physio")


def test_batches_and_runs_of_another_plan_manager_are_not_found(
    server: RunningServer, office: PayingOffice, api: Client, other: Client
) -> None:
    batch, run = SubmittedBatch(claims := Office(server, api), claims.invoice("1")), office.run(office.invoice("1.00"))
    [payment] = office.payments(run)
    for path in (f"/claim-batches/{batch.id}", f"/payment-runs/{run['id']}"):
        assert {other.get(f"{path}{each}").status_code for each in ("", "/file")} == {404}
    posts: dict[str, Any] = {
        f"/claim-batches/{batch.id}/submit": None,
        f"/claim-batches/{batch.id}/cancel": {},
        f"/claim-batches/{batch.id}/receipts": {"date": "2026-01-15", "amount": 1},
        f"/payment-runs/{run['id']}/mark-paid": {},
        f"/payment-runs/{run['id']}/cancel": {},
        f"/payment-runs/{run['id']}/payments/{payment['id']}/returned": {"date": "2026-01-15", "reason": "Closed"},
    }
    assert {other.post(path, body).status_code for path, body in posts.items()} == {404}
    results = other.request("POST", f"/claim-batches/{batch.id}/results", content=results_csv([batch.paid(0)]))
    assert results.status_code == 404
    assert (batch.state(), batch.line(0)["claim_status"]) == ("submitted", "pending")


def test_results_do_not_reach_the_claims_of_another_plan_manager(
    server: RunningServer, api: Client, other: Client
) -> None:
    own, foreign = (SubmittedBatch(office := Office(server, each), office.invoice("1")) for each in (api, other))
    assert foreign.claims[0]["reference"] == own.claims[0]["reference"]
    assert own.apply(own.paid(0))["paid"] == 1
    assert (own.line(0)["claim_status"], foreign.line(0)["claim_status"]) == ("payment_ready", "pending")


def test_files_require_their_scope_and_each_download_is_recorded(
    server: RunningServer, office: PayingOffice, new_client: Callable[..., Client], new_account: Callable[..., Account]
) -> None:
    account = new_account(owner=office.plan_manager_id)
    office.client.put(f"/participants/{office.participant}", {"participant_number": "430000001"}).raise_for_status()
    run = office.run(office.invoice("1.00"))
    claims = Office(server, office.client)
    batch = claims.batch(claims.invoice("C-1"))
    paths = {"claims": f"/claim-batches/{batch['id']}/file", "payments": f"/payment-runs/{run['id']}/file"}
    for scope, path in paths.items():
        others = [each for each in ALL_SCOPES if each != scope]
        assert code(new_client(office.plan_manager_id, scopes=others).get(path)) == "insufficient_scope"
        allowed = key_of(office, account, f"only {scope}", (scope,))
        assert allowed.get(path).status_code == 200
    statement = "select actor_name from access_records where plan_manager_id = $1 and actor_name = any ($2::text[])"
    names = [f"only {scope}" for scope in paths]
    wait_until(lambda: set(server.run(server.db.rows(str, statement, office.plan_manager_id, names))) == {*names})
    assert {office.client.send("GET", each).status_code for each in paths.values()} == {401}


@pytest.mark.parametrize("status", ["payment_ready", "partially_ready"])
def test_an_import_alone_makes_no_line_payable(office: PayingOffice, status: str) -> None:
    line, id_ = {"total_price": 500, "paid_amount": 500, "claim_status": status}, str(uuid7())
    row = {"id": id_, "pm_provider_id": office.provider, "claim_status": status, "line_items": [line]}
    office.import_rows("invoices", row)
    assert [each["reason"] for each in office.post(id_, dry_run=True).json()["left_out"]] == ["no_result"]
    assert code(office.post()) == "invalid_request"


def test_an_import_cannot_raise_what_is_paid(office: PayingOffice) -> None:
    """Neither the amount nor the payee of a line with a result."""
    id_ = office.invoice("10.00")
    [line_id] = office.line_ids(id_)
    line = {"id": line_id, "total_price": 900, "paid_amount": 900, "claim_status": "payment_ready"}
    other = office.provider_with("Somebody Else")
    for row in ({"line_items": [line]}, {"pm_provider_id": other}, {"payee": "participant", "is_reimbursement": True}):
        records = import_records(office.server, office.plan_manager_id, "invoices", [{"id": id_} | row])
        assert office.server.run(records).errors, row
    assert office.run(id_)["total"] == 10


def test_the_api_cannot_write_a_state_an_amount_or_another_payee(office: PayingOffice) -> None:
    new = {"description": "Gardening", "total_price": 900, "claim_status": "payment_ready", "paid_amount": 900}
    made = office.client.create("/invoices", {"claim_status": "payment_ready", "line_items": [new]})
    [line] = made["line_items"]
    assert (made["claim_status"], line["claim_status"], line["paid_amount"]) == ("new", "new", None)
    id_ = office.invoice("10.00")
    bodies: list[dict[str, Any]] = [
        {"pm_provider_id": office.provider_with("Somebody Else")},
        {"payee": "participant"},
        {"participant_id": office.participant_with("Some", "Body")},
    ]
    for body in bodies:
        assert code(office.client.put(f"/invoices/{id_}", body)) == "invoice_locked"
        assert code(office.client.post("/invoices/bulk", {"items": [body | {"id": id_}]})) == "invoice_locked"


def test_results_never_pay_more_than_was_claimed_nor_twice(server: RunningServer, api: Client) -> None:
    batch = SubmittedBatch(office := Office(server, api), office.invoice("1"))
    claim = batch.claims[0]
    too_much = batch.apply(batch.paid(0, claim["amount"] + 0.01))
    assert (too_much["paid"], len(too_much["unmatched"])) == (0, 1)
    assert batch.apply(batch.paid(0))["paid"] == 1
    again = batch.apply(batch.paid(0, 1))
    assert (again["paid"], len(again["unmatched"])) == (0, 1)
    path = f"/invoices/{claim['invoice_id']}/lines/{claim['line_id']}/claim-result"
    assert code(api.post(path, {"outcome": "paid", "amount": 1})) == "invalid_transition"
    assert batch.line(0)["paid_amount"] == claim["amount"]


def test_after_a_restore_nothing_goes_out_until_an_owner_has_compared_it(
    server: RunningServer, office: PayingOffice
) -> None:
    office.client.put(f"/participants/{office.participant}", {"participant_number": "430000001"}).raise_for_status()
    claims = Office(server, office.client)
    batch, invoice = claims.batch(claims.invoice("C-1")), claims.invoice("C-2")
    run, other = office.run(office.invoice("1.00")), office.invoice("2.00")
    statement = "insert into restores (plan_manager_id, restored_at) values ($1, '2026-11-03')"
    server.execute_as_owner(statement, office.plan_manager_id)
    refused = [
        claims.claim(invoice), office.client.post(f"/claim-batches/{batch['id']}/submit"),
        office.client.get(f"/claim-batches/{batch['id']}/file"), office.post(other), office.download(run),
        office.act(run, "mark-paid"),
    ]  # fmt: skip
    assert [(each.status_code, code(each)) for each in refused] == [(409, "invalid_transition")] * len(refused)
    assert {"restored from a backup" in each.json()["detail"] for each in refused} == {True}
