"""Generates load with wrk and a script that picks a random id for each request, without a limit or at a rate."""

import json
import re
import shutil
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from string import Template

from benchmarks.processes import ProgramError, run_program

THREADS = 2
CONNECTIONS = 16
_MIN_REQUESTS = 2 * CONNECTIONS  # a run with fewer responses is repeated for longer
_MAX_SECONDS = 30
_PLACEHOLDER_NUMBER = 123_456_789  # nine digits, like every random number, so that Content-Length is constant

Row = tuple[str, str]  # an id, and the tenant it belongs to


@dataclass(frozen=True)
class Request:
    """A request template. `{id}` and `{tenant}` are a random row; `{number}` is a random number of nine digits."""

    method: str
    path: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: str = ""

    def render(self, row: Row, number: int = _PLACEHOLDER_NUMBER) -> "Request":
        def fill(text: str) -> str:
            return text.replace("{id}", row[0]).replace("{tenant}", row[1]).replace("{number}", f"{number:09d}")

        headers = {name: fill(value) for name, value in self.headers.items()}
        return Request(self.method, fill(self.path), headers, fill(self.body))

    def serialize(self, row: Row) -> str:
        """The request as HTTP/1.1 text with placeholders. `row` determines the length of its body."""
        headers = {"Host": "127.0.0.1", **self.headers}
        if self.body:
            length = len(self.render(row).body.encode())
            headers |= {"Content-Type": "application/json", "Content-Length": str(length)}
        lines = [f"{self.method} {self.path} HTTP/1.1", *(f"{name}: {value}" for name, value in headers.items())]
        return "\r\n".join(lines) + "\r\n\r\n" + self.body


@dataclass(frozen=True)
class Measurement:
    """The result of one run. `failed` counts responses with a status above 399 and broken connections.

    `processor_seconds` is the processor time of all processes of the system, without the client.
    """

    requests: int
    seconds: float
    p50_ms: float
    p99_ms: float
    failed: int = 0
    processor_seconds: float = 0

    @property
    def rate(self) -> float:
        return (self.requests - self.failed) / self.seconds

    @property
    def processor_us(self) -> float:
        """Microseconds of processor time for each request."""
        return self.processor_seconds / max(self.requests, 1) * 1e6


@dataclass(frozen=True)
class Load:
    """How long requests are sent, and at most how many per second."""

    seconds: int
    rate: float | None = None


_SCRIPT = Template("""\
local ids, tenants, threads = {}, {}, 0

function setup(thread)
  threads = threads + 1
  thread:set("seed", threads)
end

function init()
  math.randomseed(seed * 7919)
  for line in io.lines($sample) do
    local id, tenant = line:match("(%S+) (%S+)")
    ids[#ids + 1], tenants[#tenants + 1] = id, tenant
  end
end

function request()
  local row = math.random(#ids)
  return $request
end
$limit
function done(summary, latency)
  local errors = summary.errors
  io.write(string.format(
    'RESULT {"requests": %d, "seconds": %.6f, "p50_ms": %.3f, "p99_ms": %.3f, "failed": %d}\\n',
    summary.requests, summary.duration / 1e6, latency:percentile(50) / 1e3, latency:percentile(99) / 1e3,
    errors.connect + errors.read + errors.write + errors.status))
end
""")
# With a limit, each thread sends requests at random times with a constant average rate (a Poisson process). A request
# that no connection is free for is sent as soon as possible. wrk waits for whole milliseconds.
_LIMIT = Template("""
local ffi = require("ffi")
ffi.cdef("typedef struct { long seconds; long nanoseconds; } timespec; int clock_gettime(int clock, timespec *time);")
local time, due = ffi.new("timespec"), nil

function delay()
  ffi.C.clock_gettime(1, time)
  local now = tonumber(time.seconds) * 1e3 + tonumber(time.nanoseconds) / 1e6
  due = (due or now) - math.log(1 - math.random()) * $interval
  return math.max(0, math.floor(due - now))
end
""")
_LUA_PLACEHOLDERS = {
    "{id}": "ids[row]",
    "{tenant}": "tenants[row]",
    "{number}": 'string.format("%09d", math.random(999999999))',
}


def wrk_script(request: Request, sample: Path, row: Row, rate: float | None = None) -> str:
    """The Lua script of a run. The request is split at its placeholders to keep the work per request small.

    `rate` limits the requests per second of all threads.
    """
    parts = re.split(r"(\{id\}|\{tenant\}|\{number\})", request.serialize(row))
    pieces = [_LUA_PLACEHOLDERS.get(part) or json.dumps(part) for part in parts if part]
    limit = _LIMIT.substitute(interval=THREADS * 1000 / rate) if rate else ""
    return _SCRIPT.substitute(sample=json.dumps(str(sample)), request=" .. ".join(pieces), limit=limit)


def run_load(
    folder: Path, port: int, request: Request, rows: Sequence[Row], load: Load, processor_seconds: Callable[[], float]
) -> Measurement:
    """Send requests for some seconds, or for longer if there are too few responses.

    `processor_seconds` returns the processor time of the system so far.
    """
    folder.mkdir(parents=True, exist_ok=True)
    sample, script_file = folder / "sample.txt", folder / "load.lua"
    sample.write_text("".join(f"{id_} {tenant}\n" for id_, tenant in rows))
    script_file.write_text(wrk_script(request, sample, rows[0], load.rate))

    def measure(seconds: int) -> Measurement:
        before = processor_seconds()
        measurement = _run_wrk(port, script_file, seconds)
        return replace(measurement, processor_seconds=round(processor_seconds() - before, 3))

    measurement = measure(load.seconds)
    extended_seconds = min(_MAX_SECONDS, load.seconds * 8)
    if measurement.requests < _MIN_REQUESTS and extended_seconds > load.seconds:
        measurement = measure(extended_seconds)
    return measurement


def _run_wrk(port: int, script_file: Path, seconds: int) -> Measurement:
    options = f"--threads {THREADS} --connections {CONNECTIONS} --duration {seconds}s --timeout 60s --latency"
    command = [find_wrk(), *options.split(), "--script", script_file, f"http://127.0.0.1:{port}"]
    output = run_program(command, seconds=seconds + 60)
    match = re.search(r"^RESULT (.*)$", output, re.MULTILINE)
    if not match:
        raise ProgramError(f"wrk printed no result: {output[-500:]}")
    return Measurement(**json.loads(match[1]))


def find_wrk() -> str:
    path = shutil.which("wrk")
    if path is None:
        raise ProgramError("wrk, which generates the load, is not installed: apt-get install wrk (or brew install wrk)")
    return path
