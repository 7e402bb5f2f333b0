"""The durations of an invoice view session in a real browser."""

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs

import pytest
from uuid_utils.compat import uuid7

from plankeeper.resources.invoice_view_sessions import service
from support.chromium import pause_clock
from support.client import Client
from support.console import Account, add_session
from support.server import RunningServer, wait_until

TOLERANCE = 2  # seconds by which a figure may be off


@pytest.fixture
def invoice_path(client: Client, import_rows: Callable[..., Any]) -> str:
    """The path of its page."""
    ident = str(uuid7())
    assert not import_rows(
        client, "invoices", [{"id": ident, "invoice_number": "INV-1", "line_items": [{}] * 40}]
    ).errors
    return f"/console/invoices/{ident}"


@pytest.fixture
def reports(fresh_page: Any) -> list[tuple[str, dict[str, int]]]:
    """The heartbeats of the page's script: the step and the durations."""
    recorded: list[tuple[str, dict[str, int]]] = []

    def record(request: Any) -> None:
        step = re.search(r"/(view-session|heartbeat|end)$", request.url)
        if step:
            values = parse_qs(request.post_data or "")
            recorded.append((step[1], {name: int(each[0]) for name, each in values.items() if name != "csrf"}))

    fresh_page.on("request", record)
    return recorded


@pytest.fixture
def viewer_page(fresh_page: Any, server: RunningServer, new_account: Callable[..., Account]) -> Any:
    add_session(fresh_page.context, server, new_account("viewer"))
    return fresh_page


def list_sessions(client: Client) -> list[dict[str, Any]]:
    return client.get("/invoice-view-sessions").json()["data"]


def open_invoice(page: Any, go: Callable[[], object], client: Client, count: int = 1) -> dict[str, Any]:
    """Open the page in some way: the session that it began, once the page knows it too."""
    with page.expect_response(re.compile("/view-session$")) as begin:
        go()
    begin.value.finished()
    page.evaluate("0")
    return wait_for_start(client, count)


def wait_for_start(client: Client, count: int = 1) -> dict[str, Any]:
    return wait_until(lambda: len(found := list_sessions(client)) == count and found[-1])


def wait_for_end(client: Client, count: int = 1) -> dict[str, Any]:
    return wait_until(lambda: len(found := list_sessions(client)) == count and found[-1]["session_ended"] and found[-1])


