"""The interface of the measured systems: load, start, request, stop."""

import hashlib
import json
import shutil
import subprocess
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import ClassVar

from benchmarks.data import STATE, STATUS, TENANT, Dataset, dataset
from benchmarks.database import TABLE, Postgres
from benchmarks.load import Load, Measurement, Request, Row, run_load
from benchmarks.processes import (
    Program,
    ProgramError,
    free_port,
    process_tree,
    processor_seconds,
    resident_memory,
)
from benchmarks.scenarios import (
    CREATE,
    CREATE_BODY,
    FILTERED,
    GET,
    OFFSET,
    TOTAL,
    UPDATE,
    UPDATE_BODY,
    ParsedResponse,
    Response,
    Scenario,
    WrongResponseError,
    send,
    verify,
)

WORKERS = 2  # of every system with worker processes
_MIN_ROWS = 1_000  # the smallest number of participants to measure


@dataclass(frozen=True)
class LoadInfo:
    """The number of rows of a system, and the seconds to load and index them."""

    rows: int
    seconds: float


@dataclass(frozen=True)
class Memory:
    """Bytes of the system's own processes, of the largest of them, and of its PostgreSQL."""

    own: int
    largest: int
    postgres: int


class Peer(ABC):
    """A system with `data` in its own store in `<work>/stores`."""

    name: ClassVar[str]
    title: ClassVar[str]
    is_floor: ClassVar[bool] = False
    data_sources: ClassVar[tuple[str, ...]] = ()  # further files and folders that affect the loaded data

    def __init__(self, work: Path, data: Dataset) -> None:
        self.work = work
        self.data = data

    @property
    def store(self) -> str:
        """The name of its store. Read-only systems can share one."""
        return self.name

    @property
    def folder(self) -> Path:
        return self.work / "stores" / f"{self.store}-{self.data.rows}"

    @property
    def log(self) -> Path:
        return self.work / "logs" / f"{self.name}-{self.data.rows}.log"

    @property
    def marker(self) -> Path:
        """The file that exists while the store contains exactly the loaded data."""
        return self.folder / "loaded.json"

    def fingerprint(self) -> str:
        """A hash of all files that affect the loaded data."""
        here = Path(__file__).parent
        files = [here / "data.py", here / "database.py", *(here / name for name in self.data_sources)]
        paths = [path for each in files for path in (sorted(each.rglob("*.py")) if each.is_dir() else [each])]
        return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()

    def reset(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    @contextmanager
    def running(self, *, writes: bool = False) -> Generator[None]:
        """Run the system. After `writes`, its store must be reloaded before it is used again."""
        if writes:
            self.marker.unlink(missing_ok=True)
        try:
            self.start()
            yield
        finally:
            self.stop()

    def sample_rows(self, scenario: Scenario) -> list[Row]:
        """The rows that the requests of a scenario pick from."""
        return [(each, TENANT) for each in getattr(self.data, scenario.pool)()]

    def dataset_for(self, _tenant: str) -> Dataset:
        """The data of a tenant. Most systems have only one."""
        return self.data

    def supports(self, scenario: Scenario) -> bool:
        return scenario.floor or not self.is_floor

    @property
    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def load(self, deadline: float) -> None:
        """Fill the empty store. Raises TimeoutError or subprocess.TimeoutExpired after `deadline` (monotonic clock)."""

    def wait_until_idle(self) -> None:  # noqa: B027 - most systems have nothing to wait for
        """Wait until the system has finished its background work after a load."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def probe(self, scenario: Scenario) -> None:
        """Raise WrongResponseError unless the system returns the correct response."""

    @abstractmethod
    def run_load(self, scenario: Scenario, load: Load) -> Measurement: ...

    @abstractmethod
    def memory(self) -> Memory: ...

    @abstractmethod
    def pids(self) -> set[int]:
        """All processes of the running system, with its PostgreSQL."""

    def processor_seconds(self) -> float:
        """The processor time of all processes of the system so far."""
        return processor_seconds(self.pids())


PeerFactory = Callable[[Path, Dataset], Peer]


def prepare_peer(
    factory: PeerFactory, work: Path, data: Dataset, seconds: float, *, fresh: bool
) -> tuple[Peer, LoadInfo]:
    """A loaded peer. If the load takes longer than `seconds`, it is repeated with a tenth of the rows.

    A store without writes since its load is reused, except with `fresh`.
    """
    peer = factory(work, data)
    if peer.marker.exists() and not fresh:
        saved = json.loads(peer.marker.read_text())
        if saved.pop("fingerprint", None) == peer.fingerprint():
            return peer, LoadInfo(**saved)
    started = time.monotonic()
    try:
        peer.reset()
        peer.load(started + seconds)
    except (subprocess.TimeoutExpired, TimeoutError):
        if data.rows < _MIN_ROWS * 10:
            raise ProgramError(f"{peer.title} could not load {data.rows:,} participants in {seconds:.0f} s") from None
        return prepare_peer(factory, work, dataset(work, data.rows // 10), seconds, fresh=fresh)
    load_info = LoadInfo(data.rows, round(time.monotonic() - started, 1))
    peer.wait_until_idle()
    peer.marker.write_text(json.dumps(asdict(load_info) | {"fingerprint": peer.fingerprint()}))
    return peer, load_info


class HttpPeer(Peer):
    """A system with an HTTP API, run as a program. By default, its paths are those of Plankeeper."""

    workers: int = WORKERS
    path: ClassVar[str] = "/participants"
    state: ClassVar[str] = STATE  # the value of the filter

    def __init__(self, work: Path, data: Dataset) -> None:
        super().__init__(work, data)
        self.program: Program | None = None
        self.port = 0

    @abstractmethod
    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        """The command that starts it on `self.port`, and additional environment variables."""

    @property
    def headers(self) -> dict[str, str]:
        return {}

    @property
    def offset(self) -> int:
        """The offset of the page in the middle of a plan manager's list."""
        return self.data.offset

    def request(self, scenario: Scenario) -> Request:
        if scenario is CREATE:
            return Request("POST", self.path, self.headers, CREATE_BODY)
        if scenario is UPDATE:
            return Request("PUT", f"{self.path}/{{id}}", self.headers, UPDATE_BODY)
        if scenario is GET:
            return Request("GET", f"{self.path}/{{id}}", self.headers)
        filters = {TOTAL: "", FILTERED: f"&status={STATUS}&state={self.state}", OFFSET: f"&offset={self.offset}"}
        query = f"?limit={scenario.limit}{filters.get(scenario, '&after={id}')}"
        return Request("GET", self.path + query, self.headers)

    def parse_response(self, response: Response) -> ParsedResponse:
        body = response.body
        if "data" in body:
            return ParsedResponse(body["data"], body.get("pagination", body)["total"])
        return ParsedResponse(body if isinstance(body, list) else [body])

    @property
    def readiness_url(self) -> str:
        """A URL that responds once the system is ready; before, with 503 or not at all."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        self.port = free_port()
        command, env = self.command()
        self.program = Program(command, self.log, env)
        self.program.wait_until_ready(self.readiness_url)

    def stop(self) -> None:
        if self.program:
            self.program.stop()
            self.program = None

    def probe(self, scenario: Scenario) -> None:
        row = self.sample_rows(scenario)[0]
        try:
            result = self.parse_response(send(self.port, self.request(scenario).render(row)))
            verify(scenario, result, row[0], self.dataset_for(row[1]))
        except (WrongResponseError, LookupError, TypeError, ValueError) as error:
            raise WrongResponseError(f"{self.title}, {scenario.title}: {error or repr(error)}") from error

    def run_load(self, scenario: Scenario, load: Load) -> Measurement:
        rows, request = self.sample_rows(scenario), self.request(scenario)
        return run_load(self.work / "load", self.port, request, rows, load, self.processor_seconds)

    def pids(self) -> set[int]:
        return set(process_tree(self.program.pid)) if self.program else set()

    def memory(self) -> Memory:
        own = resident_memory(process_tree(self.program.pid)) if self.program else []
        return Memory(sum(own), max(own, default=0), 0)


class PostgresPeer(HttpPeer):
    """A system with its own PostgreSQL cluster. By default, it uses the common table."""

    after_load: ClassVar[str] = ""

    def __init__(self, work: Path, data: Dataset) -> None:
        super().__init__(work, data)
        self.postgres = Postgres(self.folder / "data")

    def reset(self) -> None:
        self.postgres.remove()
        super().reset()

    def load(self, deadline: float) -> None:
        with self.postgres.running():
            self.fill(deadline)
            self.postgres.vacuum()

    def fill(self, deadline: float) -> None:
        self.postgres.run(TABLE)
        self.postgres.copy("participants", self.data.participants, deadline - time.monotonic())
        self.postgres.run(self.after_load)

    def start(self) -> None:
        self.postgres.start()
        super().start()

    def stop(self) -> None:
        super().stop()
        self.postgres.stop()

    def pids(self) -> set[int]:
        return super().pids() | set(self.postgres.pids())

    def memory(self) -> Memory:
        own_memory = super().memory()
        return Memory(own_memory.own, own_memory.largest, sum(resident_memory(self.postgres.pids())))
