"""What a real browser measures of how an invoice is looked at."""

import re
import time
from collections.abc import Callable
from typing import Any
from urllib.parse import parse_qs
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from console.people import Person, enter
from console.test_in_a_browser import chromium, page, pytestmark  # noqa: F401 - fixtures, and when to skip
from plankeeper.invoice_view_sessions import service
from support.client import Client
from support.server import RunningServer, wait_until

SLACK = 2  # seconds by which a figure may be off


@pytest.fixture
def api(new_client: Callable[..., Client], plan_manager_id: UUID) -> Client:
    return new_client(plan_manager_id)


@pytest.fixture
def invoice(api: Client, import_rows: Callable[..., Any]) -> str:
    """The path of its page."""
    ident = str(uuid7())
    assert not import_rows(api, "invoices", [{"id": ident, "invoice_number": "INV-1", "line_items": [{}] * 40}]).bad
    return f"/console/invoices/{ident}"


@pytest.fixture
def sent(page: Any) -> list[tuple[str, dict[str, int]]]:  # noqa: F811 - it is the fixture
    """What the page's script sends: the step, the figures."""
    found: list[tuple[str, dict[str, int]]] = []

    def note(request: Any) -> None:
        step = re.search(r"/(view-session|heartbeat|end)$", request.url)
        if step:
            values = parse_qs(request.post_data or "")
            found.append((step[1], {name: int(each[0]) for name, each in values.items() if name != "csrf"}))

    page.on("request", note)
    return found


@pytest.fixture
def signed_in(page: Any, new_person: Callable[..., Person]) -> Any:  # noqa: F811
    enter(page, new_person("viewer").email)
    page.get_by_role("button", name="Sign out").wait_for()
    return page


def sessions(api: Client) -> list[dict[str, Any]]:
    return api.get("/invoice-view-sessions").json()["data"]


def look_at(page: Any, go: Callable[[], object], api: Client, count: int = 1) -> dict[str, Any]:  # noqa: F811
    """Open the page in some way: the session that it began, once the page knows it too."""
    with page.expect_response(re.compile("/view-session$")) as begin:
        go()
    begin.value.finished()
    page.evaluate("0")
    return begun(api, count)


def begun(api: Client, count: int = 1) -> dict[str, Any]:
    return wait_until(lambda: len(found := sessions(api)) == count and found[-1], 20)


def ended(api: Client, count: int = 1) -> dict[str, Any]:
    return wait_until(lambda: len(found := sessions(api)) == count and found[-1]["session_ended"] and found[-1], 20)


def show(page: Any, state: str) -> None:  # noqa: F811
    """As if another tab were brought to the front, or this one again: a test's page always believes to be there."""
    page.evaluate(
        """state => {
            Object.defineProperty(document, "visibilityState", { value: state, configurable: true });
            document.dispatchEvent(new Event("visibilitychange"));
        }""",
        state,
    )


def stop_the_clock(page: Any) -> None:  # noqa: F811
    """From here on the page's time goes by only where the test says so."""
    page.clock.install(time="2026-01-01T00:00:00")
    page.clock.pause_at("2026-01-01T00:00:01")


def measured(page: Any, sent: Any) -> dict[str, int]:  # noqa: F811
    """What the page has measured so far, which it tells whenever it is shown or hidden."""
    with page.expect_request(re.compile("/heartbeat$")):
        page.evaluate("document.dispatchEvent(new Event('visibilitychange'))")
    return sent[-1][1]


def test_an_invoice_is_looked_at_for_some_seconds(signed_in: Any, api: Client, invoice: str) -> None:
    going = time.monotonic()
    opened = look_at(signed_in, lambda: signed_in.goto(invoice), api)
    assert (opened["session_ended"], opened["invoice_id"]) == (None, invoice.rpartition("/")[2])
    there = time.monotonic()
    signed_in.wait_for_timeout(2500)  # nobody is engaged before the first input
    before_input = time.monotonic()
    for step in range(10):
        signed_in.mouse.move(100 + step, 200)
        signed_in.wait_for_timeout(300)
    leaving = time.monotonic()
    signed_in.get_by_role("link", name="Invoices", exact=True).first.click()
    session = ended(api)
    gone = time.monotonic()
    assert session["session_ended"] == session["last_heartbeat"]
    for name in ("duration_seconds", "active_duration_seconds"):
        assert leaving - there - SLACK <= session[name] <= gone - going
    engaged = session["engaged_duration_seconds"]
    assert leaving - before_input - SLACK <= engaged <= gone - before_input
    assert engaged <= session["active_duration_seconds"] <= session["duration_seconds"]
    assert session["idle_count"] == 0


def test_a_closed_tab_ends_its_session(signed_in: Any, api: Client, invoice: str) -> None:
    tab = signed_in.context.new_page()
    look_at(tab, lambda: tab.goto(invoice), api)
    tab.close(run_before_unload=True)
    assert ended(api)["active_duration_seconds"] < 30


