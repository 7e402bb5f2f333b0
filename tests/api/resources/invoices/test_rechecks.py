"""Invoices are checked again in the background when a participant, a plan or a provider changes."""

import itertools
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, date, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.core.ids import uuid7_lower_bound
from plankeeper.core.settings import Settings
from plankeeper.database.client import Transaction
from plankeeper.resources import recheck_queue
from plankeeper.resources.invoices import recheck_store, rechecks
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.rechecks import RecheckWorker, get_progress, queue_age
from plankeeper.resources.office_settings import service as office_settings
from plankeeper.resources.office_settings import store as settings_store
from plankeeper.resources.office_settings.parsers import CLAIMS_AND_PAYMENTS, parse_claims_and_payments, to_texts
from plankeeper.resources.participants import plans
from plankeeper.resources.trash import service as trash
from support import factories
from support.client import Client
from support.importing import import_records
from support.rechecks import MAX_ID, PromptWorker, recheck_at_once, stop_server_rechecks
from support.server import RunningServer, wait_until

Recheck = Callable[[], None]
Put = Callable[..., str]

QUEUED = "select count(*) from recheck_queue where plan_manager_id = $1"


@pytest.fixture
def import_invoice(server: RunningServer, api: Client, record_ids: dict[str, str]) -> Put:
    return partial(factories.import_invoice, server, api, record_ids)


@pytest.fixture
def queued(server: RunningServer, api: Client) -> Callable[[], int]:
    return lambda: server.run(server.db.one(int, QUEUED, UUID(api.plan_manager_id)))


@pytest.fixture
def check_batch(server: RunningServer, monkeypatch: pytest.MonkeyPatch) -> Recheck:
    """A turn of a new worker, as after a restart, while the server's own worker does nothing.

    What other tests have queued has been checked: a short turn would be over with it.
    """
    stop_server_rechecks(monkeypatch)
    recheck_at_once(server)
    return lambda: server.run(PromptWorker(server.settings)(server.db))


@pytest.fixture
def recheck(server: RunningServer, check_batch: Recheck, queued: Callable[[], int]) -> Recheck:
    """Check what is queued now."""
    worker = PromptWorker(server.settings)

    def check() -> bool:
        server.run(worker(server.db))
        return queued() == 0

    return lambda: wait_until(check)


def context(server: RunningServer, api: Client, tx: Transaction) -> WriteContext:
    return WriteContext(tx, UUID(api.plan_manager_id), server.settings, SYSTEM)


def warnings_of(api: Client, invoice_id: str) -> list[str]:
    return api.get(f"/invoices/{invoice_id}").json()["state_management"]["errors"]


def test_a_change_of_a_participant_checks_its_open_invoices(
    api: Client, record_ids: dict[str, str], import_invoice: Put, recheck: Recheck, queued: Callable[[], int]
) -> None:
    invoice, paid = import_invoice(), import_invoice(invoice_number="INV-2", claim_status="paid")
    before = api.get(f"/invoices/{invoice}")
    path = f"/participants/{record_ids['participant']}"
    for status in ("Inactive", "Lead", "Inactive"):  # checked once
        assert api.put(path, {"status": status}).status_code == 200
    assert api.put(path, {"city": "Hobart"}).status_code == 200
    assert queued() == 3
    recheck()
    assert queued() == 0
    after = api.get(f"/invoices/{invoice}")
    assert after.json() == before.json() | {
        "errors": True,
        "state_management": {"errors": ["inactive_participant"], "ignored_errors": []},
    }
    assert warnings_of(api, paid) == []
    # Somebody who has read the invoice before can still change it.
    changed = api.put(f"/invoices/{invoice}", {"due_date": "2026-02-01"}, headers={"If-Match": before.headers["etag"]})
    assert changed.status_code == 200
    params = {"resource_id": invoice, "type": "invoice.updated", "after": "0"}
    [event, _] = wait_until(lambda: len(found := api.get("/events", **params).json()["data"]) == 2 and found)
    assert event["actor"]["kind"] == "system"
    assert set(event["previous"]) == {"errors", "state_management"}


