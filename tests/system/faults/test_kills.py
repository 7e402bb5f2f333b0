"""kill -9 at random moments under mixed load: nothing acknowledged is lost, nothing is done twice."""

import random
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import psutil
import pytest

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.citus import CitusTrio, citus_trio
from support.cluster import as_owner
from support.mail import PUBLIC_URL, MailServer
from support.program import ServeProcess, command_line, kill_all, run_program, shared_key_file
from support.server import wait_until
from system.faults.access import Credentials, create_credentials
from system.faults.accounts import assert_consistent
from system.faults.invoices import InvoiceWriter, compare_invoices
from system.faults.load import Load
from system.faults.money import MoneyOffice, compare_money
from system.faults.statements import StatementRunOffice, compare_run

# A round kills one of ours, then one of PostgreSQL's; two rounds have met every kind but the last.
PLANKEEPER_TARGETS = ("worker", "server", "everything")
POSTGRESQL_TARGETS = ("postmaster", "backend")
PLANS_BETWEEN_KILLS = 15  # statements that must be made before the next kill
CITUS_TARGETS = ("worker1", "coordinator", "worker2")
WRITES_BETWEEN_KILLS = 30  # writes that must be acknowledged before the next kill


class Killable(Protocol):
    """A running service, of which parts can be killed."""

    serving: ServeProcess
    targets: tuple[tuple[str, ...], ...]  # a round kills one of each

    def kill(self, kind: str) -> None: ...


class Service:
    """`plankeeper serve` with a database of its own: killed in part or whole, and started again if it has to be."""

    targets = (PLANKEEPER_TARGETS, POSTGRESQL_TARGETS)

    def __init__(self, folder: Path, chance: random.Random, **settings: str) -> None:
        self._folder = folder
        self._random = chance
        self._settings = {"PLANKEEPER_RATE_LIMIT": "10000000/minute"} | settings
        self.serving = ServeProcess(folder, workers=2, **self._settings)

    @property
    def address(self) -> str:
        return self.serving.url

    @property
    def cluster(self) -> Cluster:
        shared = Cluster(self._folder)
        assert not shared.ensure()
        return shared

    @property
    def dsn(self) -> str:
        return self.cluster.dsn

    def access(self, *scopes: str) -> Credentials:
        return create_credentials(self.dsn, scopes or ("read", "write"))

    def kill(self, kind: str) -> None:
        family = self.serving.child_processes()
        if kind == "worker":
            kill_all([self._random.choice(self.serving.workers())])
        elif kind == "postmaster":
            self.serving.postmaster().kill()
        elif kind == "backend":
            kill_all([self._random.choice(backends(self.serving.postmaster()))])
        else:
            self.serving.process.kill()
            kill_all(family if kind == "everything" else ())
            # PostgreSQL writes a checkpoint before it ends: more than 20 seconds on a busy disk.
            _, alive = psutil.wait_procs(family, timeout=120)
            assert not alive, alive
            self.serving.wait_for_exit()
            self.serving = ServeProcess(self._folder, workers=2, **self._settings)


def backends(postmaster: psutil.Process) -> list[psutil.Process]:
    """PostgreSQL's processes that serve a connection of ours."""
    return [each for each in postmaster.children() if " plankeeper " in " ".join(command_line(each))]