def test_a_reload_ends_one_session_and_begins_another(signed_in: Any, api: Client, invoice: str) -> None:
    first = look_at(signed_in, lambda: signed_in.goto(invoice), api)
    assert look_at(signed_in, signed_in.reload, api, 2)["id"] != first["id"]
    wait_until(lambda: sessions(api)[0]["session_ended"], 20)
    signed_in.goto("/console/invoices")
    ended(api, 2)
    assert look_at(signed_in, signed_in.go_back, api, 3)["session_ended"] is None


def test_a_hidden_page_is_not_active(signed_in: Any, api: Client, invoice: str, sent: Any) -> None:
    stop_the_clock(signed_in)
    look_at(signed_in, lambda: signed_in.goto(invoice), api)
    signed_in.mouse.move(100, 200)
    signed_in.clock.run_for(10_000)
    show(signed_in, "hidden")
    signed_in.clock.run_for(40_000)
    show(signed_in, "visible")
    signed_in.clock.run_for(5_000)
    figures = measured(signed_in, sent)
    signed_in.goto("/console/invoices")
    ended(api)
    assert [step for step, _ in sent].count("view-session") == 1
    assert figures["idle_count"] == 0
    assert abs(figures["active_ms"] - 15_000) <= 5
    assert abs(figures["engaged_ms"] - 15_000) <= 5


def test_who_gives_no_input_for_a_minute_is_idle(signed_in: Any, api: Client, invoice: str, sent: Any) -> None:
    stop_the_clock(signed_in)
    look_at(signed_in, lambda: signed_in.goto(invoice), api)
    for wait in (100_000, 30_000, 100_000):
        signed_in.keyboard.press("Shift")
        signed_in.clock.run_for(wait)
    wait_until(lambda: len(sent) == 1 + 230 // 15)
    beats = [figures for _, figures in sent[1:]]
    assert beats == sorted(beats, key=lambda each: each["active_ms"])
    figures = measured(signed_in, sent)
    signed_in.goto("/console/invoices")
    session = ended(api)
    assert [step for step, _ in sent].count("view-session") == 1
    assert figures["idle_count"] == 2
    assert abs(figures["active_ms"] - 230_000) <= 5
    assert abs(figures["engaged_ms"] - (60_000 + 30_000 + 60_000)) <= 5
    # By the server's clock hardly any time has gone by.
    assert session["active_duration_seconds"] <= session["duration_seconds"] < 60


def test_a_page_without_focus_is_active_and_not_engaged(signed_in: Any, api: Client, invoice: str, sent: Any) -> None:
    stop_the_clock(signed_in)
    look_at(signed_in, lambda: signed_in.goto(invoice), api)
    signed_in.mouse.move(100, 200)
    signed_in.clock.run_for(5_000)
    signed_in.evaluate("document.hasFocus = () => false; dispatchEvent(new Event('blur'))")
    signed_in.mouse.move(120, 200)
    signed_in.clock.run_for(20_000)
    figures = measured(signed_in, sent)
    assert abs(figures["active_ms"] - 25_000) <= 5
    assert abs(figures["engaged_ms"] - 5_000) <= 5


def test_a_tab_that_nobody_has_seen_begins_nothing(signed_in: Any, api: Client, invoice: str, sent: Any) -> None:
    hide = 'Object.defineProperty(document, "visibilityState", { value: "hidden", configurable: true })'
    signed_in.add_init_script(hide)
    signed_in.goto(invoice)
    signed_in.wait_for_load_state("networkidle")
    assert (sent, sessions(api)) == ([], [])
    assert look_at(signed_in, lambda: show(signed_in, "visible"), api)["session_ended"] is None


def test_a_page_whose_session_ended_in_silence_begins_another(
    server: RunningServer, signed_in: Any, api: Client, invoice: str
) -> None:
    stop_the_clock(signed_in)
    first = look_at(signed_in, lambda: signed_in.goto(invoice), api)
    silence = """
        update invoice_view_sessions set session_started = session_started - interval '90 seconds',
            last_heartbeat = last_heartbeat - interval '61 seconds' where id = $1
    """
    server.run(server.db.execute(silence, first["id"]))
    server.run(service.end_stale(server.db, server.settings))
    silent = wait_until(lambda: (found := sessions(api)[0])["session_ended"] and found)
    assert silent["session_ended"] == silent["last_heartbeat"]
    signed_in.clock.run_for(15_000)
    second = begun(api, 2)
    assert (second["id"] != first["id"], second["session_ended"]) == (True, None)


def test_who_is_signed_out_begins_no_more(signed_in: Any, api: Client, invoice: str, sent: Any) -> None:
    stop_the_clock(signed_in)
    look_at(signed_in, lambda: signed_in.goto(invoice), api)
    signed_in.context.clear_cookies()
    with signed_in.expect_response(re.compile("/heartbeat$")) as answer:
        signed_in.clock.run_for(15_000)
    assert answer.value.status in (303, 403)
    signed_in.evaluate("fetch('/console')")  # its answer comes after the script has had the other
    signed_in.clock.run_for(60_000)
    assert [step for step, _ in sent] == ["view-session", "heartbeat"]
    assert len(sessions(api)) == 1
