"""The supervisor of a server that a signal stops before it is ready."""

import os
import signal
from collections.abc import Iterator
from threading import Event
from types import SimpleNamespace
from typing import Any

import pytest
from uvicorn.supervisors.multiprocess import SIGNALS, Multiprocess

from plankeeper.server.supervisor import Supervisor


@pytest.fixture(autouse=True)
def handlers() -> Iterator[None]:
    """The supervisor sets handlers of all these signals."""
    before = {number: signal.getsignal(number) for number in SIGNALS}
    yield
    for number, handler in before.items():
        signal.signal(number, handler)


class LoadingWorker:
    """A worker that isn't ready when the signal comes."""

    def __init__(self, number: int) -> None:
        self.is_killed = False
        self.process = SimpleNamespace(kill=self.kill)
        self._number = number

    def wait_until_ready(self, _timeout: float, should_exit: Event) -> bool:
        os.kill(os.getpid(), self._number)
        assert should_exit.wait(60)
        return False

    def is_ready(self, timeout: float) -> bool:
        return timeout < 0

    def kill(self) -> None:
        self.is_killed = True


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_worker_that_loads_its_modules_is_not_waited_for(number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    workers = [LoadingWorker(number), LoadingWorker(number)]
    announced: list[str] = []
    unused: Any = SimpleNamespace(workers=2, ensure=lambda: None)

    def init_processes(supervisor: Any) -> None:
        supervisor.processes = workers

    monkeypatch.setattr(Multiprocess, "init_processes", init_processes)
    supervisor = Supervisor(unused, unused, None, unused, unused, lambda: announced.append("ready"), drain_delay=30)
    supervisor.init_processes()
    assert (supervisor.should_exit.is_set(), announced) == (True, [])
    assert [each.is_killed for each in workers] == [True, True]
