"""What every system under measurement can do: be loaded, started, asked, stopped."""

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

from benchmarks.data import TENANT, Dataset, dataset
from benchmarks.database import TABLE, Postgres
from benchmarks.load import CONNECTIONS, Measurement, Request, Row, run_load
from benchmarks.processes import Program, ProgramError, free_port, process_tree, resident_memory
from benchmarks.scenarios import ParsedResponse, Response, Scenario, WrongResponseError, send, verify

WORKERS = 2  # of every system that has workers
_MIN_ROWS = 1_000  # participants that are worth a measurement


@dataclass(frozen=True)
class LoadInfo:
    """How many rows a system holds, and how long it took them in, indexes and all."""

    rows: int
    seconds: float


@dataclass(frozen=True)
class Memory:
    """Bytes: of the system's own processes, of the largest of them, and of its PostgreSQL."""

    own: int
    largest: int
    postgres: int


class Peer(ABC):
    """A system with `data` in a store of its own below `<work>/stores`."""

    name: ClassVar[str]
    title: ClassVar[str]
    is_floor: ClassVar[bool] = False
    data_sources: ClassVar[tuple[str, ...]] = ()  # further files and folders that decide what is loaded

    def __init__(self, work: Path, data: Dataset) -> None:
        self.work = work
        self.data = data

    @property
    def store(self) -> str:
        """Where its data is. Systems that only read may share a store."""
        return self.name

    @property
    def folder(self) -> Path:
        return self.work / "stores" / f"{self.store}-{self.data.rows}"

    @property
    def log(self) -> Path:
        return self.work / "logs" / f"{self.name}-{self.data.rows}.log"

    @property
    def marker(self) -> Path:
        """The file that is there while the store holds what was loaded, and nothing else."""
        return self.folder / "loaded.json"

    def fingerprint(self) -> str:
        """Changes with what decides how the store is loaded."""
        here = Path(__file__).parent
        files = [here / "data.py", here / "database.py", *(here / name for name in self.data_sources)]
        paths = [path for each in files for path in (sorted(each.rglob("*.py")) if each.is_dir() else [each])]
        return hashlib.sha256(b"".join(path.read_bytes() for path in paths)).hexdigest()

    def reset(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    @contextmanager
    def running(self, *, writes: bool = False) -> Generator[None]:
        """The system at work. After `writes` its data is no longer what was loaded."""
        if writes:
            self.marker.unlink(missing_ok=True)
        try:
            self.start()
            yield
        finally:
            self.stop()

    def sample_rows(self, scenario: Scenario) -> list[Row]:
        """What the requests of a scenario are drawn from."""
        return [(each, TENANT) for each in getattr(self.data, scenario.pool)()]

    def dataset_for(self, _tenant: str) -> Dataset:
        """What a plan manager has. All have the same, where there is but one."""
        return self.data

    def supports(self, scenario: Scenario) -> bool:
        return scenario.floor or not self.is_floor

    @property
    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def load(self, deadline: float) -> None:
        """Fill the empty store; TimeoutError or subprocess.TimeoutExpired past a moment of the monotonic clock."""

    def wait_until_idle(self) -> None:  # noqa: B027 - most have nothing to do
        """Let the system finish what it does of itself after a load."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def probe(self, scenario: Scenario) -> None:
        """Raise WrongAnswer unless the system gives the right answer."""

    @abstractmethod
    def run_load(self, scenario: Scenario, seconds: int) -> Measurement: ...

    @abstractmethod
    def memory(self) -> Memory: ...


PeerFactory = Callable[[Path, Dataset], Peer]


def prepare_peer(
    factory: PeerFactory, work: Path, data: Dataset, seconds: float, *, fresh: bool
) -> tuple[Peer, LoadInfo]:
    """A peer loaded within so many seconds, with a tenth of the rows where it cannot hold them all by then.

    A store that nobody has written to since it was loaded is taken as it is, unless it must be `fresh`.
    """
    peer = factory(work, data)
    if peer.marker.exists() and not fresh:
        saved = json.loads(peer.marker.read_text())
        if saved.pop("of") == peer.fingerprint():
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
    peer.marker.write_text(json.dumps(asdict(load_info) | {"of": peer.fingerprint()}))
    return peer, load_info


class HttpPeer(Peer):
    """A system that answers over HTTP: a program of its own."""

    def __init__(self, work: Path, data: Dataset) -> None:
        super().__init__(work, data)
        self.program: Program | None = None
        self.port = 0

    @abstractmethod
    def command(self) -> tuple[list[str | Path], dict[str, str]]:
        """What starts it on `self.port`, and what its environment has that ours has not."""

    @abstractmethod
    def request(self, scenario: Scenario) -> Request: ...

    @abstractmethod
    def parse_response(self, response: Response) -> ParsedResponse: ...

    @property
    def readiness_url(self) -> str:
        """What answers once the system is ready, and 503 or nothing before."""
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

    def run_load(self, scenario: Scenario, seconds: int, connections: int = CONNECTIONS) -> Measurement:
        rows = self.sample_rows(scenario)
        return run_load(self.work / "load", self.port, self.request(scenario), rows, seconds, connections)

    def memory(self) -> Memory:
        own = resident_memory(process_tree(self.program.pid)) if self.program else []
        return Memory(sum(own), max(own, default=0), 0)


class PostgresPeer(HttpPeer):
    """A system over a PostgreSQL cluster that nobody else uses. One without tables of its own gets the common one."""

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

    def memory(self) -> Memory:
        own_memory = super().memory()
        return Memory(own_memory.own, own_memory.largest, sum(resident_memory(self.postgres.pids())))
