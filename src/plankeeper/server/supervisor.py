"""Supervises the processes of a server: uvicorn's workers, the webhook process, the embedded PostgreSQL."""

import signal
import socket
import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from multiprocessing import get_context, resource_tracker
from multiprocessing.context import SpawnProcess
from threading import Event
from typing import Any

import uvicorn
from uvicorn.supervisors.multiprocess import Multiprocess

from plankeeper.core import logs, metrics
from plankeeper.core.server_folder import ServerFolder
from plankeeper.server.embedded_postgres.binaries import ClusterError
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.server.metrics import ProcessMetrics, hand_over
from plankeeper.server.webhook_process import run_as_sidecar

log = logs.log

DRAIN_SECONDS = 10
_READY_TIMEOUT = 60


class WebhookProcess:
    """The process that sends webhooks, unless it is disabled."""

    def __init__(self, *, enabled: bool) -> None:
        self._enabled = enabled
        self._process: SpawnProcess | None = None

    def ensure(self) -> None:
        """Start the process if it is not running."""
        if not self._enabled or (self._process and self._process.is_alive()):
            return
        previous = self._process
        self._process = get_context("spawn").Process(target=run_as_sidecar, name="plankeeper webhook-worker")
        self._process.start()
        if previous:
            hand_over(previous.pid, self._process.pid)
            metrics.WORKER_RESTARTS.labels("webhook").inc()

    @property
    def is_alive(self) -> bool:
        return self._process is not None and self._process.is_alive()

    def terminate(self) -> None:
        self._enabled = False
        if self._process:
            self._process.terminate()

    def join(self) -> None:
        """Wait until the deliveries in progress are finished."""
        if self._process:
            self._process.join(DRAIN_SECONDS + 5)
            self._process.kill()


class Supervisor(Multiprocess):
    """uvicorn's supervisor, which replaces dead workers, extended to the webhook process and the embedded PostgreSQL.

    `on_ready` is called once, when the first worker accepts requests. `drain_delay`: after SIGTERM, the server serves
    for so many seconds, while `/readyz` returns 503. A second signal stops it at once.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        sock: socket.socket,
        cluster: Cluster | None,
        folder: ServerFolder,
        webhook_process: WebhookProcess,
        on_ready: Callable[[], None],
        *,
        drain_delay: int,
    ) -> None:
        super().__init__(config, [sock])
        self._cluster = cluster
        self._folder = folder
        self._drain_delay = drain_delay
        self._drained_at: float | None = None
        self._webhook_process = webhook_process
        self._on_ready = on_ready
        self._metrics = ProcessMetrics("supervisor")
        self._is_stop_requested = Event()
        for number in (signal.SIGINT, signal.SIGTERM):
            signal.signal(number, self._request_stop)

    def _request_stop(self, number: int, _frame: object) -> None:
        self.signal_queue.append(number)
        self._is_stop_requested.set()

    def init_processes(self) -> None:
        with _interrupts_blocked():
            super().init_processes()
            self._webhook_process.ensure()
        is_ready = self.processes[0].wait_until_ready(_READY_TIMEOUT, self._is_stop_requested)
        if self._is_stop_requested.is_set():
            if not is_ready:
                self._stop_loading()
        elif is_ready:
            self._on_ready()
        else:
            log.error("no worker is ready yet")

    def _stop_loading(self) -> None:
        """Stop before the server is ready. A worker that loads its modules would finish that before it ends."""
        for process in self.processes:
            if not process.is_ready(timeout=1):
                process.process.kill()
        self.should_exit.set()

    def handle_term(self) -> None:
        if self._drained_at is None and self._drain_delay:
            self._folder.begin_draining()
            self._drained_at = time.monotonic() + self._drain_delay
            log.info("the server is draining", extra={"seconds": self._drain_delay})
        else:
            super().handle_term()

    def keep_subprocess_alive(self) -> None:
        if self._drained_at is not None and time.monotonic() >= self._drained_at:
            self.should_exit.set()
        self._folder.ensure()
        if self._cluster:
            _ensure_cluster(self._cluster.ensure)
        previous_pids = [process.pid for process in self.processes]
        with _interrupts_blocked():
            if not self.should_exit.is_set():
                self._webhook_process.ensure()
            super().keep_subprocess_alive()
        for previous_pid, process in zip(previous_pids, self.processes, strict=True):
            if process.pid != previous_pid:
                hand_over(previous_pid, process.pid)
                log.error("a worker ended unexpectedly and is replaced", extra={"pid": previous_pid})
                metrics.WORKER_RESTARTS.labels("api").inc()
        self._update_metrics()

    def _update_metrics(self) -> None:
        metrics.WORKERS.labels("api").set(sum(process.process.is_alive() for process in self.processes))
        metrics.WORKERS.labels("webhook").set(self._webhook_process.is_alive)
        self._metrics.update()

    def terminate_all(self) -> None:
        # Otherwise, the system would accept connections until this process ends, without a worker to serve them.
        for sock in self.sockets:
            sock.close()
        self._webhook_process.terminate()
        super().terminate_all()

    def join_all(self) -> None:
        super().join_all()
        self._webhook_process.join()


@contextmanager
def _interrupts_blocked() -> Generator[None]:
    """Block SIGINT in the processes that are started here: at Ctrl-C, a terminal sends it to every process.

    The supervisor stops them with SIGTERM. A process that is still loading its modules would print a traceback.
    """
    resource_tracker.ensure_running()  # the first process starts it otherwise, which unblocks SIGINT
    previous = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, previous)


def _ensure_cluster(ensure: Callable[[], Any]) -> None:
    """Restart the cluster if it died. After an error, the next call, half a second later, tries again."""
    try:
        if ensure():
            log.warning("the embedded PostgreSQL stopped unexpectedly and was restarted")
    except ClusterError as error:
        log.error("the embedded PostgreSQL cannot be restarted", extra={"reason": error.reason})  # noqa: TRY400
