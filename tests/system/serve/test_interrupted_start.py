"""Ctrl-C at each step of the first start: the program ends without a traceback, and the next start works."""

import atexit
import os
import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path

import psutil
import pytest

from support.folder import temporary_folder
from support.program import ServeProcess, environment
from support.server import wait_until

COMMAND = ["-m", "plankeeper", "serve", "--demo", "--port", "0", "--workers", "2"]
# On a busy machine, a migration takes longer than the 5 s after which a line reports its progress.
PROGRESS_LINE = re.compile(r"Migrating the schema|[0-9]{4} .*")


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with temporary_folder() as folder:
        yield folder


@pytest.fixture(autouse=True)
def interruptible() -> Iterator[None]:
    """Programs get SIGINT even if the tests run in the background, where a shell makes all programs ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


def start(data_dir: Path, *options: str) -> subprocess.Popen[str]:
    """A server with a process group of its own, as in a terminal."""
    process = subprocess.Popen(
        [sys.executable, *options, *COMMAND],
        # On a busy machine, any statement can be slow.
        env=environment({"PLANKEEPER_DATA_DIR": str(data_dir), "PLANKEEPER_SLOW_STATEMENTS": "off"}),
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        start_new_session=True,
    )
    atexit.register(process.kill)  # a test that fails leaves no server behind
    return process


def interrupt(process: subprocess.Popen[str]) -> tuple[int, str]:
    """Press Ctrl-C as in a terminal: all processes of the group get SIGINT.

    Returns the exit status, and the output without the progress of a migration.
    """
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=60)
    lines = [line for line in output.splitlines() if not PROGRESS_LINE.fullmatch(line)]
    return process.returncode, "\n".join(lines).strip()  # click ends the line with `^C`


def interrupt_when(data_dir: Path, is_reached: Callable[[subprocess.Popen[str]], bool]) -> tuple[int, str]:
    process = start(data_dir)
    wait_until(lambda: is_reached(process) or process.poll() is not None, 180)
    return interrupt(process)


def is_creating_cluster(data_dir: Path) -> bool:
    return (data_dir / "postgres.init" / "base").exists()


def is_migrating(data_dir: Path) -> bool:
    file = data_dir / "postgres" / "postmaster.pid"
    return file.exists() and "ready" in file.read_text()


def is_loading_workers(process: subprocess.Popen[str]) -> bool:
    children = psutil.Process(process.pid).children()
    with suppress(psutil.NoSuchProcess):  # one has just ended
        return any("spawn_main" in argument for each in children for argument in each.cmdline())
    return False


def test_ctrl_c_while_the_program_loads_its_modules(data_dir: Path) -> None:
    process = start(data_dir, "-X", "importtime")
    assert process.stdout is not None
    assert any("click" in line for line in process.stdout)
    status, output = interrupt(process)
    assert status in {-signal.SIGINT, 130}  # 130 if it has just loaded them
    assert "Traceback" not in output
    assert list(data_dir.iterdir()) == []


def test_ctrl_c_during_a_first_start_leaves_nothing_that_stops_the_next_one(data_dir: Path) -> None:
    assert interrupt_when(data_dir, lambda _: is_creating_cluster(data_dir)) == (130, "")
    assert [each.name for each in data_dir.iterdir()] == ["postgres.lock"]
    assert interrupt_when(data_dir, lambda _: is_migrating(data_dir)) == (130, "")
    assert interrupt_when(data_dir, is_loading_workers) == (0, "")
    assert not (data_dir / "postgres" / "postmaster.pid").exists()
    serving = ServeProcess(data_dir, "--demo")
    with serving.client() as client:
        assert client.get("/participants").json()["pagination"]["total"] == 400
    assert serving.stop() == 0