def set_visibility(page: Any, state: str) -> None:
    """As if another tab were brought to the front, or this one again: a test's page always believes to be there."""
    page.evaluate(
        """state => {
            Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def move_pointer(page: Any) -> None:
    """Where a pointer is first seen, it may have been at rest: it takes a second place to be moved."""
    page.mouse.move(100, 200)
    page.mouse.move(110, 200)


def current_durations(page: Any, reports: Any) -> dict[str, int]:
    """The durations so far, which the page sends when it is shown or hidden."""
    with page.expect_request(re.compile("/heartbeat$")):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    return reports[-1][1]


def test_viewing_an_invoice_is_measured(viewer_page: Any, client: Client, invoice_path: str) -> None:
    going = time.monotonic()
    opened = open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    assert (opened["session_ended"], opened["invoice_id"]) == (None, invoice_path.rpartition("/")[2])
    there = time.monotonic()
    viewer_page.wait_for_timeout(2500)  # nobody is engaged before the first input
    before_input = time.monotonic()
    move_pointer(viewer_page)
    after_input = time.monotonic()
    viewer_page.wait_for_timeout(3000)
    leaving = time.monotonic()
    viewer_page.get_by_role("link", name="Invoices", exact=True).first.click()
    session = wait_for_end(client)
    gone = time.monotonic()
    assert session["session_ended"] == session["last_heartbeat"]
    for name in ("duration_seconds", "active_duration_seconds"):
        assert leaving - there - TOLERANCE <= session[name] <= gone - going
    engaged = session["engaged_duration_seconds"]
    assert leaving - after_input - TOLERANCE <= engaged <= gone - before_input
    assert engaged <= session["active_duration_seconds"] <= session["duration_seconds"]
    assert session["idle_count"] == 0


def test_a_pointer_at_rest_is_no_input(viewer_page: Any, client: Client, invoice_path: str, reports: Any) -> None:
    pause_clock(viewer_page)
    open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    viewer_page.mouse.move(0, 0)  # what Chromium itself sends now and then, for a page that appears under the pointer
    viewer_page.clock.run_for(5_000)
    viewer_page.mouse.move(0, 0)
    viewer_page.clock.run_for(5_000)
    assert current_durations(viewer_page, reports)["engaged_ms"] == 0
    set_visibility(viewer_page, "hidden")
    set_visibility(viewer_page, "visible")
    viewer_page.mouse.move(200, 100)  # to where it was moved on another page
    viewer_page.clock.run_for(5_000)
    assert current_durations(viewer_page, reports)["engaged_ms"] == 0
    viewer_page.mouse.move(201, 100)
    viewer_page.clock.run_for(5_000)
    assert abs(current_durations(viewer_page, reports)["engaged_ms"] - 5_000) <= 5


def test_a_closed_tab_ends_its_session(viewer_page: Any, client: Client, invoice_path: str) -> None:
    tab = viewer_page.context.new_page()
    open_invoice(tab, lambda: tab.goto(invoice_path), client)
    tab.close(run_before_unload=True)
    assert wait_for_end(client)["active_duration_seconds"] < 30


def test_a_reload_ends_one_session_and_starts_another(viewer_page: Any, client: Client, invoice_path: str) -> None:
    first = open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    assert open_invoice(viewer_page, viewer_page.reload, client, 2)["id"] != first["id"]
    wait_until(lambda: list_sessions(client)[0]["session_ended"])
    viewer_page.goto("/console/invoices")
    wait_for_end(client, 2)
    assert open_invoice(viewer_page, viewer_page.go_back, client, 3)["session_ended"] is None


def test_a_hidden_page_is_not_active(viewer_page: Any, client: Client, invoice_path: str, reports: Any) -> None:
    pause_clock(viewer_page)
    open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    move_pointer(viewer_page)
    viewer_page.clock.run_for(10_000)
    set_visibility(viewer_page, "hidden")
    viewer_page.clock.run_for(40_000)
    set_visibility(viewer_page, "visible")
    viewer_page.clock.run_for(5_000)
    figures = current_durations(viewer_page, reports)
    viewer_page.goto("/console/invoices")
    wait_for_end(client)
    assert [step for step, _ in reports].count("view-session") == 1
    assert figures["idle_count"] == 0
    assert abs(figures["active_ms"] - 15_000) <= 5
    assert abs(figures["engaged_ms"] - 15_000) <= 5


def test_a_minute_without_input_counts_as_idle(
    viewer_page: Any, client: Client, invoice_path: str, reports: Any
) -> None:
    pause_clock(viewer_page)
    open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    for wait in (100_000, 30_000, 100_000):
        viewer_page.keyboard.press("Shift")
        viewer_page.clock.run_for(wait)
    wait_until(lambda: len(reports) == 1 + 230 // 15)
    beats = [figures for _, figures in reports[1:]]
    assert beats == sorted(beats, key=lambda each: each["active_ms"])
    figures = current_durations(viewer_page, reports)
    viewer_page.goto("/console/invoices")
    session = wait_for_end(client)
    assert [step for step, _ in reports].count("view-session") == 1
    assert figures["idle_count"] == 2
    assert abs(figures["active_ms"] - 230_000) <= 5
    assert abs(figures["engaged_ms"] - (60_000 + 30_000 + 60_000)) <= 5
    # By the server's clock hardly any time has gone by.
    assert session["active_duration_seconds"] <= session["duration_seconds"] < 60


def test_a_page_without_focus_is_active_and_not_engaged(
    viewer_page: Any, client: Client, invoice_path: str, reports: Any
) -> None:
    pause_clock(viewer_page)
    open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    move_pointer(viewer_page)
    viewer_page.clock.run_for(5_000)
    viewer_page.evaluate("document.hasFocus = () => false; dispatchEvent(new Event('blur'))")
    viewer_page.mouse.move(120, 200)
    viewer_page.clock.run_for(20_000)
    figures = current_durations(viewer_page, reports)
    assert abs(figures["active_ms"] - 25_000) <= 5
    assert abs(figures["engaged_ms"] - 5_000) <= 5


def test_a_background_tab_starts_no_session(viewer_page: Any, client: Client, invoice_path: str, reports: Any) -> None:
    hide = 'Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })'
    viewer_page.add_init_script(hide)
    viewer_page.goto(invoice_path)
    viewer_page.wait_for_load_state("networkidle")
    assert (reports, list_sessions(client)) == ([], [])
    assert open_invoice(viewer_page, lambda: set_visibility(viewer_page, "visible"), client)["session_ended"] is None


def test_a_page_starts_a_new_session_after_a_timeout(
    server: RunningServer, viewer_page: Any, client: Client, invoice_path: str
) -> None:
    pause_clock(viewer_page)
    first = open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    silence = """
        update invoice_view_sessions set session_started = session_started - interval '90 seconds',
            last_heartbeat = last_heartbeat - interval '61 seconds' where id = $1
    """
    server.run(server.db.execute(silence, first["id"]))
    server.run(service.end_stale(server.db, server.settings))
    silent = wait_until(lambda: (found := list_sessions(client)[0])["session_ended"] and found)
    assert silent["session_ended"] == silent["last_heartbeat"]
    viewer_page.clock.run_for(15_000)
    second = wait_for_start(client, 2)
    assert (second["id"] != first["id"], second["session_ended"]) == (True, None)


def test_no_session_starts_after_sign_out(viewer_page: Any, client: Client, invoice_path: str, reports: Any) -> None:
    pause_clock(viewer_page)
    open_invoice(viewer_page, lambda: viewer_page.goto(invoice_path), client)
    viewer_page.context.clear_cookies()
    with viewer_page.expect_response(re.compile("/heartbeat$")) as response:
        viewer_page.clock.run_for(15_000)
    assert response.value.status in (303, 403)
    viewer_page.evaluate("fetch('/console')")  # its answer comes after the script has had the other
    viewer_page.clock.run_for(60_000)
    assert [step for step, _ in reports] == ["view-session", "heartbeat"]
    assert len(list_sessions(client)) == 1