@pytest.mark.parametrize("kind", ["participant", "provider"])
def test_deleting_and_restoring_a_record_checks_its_invoices(
    server: RunningServer, api: Client, record_ids: dict[str, str], import_invoice: Put, recheck: Recheck, kind: Any
) -> None:
    invoice = import_invoice()

    async def delete() -> UUID:
        async with server.db.transaction() as tx:
            return (await trash.delete(context(server, api, tx), kind, UUID(record_ids[kind]))).id

    async def restore(entry_id: UUID) -> None:
        async with server.db.transaction() as tx:
            await trash.restore(context(server, api, tx), entry_id)

    entry_id = server.run(delete())
    recheck()
    assert warnings_of(api, invoice) == [f"missing_{kind}"]
    server.run(restore(entry_id))
    recheck()
    assert warnings_of(api, invoice) == []


def test_every_way_of_changing_an_abn_checks_the_invoices_of_other_providers_with_it(
    server: RunningServer, api: Client, record_ids: dict[str, str], import_invoice: Put, recheck: Recheck
) -> None:
    twin = api.create("/providers", {"entity_name": "Care"})["id"]  # without its ABN
    import_invoice(pm_provider_id=twin, created_at="2026-01-16T00:00:00Z")
    invoice = import_invoice(created_at="2026-01-17T00:00:00Z")
    plan_manager_id = UUID(api.plan_manager_id)
    same, other = {"abn": "51 824 753 556"}, {"abn": "53004085616"}

    async def delete() -> UUID:
        async with server.db.transaction() as tx:
            return (await trash.delete(context(server, api, tx), "provider", UUID(twin))).id

    async def restore(entry_id: UUID) -> None:
        async with server.db.transaction() as tx:
            await trash.restore(context(server, api, tx), entry_id)

    def warnings_after(write: object) -> list[str]:
        assert write
        recheck()
        return warnings_of(api, invoice)

    assert warnings_of(api, invoice) == []
    duplicate = ["possible_duplicate"]
    assert warnings_after(api.put(f"/providers/{twin}", same).is_success) == duplicate
    assert warnings_after(api.post("/providers/bulk", {"items": [{"id": twin} | other]}).is_success) == []
    imported = {"id": twin, "abn": "51824753556"}
    assert warnings_after(server.run(import_records(server, plan_manager_id, "providers", [imported]))) == duplicate
    entry_id = server.run(delete())
    assert warnings_after(entry_id) == []
    server.run(restore(entry_id))
    assert warnings_after(entry_id) == duplicate
    assert warnings_after(api.delete(f"/providers/{twin}").is_success) == []


def test_every_way_of_changing_a_plan_checks_the_invoices(
    server: RunningServer, api: Client, record_ids: dict[str, str], import_invoice: Put, recheck: Recheck
) -> None:
    invoice, participant_id = import_invoice(), record_ids["participant"]
    path = f"/participants/{participant_id}/plans"
    [plan] = api.get(path).json()["data"]
    imported = {"id": plan["id"], "participant_id": participant_id}
    early, late = {"end_date": "2026-01-10"}, {"end_date": "2026-12-31"}
    assert api.put(f"{path}/{plan['id']}", early).status_code == 200
    recheck()
    assert warnings_of(api, invoice) == ["check_dates"]
    server.run(import_records(server, UUID(api.plan_manager_id), "plans", [imported | late]))
    recheck()
    assert warnings_of(api, invoice) == []
    assert api.put(f"/participants/{participant_id}", {"plan_end_date": early["end_date"]}).status_code == 200
    recheck()
    assert warnings_of(api, invoice) == ["check_dates"]
    assert api.delete(f"{path}/{plan['id']}").status_code == 200
    recheck()
    assert warnings_of(api, invoice) == []
    api.create(path, {"start_date": "2026-02-01", "end_date": "2026-02-10"})
    recheck()
    assert warnings_of(api, invoice) == ["check_dates"]


