"""The measurements of all systems, and the median of each scenario."""

import os
import platform
import re
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from benchmarks.load import CONNECTIONS, Measurement
from benchmarks.peers import LoadInfo, Memory, Peer
from benchmarks.scenarios import Scenario

BASELINE = "plankeeper"


@dataclass
class SystemResults:
    """One system at one size."""

    name: str
    title: str
    version: str
    is_floor: bool
    load_info: LoadInfo
    runs: dict[str, list[Measurement]] = field(default_factory=dict)
    errors: list[str] = field(default_factory=list)
    memory: Memory = field(default_factory=lambda: Memory(0, 0, 0))

    def median(self, scenario: Scenario) -> Measurement | None:
        """The run with the median rate; of an even number, the slower of the two middle ones."""
        runs = sorted(self.runs.get(scenario.name, ()), key=lambda each: each.rate)
        return runs[(len(runs) - 1) // 2] if runs else None

    def record_memory(self, memory: Memory) -> None:
        """Record the maximum."""
        if memory.own + memory.postgres > self.memory.own + self.memory.postgres:
            self.memory = memory

    def as_dict(self, scenarios: list[Scenario]) -> dict[str, Any]:
        return {
            "system": self.title,
            "version": self.version,
            "floor": self.is_floor,
            "loaded": asdict(self.load_info),
            "memory_bytes": asdict(self.memory),
            "errors": self.errors,
            "scenarios": {
                each.name: {
                    "median": median_run.as_dict(),
                    "runs": [run.as_dict() for run in self.runs[each.name]],
                }
                for each in scenarios
                if (median_run := self.median(each))
            },
        }


@dataclass
class SizeResults:
    """All systems at one size."""

    rows: int
    scenarios: list[Scenario]
    systems: list[SystemResults] = field(default_factory=list)

    def add(self, peer: Peer, load_info: LoadInfo) -> SystemResults:
        self.systems.append(SystemResults(peer.name, peer.title, peer.version, peer.is_floor, load_info))
        return self.systems[-1]

    def ratio(self, system: SystemResults, scenario: Scenario) -> float | None:
        """Plankeeper's request rate divided by that of a system."""
        baseline = next((each.median(scenario) for each in self.systems if each.name == BASELINE), None)
        other = system.median(scenario)
        if system.name == BASELINE or not baseline or not other or not other.rate:
            return None
        return baseline.rate / other.rate

    def as_dict(self) -> dict[str, Any]:
        return {
            "participants": self.rows,
            "scenarios": {each.name: each.title for each in self.scenarios},
            "systems": {each.name: each.as_dict(self.scenarios) for each in self.systems},
            "ratios": {
                each.name: {
                    scenario.name: round(ratio, 3)
                    for scenario in self.scenarios
                    if (ratio := self.ratio(each, scenario)) is not None
                }
                for each in self.systems
            },
        }


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
