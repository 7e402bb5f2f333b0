"""The metrics of all processes of this server, as Prometheus reads them, and those about the processes themselves."""

import asyncio
import os
import platform
import resource
import time
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

from prometheus_client import CONTENT_TYPE_LATEST, REGISTRY, CollectorRegistry, Metric, generate_latest, multiprocess
from prometheus_client.core import GaugeMetricFamily
from prometheus_client.registry import Collector

from plankeeper import __version__
from plankeeper.core import logs, server_folder, version
from plankeeper.core.metrics import (
    LOG_LINES_DROPPED,
    POOL_IN_USE,
    POOL_OPEN,
    POOL_WAITERS,
    PROCESS_CPU,
    PROCESS_MAX_FILES,
    PROCESS_MEMORY,
    PROCESS_OPEN_FILES,
    REQUESTS_IN_FLIGHT,
    ProcessKind,
)
from plankeeper.database.client import Database
from plankeeper.http.instrumentation import DurationHistogramCollector

_multiprocess: Any = multiprocess  # the library does not annotate it


class InFlightCounter(Protocol):
    """Has the number of requests being processed."""

    in_flight: int


class ProcessMetrics:
    """Reports the resources that this process uses."""

    def __init__(self, kind: ProcessKind) -> None:
        self._cpu = PROCESS_CPU.labels(kind)
        self._memory = PROCESS_MEMORY.labels(kind)
        self._open_files = PROCESS_OPEN_FILES.labels(kind)
        self._counted_seconds = 0.0
        self._counted_dropped_lines = 0
        # One of each file that this process has in the folder of the server.
        self._stored_values: list[Any] = [self._cpu, self._memory, self._open_files]
        PROCESS_MAX_FILES.labels(kind).set(resource.getrlimit(resource.RLIMIT_NOFILE)[0])

    def update(self) -> None:
        for each in self._stored_values:
            _restore_file(each)
        seconds = time.process_time()
        self._cpu.inc(seconds - self._counted_seconds)
        self._counted_seconds = seconds
        dropped = logs.dropped_lines()
        LOG_LINES_DROPPED.inc(dropped - self._counted_dropped_lines)
        self._counted_dropped_lines = dropped
        try:
            with open("/proc/self/statm", "rb") as file:  # noqa: PTH123 - once a second: a Path takes twice as long
                self._memory.set(int(file.read().split()[1]) * resource.getpagesize())
            self._open_files.set(len(os.listdir("/proc/self/fd")))  # noqa: PTH208 - as above
        except FileNotFoundError:
            pass  # not on Linux


def _restore_file(metric: Any) -> None:
    """Write the file of a metric again if it was removed: only this process still has its contents."""
    file = getattr(metric._value, "_file", None)  # noqa: SLF001 - the library has no function for this
    if file is None or os.path.exists(file._fname):  # noqa: PTH110, SLF001 - once a second
        return
    complete = Path(f"{file._fname}.new")  # noqa: SLF001 - as above
    with suppress(FileNotFoundError):  # the supervisor hasn't created the folder again yet
        complete.write_bytes(file._m[:])  # noqa: SLF001 - as above
        complete.rename(file._fname)  # noqa: SLF001 - as above
        file.close()
        file.__init__(file._fname)  # noqa: SLF001 - as above


async def watch(db: Database, admission: InFlightCounter) -> None:
    """Update the gauges of an API worker once a second, until cancelled."""
    process = ProcessMetrics("api")
    while True:
        stats = db.stats
        POOL_OPEN.set(stats.open)
        POOL_IN_USE.set(stats.in_use)
        POOL_WAITERS.set(stats.waiting)
        REQUESTS_IN_FLIGHT.set(admission.in_flight)
        process.update()
        await asyncio.sleep(1)


async def watch_process(kind: ProcessKind) -> None:
    """Update the metrics of a process's resources once a second, until cancelled."""
    process = ProcessMetrics(kind)
    while True:
        process.update()
        await asyncio.sleep(1)


class BuildInfoCollector(Collector):
    """A gauge with the value 1, whose labels describe this program. The library's `Info` is for one process only."""

    def collect(self) -> Iterable[Metric]:
        info = GaugeMetricFamily(
            "plankeeper_build_info",
            "The version of Plankeeper with its commit, and of Python.",
            labels=["version", "commit", "python"],
        )
        info.add_metric([__version__, version.commit() or "unknown", platform.python_version()], 1)
        yield info


class ServerCollector(Collector):
    """The metrics of all processes of this server, from the files in their folder."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder

    def collect(self) -> Iterable[Metric]:
        while self._folder.is_dir():
            try:
                # A new file is empty until its process has lengthened it.
                files = [str(each) for each in self._folder.glob("*.db") if each.stat().st_size]
                return list(_multiprocess.MultiProcessCollector.merge(files))
            except FileNotFoundError:  # a process was replaced, or the folder was removed
                continue
        return []


def registry() -> CollectorRegistry:
    """The metrics of all processes of the server, or of this process if it belongs to none."""
    folder = server_folder.path()
    exposed = CollectorRegistry()
    exposed.register(BuildInfoCollector())
    exposed.register(DurationHistogramCollector(ServerCollector(folder) if folder else REGISTRY))
    return exposed


def hand_over(pid: int | None, successor: int | None) -> None:
    """Drop the gauges of a process that has ended. Its successor, which was just started, continues its counters."""
    folder = server_folder.path()
    _multiprocess.mark_process_dead(pid)
    if folder is not None and not (folder / f"counter_{successor}.db").exists():
        with suppress(FileNotFoundError):
            (folder / f"counter_{pid}.db").rename(folder / f"counter_{successor}.db")


def render() -> bytes:
    return generate_latest(registry())


CONTENT_TYPE = CONTENT_TYPE_LATEST