def test_each_write_queues_what_it_changes(
    server: RunningServer,
    api: Client,
    record_ids: dict[str, str],
    queued: Callable[[], int],
    check_batch: Recheck,  # so that nothing is deleted
) -> None:
    participant, provider = record_ids["participant"], record_ids["provider"]
    plan_manager_id = UUID(api.plan_manager_id)

    def import_one(resource: str, row: dict[str, Any]) -> None:
        assert not server.run(import_records(server, plan_manager_id, resource, [row])).errors

    writes: list[Callable[[], object]] = [
        lambda: api.put(f"/participants/{participant}", {"state": "NSW"}),
        lambda: api.post("/participants/bulk", {"items": [{"id": participant, "state": "TAS"}, {"state": "TAS"}]}),
        lambda: import_one("participants", {"id": participant, "date_ceased": "2026-03-01"}),
        lambda: api.put(f"/participants/{participant}", {"is_pace_plan": True}),
        lambda: api.put(f"/providers/{provider}", {"active": False}),
        lambda: api.post("/providers/bulk", {"items": [{"id": provider, "active": True}, {"active": True}]}),
        lambda: import_one("providers", {"id": provider, "abn": "53004085616"}),
        lambda: api.delete(f"/participants/{participant}"),
        lambda: api.delete(f"/providers/{provider}"),
    ]
    silent: list[Callable[[], object]] = [
        lambda: api.post("/participants", {"state": "NSW", "plan_start_date": "2026-01-01"}),
        lambda: api.post("/providers", {"active": True}),
        lambda: import_one("participants", {"id": participant, "city": "Hobart"}),
        lambda: import_one("providers", {"id": provider, "city": "Hobart"}),
    ]
    counts = [(write(), queued())[1] for write in (*silent, *writes)]
    assert counts == [0, 0, 0, 0, *range(1, len(writes) + 1)]


def test_a_setting_that_the_checks_use_queues_all_open_invoices(
    server: RunningServer, api: Client, queued: Callable[[], int], check_batch: Recheck
) -> None:
    async def save(**texts: str) -> None:
        async with server.db.transaction() as tx:
            ctx = context(server, api, tx)
            stored = to_texts(await settings_store.get(tx, ctx.plan_manager_id), CLAIMS_AND_PAYMENTS)
            parsed = parse_claims_and_payments(stored | texts, has_account=False)
            assert await office_settings.set_claims_and_payments(ctx, parsed)

    changes = [{"remitter": "Plans"}, {"prices_include_gst": "yes"}, {"prices_include_gst": "no", "remitter": ""}]
    assert [(server.run(save(**texts)), queued())[1] for texts in changes] == [0, 1, 2]