class CitusService:
    """`plankeeper serve` on Citus; its nodes are killed too, and started again."""

    targets = (PLANKEEPER_TARGETS, CITUS_TARGETS)

    def __init__(self, trio: CitusTrio, folder: Path, chance: random.Random) -> None:
        self._trio = trio
        self._folder = folder
        self._random = chance
        dsn = trio.new_database()
        self.owner_dsn = as_owner(dsn)
        self.settings = {"PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file())}
        addresses = self.settings | {"PLANKEEPER_OWNER_DATABASE_URL": self.owner_dsn}
        done = run_program("distribute", "--shards", "8", **addresses)
        assert done.returncode == 0, done
        self.serving = self._start()

    def _start(self) -> ServeProcess:
        return ServeProcess(self._folder, workers=2, PLANKEEPER_RATE_LIMIT="10000000/minute", **self.settings)

    def kill(self, kind: str) -> None:
        if kind in CITUS_TARGETS:
            self._trio.kill(kind)
            self._trio.up()
        elif kind == "worker":
            kill_all([self._random.choice(self.serving.workers())])
        else:
            family = self.serving.child_processes()
            self.serving.process.kill()
            kill_all(family if kind == "everything" else ())
            _, alive = psutil.wait_procs(family, timeout=120)
            assert not alive, alive
            self.serving.wait_for_exit()
            self.serving = self._start()


def kill_repeatedly(service: Killable, load: Load, rounds: int, chance: random.Random) -> str:
    """Kill, and wait until writes are acknowledged again. Returns what was killed, and the longest silences."""
    wait_until(lambda: load.acknowledged > WRITES_BETWEEN_KILLS or load.errors)
    kills: Counter[str] = Counter()
    gaps: dict[str, float] = {}
    for number in range(rounds):
        for kind in (each[number % len(each)] for each in service.targets):
            time.sleep(chance.uniform(0.1, 1))
            before, moment = load.acknowledged, time.monotonic()
            service.kill(kind)
            wait_until(lambda before=before: load.acknowledged > before + WRITES_BETWEEN_KILLS or load.errors, 180)
            if load.errors:  # pytest shows why
                sys.stdout.write("\n".join(each for each in service.serving.lines if '"level":"error"' in each))
            assert load.errors == [], (kind, load.errors)
            wait_until(lambda: len(service.serving.workers()) == 2)
            kills[kind] += 1
            gaps[kind] = max(load.longest_gap(moment), gaps.get(kind, 0))
    reported = ", ".join(f"{count} x {kind} (longest silence {gaps[kind]:.1f} s)" for kind, count in kills.items())
    return f"{rounds} rounds, killed: {reported}"


def test_no_acknowledged_write_is_lost_or_duplicated_by_kills(folder: Path, rounds: int) -> None:
    chance = random.Random(4)
    service = Service(folder, chance)
    load = Load(lambda: service.address, service.access())
    assert_consistent(load, service.dsn, kill_repeatedly(service, load, rounds, chance))
    assert service.serving.stop() == 0


def test_no_acknowledged_invoice_or_document_is_lost_or_duplicated_by_kills(folder: Path, rounds: int) -> None:
    chance = random.Random(5)
    service = Service(folder, chance)
    load = Load(lambda: service.address, service.access(), writer=InvoiceWriter)
    report = kill_repeatedly(service, load, rounds, chance)
    result = compare_invoices(load, service.cluster.owner_dsn, folder / "documents")
    sys.stdout.write(f"{report}: {result}\n")
    assert (result.lost, result.doubled, result.wrong_documents, result.orphans) == (0, 0, 0, 0)
    assert result.documents > 0
    assert service.serving.stop() == 0


def test_no_claim_or_payment_is_lost_or_doubled_by_kills(folder: Path, rounds: int) -> None:
    chance = random.Random(6)
    service = Service(folder, chance)
    access = service.access("read", "write", "claims", "payments")
    office = MoneyOffice(lambda: service.address, access, folder)
    load = Load(lambda: service.address, access, writer=office.new_writer)
    report = kill_repeatedly(service, load, rounds, chance)
    result = compare_money(load, service.cluster.owner_dsn)
    sys.stdout.write(f"{report}: {result}\n")
    assert (result.differing_lines, result.broken_rules, result.differing_counts) == ({}, {}, {})
    assert result.paid_out > 0
    assert service.serving.stop() == 0


def test_a_run_of_statements_sends_each_once_whatever_is_killed(folder: Path, rounds: int) -> None:
    chance = random.Random(7)
    kinds = [*PLANKEEPER_TARGETS, *POSTGRESQL_TARGETS] * 4 if rounds > 2 else ["everything", "worker", "postmaster"]
    with MailServer() as mail:
        service = Service(folder, chance, PLANKEEPER_SMTP_URL=mail.url(), PLANKEEPER_PUBLIC_URL=PUBLIC_URL)
        office = StatementRunOffice(service.address, service.access(), (len(kinds) + 1) * PLANS_BETWEEN_KILLS)
        for number, kind in enumerate(kinds):
            enough = number * PLANS_BETWEEN_KILLS + chance.randrange(PLANS_BETWEEN_KILLS)
            wait_until(lambda enough=enough: handled(office.read(service.address)) >= enough)
            service.kill(kind)
        wait_until(lambda: office.read(service.address)["state"] == "ended", 180)
        result = compare_run(office, service.cluster.owner_dsn, mail)
        assert service.serving.stop() == 0
    sys.stdout.write(f"killed {len(kinds)} times: {result}\n")
    assert (result.statements, result.doubled, result.missing) == (len(office.emails), [], [])
    assert result.without_mail == []
    # A mail that the mail server took from a sender that was killed before it recorded so is sent again.
    assert result.repeated_mails <= len(kinds)


def handled(run: dict[str, Any]) -> int:
    """The number of a run's items."""
    return sum(run[state] for state in ("made", "sent", "to_print", "skipped", "failed"))


@pytest.fixture
def trio() -> Iterator[CitusTrio]:
    with citus_trio() as running:
        yield running


@pytest.mark.usefixtures("full_run_only")
def test_no_claim_or_payment_is_lost_or_doubled_by_kills_on_citus(trio: CitusTrio, folder: Path, rounds: int) -> None:
    chance = random.Random(7)
    service = CitusService(trio, folder, chance)
    access = create_credentials(service.settings["PLANKEEPER_DATABASE_URL"], ("read", "write", "claims", "payments"))
    office = MoneyOffice(lambda: service.serving.url, access, folder, **service.settings)
    load = Load(lambda: service.serving.url, access, writer=office.new_writer)
    report = kill_repeatedly(service, load, rounds, chance)
    result = compare_money(load, service.owner_dsn)
    sys.stdout.write(f"{report}: {result}\n")
    assert (result.differing_lines, result.broken_rules, result.differing_counts) == ({}, {}, {})
    assert result.paid_out > 0
    assert service.serving.stop() == 0
