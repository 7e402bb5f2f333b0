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
from benchmarks.load import CONNECTIONS, Figures, Request, Row, drive
from benchmarks.processes import Program, ProgramError, family, free_port, held
from benchmarks.scenarios import Answer, Scenario, Seen, WrongAnswer, ask, verify

WORKERS = 2  # of every system that has workers
_FEWEST = 1_000  # participants that are worth a measurement


@dataclass(frozen=True)
class Loaded:
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
    made_of: ClassVar[tuple[str, ...]] = ()  # further files and folders that decide what is loaded

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
    def mark(self) -> Path:
        """The file that is there while the store holds what was loaded, and nothing else."""
        return self.folder / "loaded.json"

    def fingerprint(self) -> str:
        """Changes with what decides how the store is loaded."""
        here = Path(__file__).parent
        files = [here / "data.py", here / "database.py", *(here / name for name in self.made_of)]
        found = [path for each in files for path in (sorted(each.rglob("*.py")) if each.is_dir() else [each])]
        return hashlib.sha256(b"".join(path.read_bytes() for path in found)).hexdigest()

    def empty(self) -> None:
        shutil.rmtree(self.folder, ignore_errors=True)
        self.folder.mkdir(parents=True)

    @contextmanager
    def running(self, *, writes: bool = False) -> Generator[None]:
        """The system at work. After `writes` its data is no longer what was loaded."""
        if writes:
            self.mark.unlink(missing_ok=True)
        try:
            self.start()
            yield
        finally:
            self.stop()

    def rows_of(self, scenario: Scenario) -> list[Row]:
        """What the requests of a scenario are drawn from."""
        return [(each, TENANT) for each in getattr(self.data, scenario.pool)()]

    def data_of(self, _tenant: str) -> Dataset:
        """What a plan manager has. All have the same, where there is but one."""
        return self.data

    def takes(self, scenario: Scenario) -> bool:
        return scenario.floor or not self.is_floor

    @property
    @abstractmethod
    def version(self) -> str: ...

    @abstractmethod
    def load(self, deadline: float) -> None:
        """Fill the empty store; TimeoutError or subprocess.TimeoutExpired past a moment of the monotonic clock."""

    def come_to_rest(self) -> None:  # noqa: B027 - most have nothing to do
        """Let the system finish what it does of itself after a load."""

    @abstractmethod
    def start(self) -> None: ...

    @abstractmethod
    def stop(self) -> None: ...

    @abstractmethod
    def probe(self, scenario: Scenario) -> None:
        """Raise WrongAnswer unless the system gives the right answer."""

    @abstractmethod
    def drive(self, scenario: Scenario, seconds: int) -> Figures: ...

    @abstractmethod
    def memory(self) -> Memory: ...


Kind = Callable[[Path, Dataset], Peer]


def prepared(kind: Kind, work: Path, data: Dataset, seconds: float, *, fresh: bool) -> tuple[Peer, Loaded]:
    """A peer loaded within so many seconds, with a tenth of the rows where it cannot hold them all by then.

    A store that nobody has written to since it was loaded is taken as it is, unless it must be `fresh`.
    """
    peer = kind(work, data)
    if peer.mark.exists() and not fresh:
        known = json.loads(peer.mark.read_text())
        if known.pop("of") == peer.fingerprint():
            return peer, Loaded(**known)
    began = time.monotonic()
    try:
        peer.empty()
        peer.load(began + seconds)
    except (subprocess.TimeoutExpired, TimeoutError):
        if data.rows < _FEWEST * 10:
            raise ProgramError(f"{peer.title} could not load {data.rows:,} participants in {seconds:.0f} s") from None
        return prepared(kind, work, dataset(work, data.rows // 10), seconds, fresh=fresh)
    loaded = Loaded(data.rows, round(time.monotonic() - began, 1))
    peer.come_to_rest()
    peer.mark.write_text(json.dumps(asdict(loaded) | {"of": peer.fingerprint()}))
    return peer, loaded


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
    def read(self, answer: Answer) -> Seen: ...

    @property
    def readiness(self) -> str:
        """What answers once the system is ready, and 503 or nothing before."""
        return f"http://127.0.0.1:{self.port}/"

    def start(self) -> None:
        self.port = free_port()
        command, more = self.command()
        self.program = Program(command, self.log, more)
        self.program.wait_until_it_answers(self.readiness)

    def stop(self) -> None:
        if self.program:
            self.program.stop()
            self.program = None

    def probe(self, scenario: Scenario) -> None:
        asked = self.rows_of(scenario)[0]
        try:
            seen = self.read(ask(self.port, self.request(scenario).filled(asked)))
            verify(scenario, seen, asked[0], self.data_of(asked[1]))
        except (WrongAnswer, LookupError, TypeError, ValueError) as error:
            raise WrongAnswer(f"{self.title}, {scenario.title}: {error or repr(error)}") from error

    def drive(self, scenario: Scenario, seconds: int, connections: int = CONNECTIONS) -> Figures:
        rows = self.rows_of(scenario)
        return drive(self.work / "load", self.port, self.request(scenario), rows, seconds, connections)

    def memory(self) -> Memory:
        own = held(family(self.program.pid)) if self.program else []
        return Memory(sum(own), max(own, default=0), 0)


class PostgresPeer(HttpPeer):
    """A system over a PostgreSQL cluster that nobody else uses. One without tables of its own gets the common one."""

    after_load: ClassVar[str] = ""

    def __init__(self, work: Path, data: Dataset) -> None:
        super().__init__(work, data)
        self.postgres = Postgres(self.folder / "data")

    def empty(self) -> None:
        self.postgres.remove()
        super().empty()

    def load(self, deadline: float) -> None:
        with self.postgres.running():
            self.fill(deadline)
            self.postgres.settle()

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
        mine = super().memory()
        return Memory(mine.own, mine.largest, sum(held(self.postgres.pids())))
