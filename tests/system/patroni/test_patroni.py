"""The primary fails in every way under load: nothing acknowledged is lost or repeated, and Plankeeper goes on."""

import signal
import time
from collections.abc import Callable, Generator
from contextlib import AbstractContextManager, contextmanager
from uuid import uuid4

import httpx
import pytest

from support.client import PREFIX
from support.program import signal_process
from support.server import wait_until
from system.faults.access import create_credentials
from system.faults.accounts import assert_consistent, list_all
from system.faults.load import Load
from system.patroni.machines import Machine
from system.patroni.site import MAX_WAIT, Site

WRITES = 100  # that are acknowledged before a fault, during it where that is possible, and after it
CLIENTS = 4
Fault = Callable[[Site], AbstractContextManager[None]]


def primary_of(site: Site) -> Machine:
    machine = site.machine("leader")
    assert machine is not None
    return machine


def wait_for_another_primary(site: Site, old: Machine) -> None:
    wait_until(lambda: site.machine("leader") not in (None, old), MAX_WAIT)


@contextmanager
def killed_postmaster(site: Site) -> Generator[None]:
    """Patroni starts PostgreSQL again on the same machine."""
    primary = primary_of(site)
    postmaster = primary.postgresql_processes()[0]
    postmaster.kill()
    wait_until(lambda: primary.postgresql_processes()[:1] not in ([], [postmaster]), MAX_WAIT)
    yield


@contextmanager
def killed_machine(site: Site) -> Generator[None]:
    """A standby takes over when the primary's lease ends."""
    primary = primary_of(site)
    primary.kill()
    wait_for_another_primary(site, primary)
    yield
    primary.start()


@contextmanager
def switchover(site: Site) -> Generator[None]:
    primary = primary_of(site)
    site.patronictl("switchover", "plankeeper", "--leader", primary.name, "--force")
    wait_for_another_primary(site, primary)
    yield


@contextmanager
def restarted_standby(site: Site) -> Generator[None]:
    """The one that commits wait for."""
    standby = site.machine("sync_standby")
    assert standby is not None
    before = standby.postgresql_processes()[0]
    site.patronictl("restart", "plankeeper", standby.name, "--force")
    assert standby.postgresql_processes()[0] != before
    yield


@contextmanager
def paused_postgresql(site: Site) -> Generator[None]:
    """Patroni can't ask PostgreSQL anything, so its lease ends."""
    primary = primary_of(site)
    paused = primary.pause_postgresql()
    wait_for_another_primary(site, primary)
    yield
    for each in paused:
        signal_process(each, signal.SIGCONT)


@contextmanager
def killed_patroni(site: Site) -> Generator[None]:
    """PostgreSQL stays a primary until Patroni is back. Nobody may use it."""
    primary = primary_of(site)
    postmaster = primary.postgresql_processes()[0]
    primary.kill_patroni()
    wait_for_another_primary(site, primary)
    yield
    assert primary.postgresql_processes()[0] == postmaster
    primary.start_patroni()


FAULTS: dict[str, tuple[Fault, str]] = {
    "kill -9 of the primary's postmaster": (killed_postmaster, "loop_wait 5 s, and the recovery of PostgreSQL"),
    "kill -9 of the primary's machine": (killed_machine, "ttl 20 s"),
    "switchover": (switchover, "none"),
    "restart of the synchronous standby": (restarted_standby, "loop_wait 5 s"),
    "all processes of the primary's PostgreSQL stopped": (paused_postgresql, "ttl 20 s"),
    "kill -9 of the primary's Patroni": (killed_patroni, "ttl 20 s"),
}


@pytest.mark.parametrize("name", FAULTS)
def test_no_acknowledged_write_is_lost_or_repeated(site: Site, name: str, rounds: int) -> None:
    for number in range(rounds):
        run_round(site, name, number)


def run_round(site: Site, name: str, number: int) -> None:
    fault, limit = FAULTS[name]
    site.wait_until_healthy()
    processes = site.processes()
    access = create_credentials(site.dsn)
    with httpx.Client(base_url=site.url() + PREFIX, headers=access.headers, timeout=60) as http:
        create_endpoint(http, site.webhook_url)
        load = Load(site.url, access, CLIENTS, number, request_timeout=MAX_WAIT, max_pause=0.05)
        wait_for_writes(load)
        began = time.monotonic()
        with fault(site):
            wait_for_writes(load)
        site.wait_until_healthy()
        wait_for_writes(load)
        gap = load.longest_gap(began)
        answers = ", ".join(f"{count} x {answer}" for answer, count in load.unanswered.items()) or "no errors"
        label = f"{name}: {gap:.1f} s without an acknowledged write (limit of Patroni: {limit}), {answers}"
        assert_consistent(load, site.dsn, label)
        feed = [*list_all(http, "/events")]
    created_at = [each["type"] for each in feed].index("webhook_endpoint.created")
    expected = {each["id"] for each in feed[created_at + 1 :]}  # an endpoint gets what happens after its creation
    assert len(expected) >= load.acknowledged
    wait_until(lambda: site.received.issuperset(expected), MAX_WAIT)
    assert site.processes() == processes
    assert site.errors() == []


def create_endpoint(http: httpx.Client, url: str) -> None:
    """A server may notice only with this request that its connections are to the old primary."""
    headers = {"Idempotency-Key": str(uuid4())}
    body = {"url": url, "event_types": ["*"]}
    wait_until(lambda: http.post("/webhook-endpoints", json=body, headers=headers).is_success, MAX_WAIT)


def wait_for_writes(load: Load) -> None:
    before = load.acknowledged
    wait_until(lambda: load.acknowledged > before + WRITES or load.errors, MAX_WAIT)
    assert load.errors == []
