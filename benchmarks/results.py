"""The measurements of all systems, and the median of each scenario."""

import os
import platform
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from benchmarks.load import CONNECTIONS, Measurement
from benchmarks.peers import LoadInfo, Memory, Peer
from benchmarks.scenarios import Scenario
from benchmarks.transfers import Transfer

BASELINE = "plankeeper"


@dataclass
class SystemResults:
    """One system at one size: its runs by scenario, with as many requests as possible and with half of them."""

    name: str
    title: str
    version: str
    is_floor: bool
    load_info: LoadInfo
    runs: dict[str, list[Measurement]] = field(default_factory=dict)
    half_load_runs: dict[str, list[Measurement]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    memory: Memory = field(default_factory=lambda: Memory(0, 0, 0))

    def median(self, scenario: Scenario) -> Measurement | None:
        """The run with the median rate; of an even number, the slower of the two middle ones."""
        return _median_run(self.runs, scenario)

    def half_load_median(self, scenario: Scenario) -> Measurement | None:
        """The same at half of the maximum rate, but with the median of each percentile."""
        run = _median_run(self.half_load_runs, scenario)
        if run is None:
            return None
        runs = self.half_load_runs[scenario.name]
        return replace(run, p50_ms=median(each.p50_ms for each in runs), p99_ms=median(each.p99_ms for each in runs))

    def processor_us(self, scenario: Scenario) -> float | None:
        """The median processor time of a request in microseconds, at the maximum rate."""
        runs = self.runs.get(scenario.name)
        return median(each.processor_us for each in runs) if runs else None

    def record_memory(self, memory: Memory) -> None:
        """Record the maximum."""
        if memory.own + memory.postgres > self.memory.own + self.memory.postgres:
            self.memory = memory


@dataclass
class SizeResults:
    """All systems at one size."""

    rows: int
    scenarios: list[Scenario]
    systems: list[SystemResults] = field(default_factory=list)
    transfers: Sequence[Transfer] = ()

    def add(self, peer: Peer, load_info: LoadInfo) -> SystemResults:
        self.systems.append(SystemResults(peer.name, peer.title, peer.version, peer.is_floor, load_info))
        return self.systems[-1]

    def find(self, name: str) -> SystemResults | None:
        return next((each for each in self.systems if each.name == name), None)

    def ratio(self, system: SystemResults, scenario: Scenario) -> float | None:
        """Plankeeper's request rate divided by that of a system."""
        plankeeper = self.find(BASELINE)
        baseline = plankeeper and plankeeper.median(scenario)
        other = system.median(scenario)
        if system.name == BASELINE or not baseline or not other or not other.rate:
            return None
        return baseline.rate / other.rate


def _median_run(runs: Mapping[str, Sequence[Measurement]], scenario: Scenario) -> Measurement | None:
    ordered = sorted(runs.get(scenario.name, ()), key=lambda each: each.rate)
    return ordered[(len(ordered) - 1) // 2] if ordered else None


def machine() -> dict[str, Any]:
    """The machine and the date, because results of different machines are not comparable."""
    return {
        "date": datetime.now(UTC).strftime("%Y-%m-%d"),
        "cores": os.cpu_count(),
        "processor": _first_match("/proc/cpuinfo", r"model name\s*: (.+)") or platform.processor(),
        "memory_gb": round(int(_first_match("/proc/meminfo", r"MemTotal:\s*(\d+)") or 0) / 1e6),
        "system": platform.platform(),
        "python": platform.python_version(),
        "connections": CONNECTIONS,
    }


def _first_match(path: str, pattern: str) -> str | None:
    match = re.search(pattern, Path(path).read_text()) if Path(path).exists() else None
    return match[1].strip() if match else None
