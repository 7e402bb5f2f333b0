"""Lines that a batch has left out are new again when the missing value of a record or a setting is supplied."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from functools import partial
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.context import SYSTEM, WriteContext
from plankeeper.resources.invoices import recheck_store
from plankeeper.resources.office_settings import service as office_settings
from support.claims import NDIS_NUMBER, REGISTRATION_NUMBER, Office
from support.client import Client
from support.rechecks import PromptWorker, recheck_at_once, stop_server_rechecks
from support.server import RunningServer
from support.supplier_statements import record_statement

Invoice = dict[str, Any]
TAXED = {"gst_code": "P1", "unit_price": 100}


@pytest.fixture
def office(server: RunningServer, api: Client, monkeypatch: pytest.MonkeyPatch) -> Office:
    stop_server_rechecks(monkeypatch)
    return Office(server, api)


@pytest.fixture
def resolve(office: Office) -> Callable[..., list[str]]:
    """Leave the lines of an invoice out of a batch, and make the write: their states before and after the check."""

    def states(invoice: Invoice) -> list[str]:
        return [each["claim_status"] for each in office.read(invoice)["line_items"]]

    def check(invoice: Invoice, write: Callable[[], object]) -> list[str]:
        office.claim(invoice, office.invoice(f"other than {invoice['invoice_number']}"))
        recheck_at_once(office.server)
        before = states(invoice)
        write()
        recheck_at_once(office.server)
        return [*before, *states(invoice)]

    return check


def set_setting(office: Office, name: str, value: object) -> None:
    async def save() -> None:
        async with office.server.db.transaction() as tx:
            ctx = WriteContext(tx, office.plan_manager_id, office.server.settings, SYSTEM)
            assert await office_settings.set_values(ctx, {name: value})

    office.server.run(save())


def test_an_ndis_number_ends_the_flags_of_lines_that_lack_nothing_else(
    office: Office, resolve: Callable[..., list[str]]
) -> None:
    person = office.participant_with(first_name="Robin")
    invoice = office.invoice("1", office.line(), office.line(service_item_number=None), participant_id=person)
    path = f"/participants/{person}"
    states = resolve(invoice, lambda: office.client.put(path, {"participant_number": NDIS_NUMBER[:-1]}))
    assert states == ["flagged"] * 4
    states = resolve(invoice, lambda: office.client.put(path, {"participant_number": "430205409"}))
    assert states == ["flagged", "flagged", "new", "flagged"]
    assert office.read(invoice)["claim_status"] == "flagged"


def test_an_abn_or_a_statement_ends_the_flag(office: Office, resolve: Callable[..., list[str]]) -> None:
    provider = office.provider_with(entity_name="Small supplier")
    for number, write in {
        "1": lambda: office.client.put(f"/providers/{provider}", {"abn": "53004085616"}),
        "2": lambda: office.server.run(record_statement(office.server, office.plan_manager_id, UUID(provider))),
    }.items():
        assert office.client.put(f"/providers/{provider}", {"abn": None}).is_success
        assert resolve(office.invoice(number, pm_provider_id=provider), write) == ["flagged", "new"]


def test_a_setting_ends_the_flag(office: Office, resolve: Callable[..., list[str]]) -> None:
    first, second = (
        office.invoice(str(count), office.line(**TAXED | {"quantity": count, "total_price": 100 * count}),
            tax=10 * count, total=110 * count)
        for count in (1, 2)
    )  # fmt: skip
    assert resolve(first, lambda: set_setting(office, "prices_include_gst", False)) == ["flagged", "new"]
    set_setting(office, "prices_include_gst", None)
    assert resolve(second, lambda: set_setting(office, "registration_number", None)) == ["flagged", "flagged"]
    assert resolve(second, lambda: set_setting(office, "prices_include_gst", True)) == ["flagged", "flagged"]
    write = partial(set_setting, office, "registration_number", REGISTRATION_NUMBER)
    assert resolve(second, write) == ["flagged", "new"]


def test_another_check_leaves_a_flag_without_a_known_cause(office: Office) -> None:
    flagged = {"claim_status": "flagged"}
    id_ = str(uuid7())
    office.import_rows("invoices", office.values("1", office.line(**flagged), id=id_, **flagged))
    assert office.client.put(f"/participants/{office.participant}", {"state": "NSW"}).is_success
    recheck_at_once(office.server)
    assert office.read({"id": id_})["claim_status"] == "flagged"


def make_older(office: Office) -> None:
    """Let the plan manager be from yesterday."""
    yesterday = datetime.now(UTC) - timedelta(days=1)
    office.execute("update plan_managers set created_at = $2 where id = $1", office.plan_manager_id, yesterday)


def test_a_new_day_ends_the_flag_of_a_service_that_was_in_the_future(
    office: Office, resolve: Callable[..., list[str]]
) -> None:
    today = office.server.settings.today
    later = (today + timedelta(days=1)).isoformat()
    invoice = office.invoice("1", office.line(service_date_from=later, service_date_to=later))

    def let_a_day_pass() -> None:
        office.execute(
            "update invoice_lines set service_date_from = $2, service_date_to = $2 where plan_manager_id = $1",
            *(office.plan_manager_id, today),
        )
        make_older(office)
        office.execute(
            "update recheck_state set started_at = $2 where plan_manager_id = $1",
            *(office.plan_manager_id, datetime.now(UTC) - timedelta(days=1)),
        )
        office.server.run(PromptWorker(office.server.settings)(office.server.db))

    def is_in_future() -> bool:
        return "service_in_future" in office.read(invoice)["state_management"]["errors"]

    assert is_in_future()
    assert resolve(invoice, let_a_day_pass) == ["flagged", "new"]
    assert not is_in_future()
    assert office.read(invoice)["claim_status"] == "new"


def test_invoices_are_checked_once_a_day(office: Office) -> None:
    def checks() -> list[tuple[datetime, bool]]:
        """When the check of all invoices was started, and whether it has ended."""
        state = office.server.run(recheck_store.get_state(office.server.db, office.plan_manager_id))
        return [(state.started_at, state.position is None)] if state else []

    worker = PromptWorker(office.server.settings)
    office.invoice("1")
    office.server.run(worker(office.server.db))
    assert checks() == []  # the plan manager is new
    make_older(office)
    office.server.run(worker(office.server.db))
    assert checks() == []  # the worker has seen this day
    for _ in range(3):
        office.server.run(PromptWorker(office.server.settings)(office.server.db))
    [(started_at, is_done)] = checks()
    assert is_done
    office.server.run(PromptWorker(office.server.settings)(office.server.db))
    assert checks() == [(started_at, True)]