def test_at_midnight_the_invoices_are_checked(
    server: RunningServer, api: Client, queued: Callable[[], int], recheck: Recheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = f"/participants/{api.create('/participants', {})['id']}/plans"
    this_year = server.settings.today.year
    for year in (this_year, this_year + 1):
        api.create(path, {"start_date": f"{year}-01-01", "end_date": f"{year}-12-31"})
    recheck()
    monkeypatch.setattr(Settings, "today", date(this_year + 1, 1, 1))
    server.run(plans.switch_due(server.db, server.settings))
    wait_until(lambda: queued() == 1)  # the server's own task may be at it at the same time


def test_many_invoices_are_checked_in_batches(
    server: RunningServer,
    api: Client,
    record_ids: dict[str, str],
    import_invoice: Put,
    recheck: Recheck,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    invoices = [import_invoice(invoice_number=f"INV-{number}") for number in range(5)]
    monkeypatch.setattr(rechecks, "BATCH_SIZE", 2)
    api.put(f"/participants/{record_ids['participant']}", {"status": "Inactive"})
    api.put(f"/providers/{record_ids['provider']}", {"active": False})
    recheck()
    assert [warnings_of(api, each) for each in invoices] == [["inactive_participant", "inactive_provider"]] * 5


def test_all_open_invoices_are_checked_and_a_restart_continues(
    server: RunningServer, api: Client, import_invoice: Put, check_batch: Recheck, monkeypatch: pytest.MonkeyPatch
) -> None:
    invoices = [import_invoice(invoice_number=f"INV-{number}") for number in range(5)]
    import_invoice(invoice_number="INV-9", claim_status="cancelled")
    plan_manager_id = UUID(api.plan_manager_id)
    make_wrong = "update invoices set errors = true, error_codes = '{check_total}' where plan_manager_id = $1"
    server.run(server.db.execute(make_wrong, plan_manager_id))
    monkeypatch.setattr(rechecks, "BATCH_SIZE", 2)
    monkeypatch.setattr(rechecks, "TURN", 0)  # a batch for each call

    async def enqueue_all() -> None:
        async with server.db.transaction() as tx:
            await recheck_queue.enqueue_all(tx, plan_manager_id)

    def progress() -> tuple[bool, bool, int, int]:
        return server.run(get_progress(server.db, plan_manager_id))[:4]

    server.run(enqueue_all())
    assert progress() == (True, False, 0, 0)
    check_batch()
    assert progress() == (False, True, 5, 0)
    check_batch()
    assert progress() == (False, True, 5, 2)
    assert [warnings_of(api, each) for each in invoices] == [[]] * 2 + [["check_total"]] * 3
    check_batch()
    check_batch()
    assert progress() == (False, False, 5, 5)
    assert [warnings_of(api, each) for each in invoices] == [[]] * 5
    assert server.run(get_progress(server.db, plan_manager_id)).completed_at


def test_a_locked_invoice_is_checked_later(
    server: RunningServer, api: Client, record_ids: dict[str, str], import_invoice: Put, recheck: Recheck
) -> None:
    invoices = [import_invoice(invoice_number=f"INV-{number}") for number in range(3)]
    plan_manager_id = UUID(api.plan_manager_id)
    api.put(f"/participants/{record_ids['participant']}", {"status": "Inactive"})

    async def check_while_locked() -> None:
        async with server.db.transaction() as tx:
            await invoice_store.select_for_update(tx, plan_manager_id, [UUID(invoices[1])])
            await PromptWorker(server.settings)(server.db)

    server.run(check_while_locked())
    assert [bool(warnings_of(api, each)) for each in invoices] == [True, False, False]
    recheck()
    assert [bool(warnings_of(api, each)) for each in invoices] == [True] * 3


def test_a_write_of_the_same_invoices_gets_into_no_deadlock(
    server: RunningServer, api: Client, record_ids: dict[str, str], import_invoice: Put, recheck: Recheck
) -> None:
    """A write of a number locks the invoice and then others with the number, in any order."""
    invoices = [import_invoice(invoice_number="INV-1") for _ in range(6)]
    worker = PromptWorker(server.settings)

    def write_invoices() -> set[int]:
        changes = [(each, f"INV-{round_ % 2}") for round_ in range(6) for each in reversed(invoices)]
        return {api.put(f"/invoices/{id_}", {"invoice_number": number}).status_code for id_, number in changes}

    with ThreadPoolExecutor(1) as threads:
        written, path = threads.submit(write_invoices), f"/participants/{record_ids['participant']}"
        for status in itertools.cycle(["Inactive", "Active"]):
            assert api.put(path, {"status": status}).status_code == 200
            server.run(worker(server.db))
            if written.done() and status == "Active":
                break
        assert written.result() == {200}
    recheck()
    assert not any("inactive_participant" in warnings_of(api, each) for each in invoices)


def test_the_server_checks_by_itself(
    api: Client, record_ids: dict[str, str], import_invoice: Put, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RecheckWorker, "_before", MAX_ID)  # also the newest rows
    invoice = import_invoice()
    api.put(f"/participants/{record_ids['participant']}", {"status": "Inactive"})
    wait_until(lambda: warnings_of(api, invoice) == ["inactive_participant"])


def test_a_participant_that_is_queued_many_times_is_checked_once(server: RunningServer, api: Client) -> None:
    plan_manager_id, often, once = UUID(api.plan_manager_id), uuid7(), uuid7()

    async def enqueue_and_list() -> tuple[list[recheck_queue.QueuedRecheck], list[recheck_queue.QueuedRecheck]]:
        async with server.db.transaction() as tx:
            ctx = context(server, api, tx)
            for participant_id in (often, once, often, often):
                await recheck_queue.enqueue(ctx, "participant", [participant_id])
            before = UUID(int=2**128 - 1)
            return (
                await recheck_store.list_concerned(tx, plan_manager_id, before, 1),
                await recheck_store.list_concerned(tx, plan_manager_id, before, 2),
            )

    first, both = server.run(enqueue_and_list())
    assert [each.participant_id for each in first] == [often] * 3
    assert [each.participant_id for each in both] == [often, once, often, often]


def test_the_age_of_the_queue_is_that_of_its_oldest_row(
    server: RunningServer, api: Client, check_batch: Recheck
) -> None:
    insert = "insert into recheck_queue (plan_manager_id, id, participant_id) values ($1, $2, $2)"
    old = uuid7_lower_bound(datetime.now(UTC) - timedelta(hours=1))
    server.run(server.db.execute(insert, UUID(api.plan_manager_id), old))
    assert 3600 < server.run(queue_age(server.db)) < 3700
    check_batch()
    assert server.run(queue_age(server.db)) < 3600
