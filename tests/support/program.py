"""The program itself, as a user runs it."""

import atexit
import json
import logging
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Iterable
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import psutil
from click.testing import CliRunner

from plankeeper.cli import main
from support.client import LIMITS
from support.secret_keys import shared_key_file

START_EVENT = "the server is started"


class Done(NamedTuple):
    """How a command ended."""

    returncode: int
    stdout: str
    stderr: str


def run_plankeeper(*arguments: str, stdin: bytes | None = None, **settings: str) -> Done:
    """Run a command to its end, in this process: what `plankeeper` does, without starting Python. A traceback is never
    right.
    """
    signals = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    inherited = [name for name in os.environ if name.startswith("PLANKEEPER_")]
    # The usual port can be that of a server which the developer has started.
    variables: dict[str, str | None] = dict.fromkeys(inherited) | {"PLANKEEPER_PORT": "0"} | settings
    argv, sys.argv = sys.argv, ["plankeeper", *arguments]
    root = logging.getLogger()
    handlers, level, hooks = root.handlers[:], root.level, (sys.excepthook, threading.excepthook)
    variables_before = dict(os.environ)
    code: Any = 0
    try:
        with CliRunner().isolation(stdin, variables) as (stdout, stderr, _):
            try:
                main()
            except SystemExit as end:
                code = end.code or 0
            sys.stdout.flush()
            sys.stderr.flush()
            process = Done(code, stdout.getvalue().decode(), stderr.getvalue().decode())
    finally:
        # A server logs JSON from its start on.
        root.handlers[:] = handlers
        root.setLevel(level)
        logging.captureWarnings(capture=False)
        sys.excepthook, threading.excepthook = hooks
        sys.argv = argv
        # A server sets variables for its workers.
        os.environ.clear()
        os.environ.update(variables_before)
        for number, handler in signals.items():
            signal.signal(number, handler)
    assert "--traceback" not in process.stderr, process.stderr
    return process


def run_program(*arguments: str, stdin: bytes | None = None, **settings: str) -> Done:
    """Run a command to its end as a program of its own; a traceback is never right."""
    done = subprocess.run(
        [sys.executable, "-m", "plankeeper", *arguments],
        input=stdin, env=environment(settings), capture_output=True, timeout=120, check=False,
    )  # fmt: skip
    result = Done(done.returncode, done.stdout.decode(), done.stderr.decode())
    assert "Traceback" not in result.stderr, result.stderr
    return result


def environment(settings: dict[str, str]) -> dict[str, str]:
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLANKEEPER_")}
    return inherited | settings


class ServeProcess:
    """`plankeeper serve` with an embedded cluster in `data_dir`, on a free port, until `stop`."""

    def __init__(self, data_dir: Path, *arguments: str, workers: int = 1, **settings: str) -> None:
        # Tests send more than a client may, read what else the program says, and count its workers.
        usual = {
            "PLANKEEPER_DATA_DIR": str(data_dir), "PLANKEEPER_RATE_LIMIT": "off", "PLANKEEPER_ACCESS_LOG": "off",
            "PLANKEEPER_WEBHOOK_WORKER": "off", "PLANKEEPER_MAX_CONNECTIONS_PER_ADDRESS": "1000",
            "PLANKEEPER_SLOW_STATEMENTS": "off",  # on a busy machine, any statement can be slow
        }  # fmt: skip
        if "PLANKEEPER_DATABASE_URL" in settings:
            usual["PLANKEEPER_SECRET_KEY_FILE"] = str(shared_key_file())
        command = [sys.executable, "-m", "plankeeper", "serve", "--port", "0", "--workers", str(workers), *arguments]
        self.process = subprocess.Popen(
            command, env=environment(usual | settings), stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT, text=True, start_new_session=True,
        )  # fmt: skip
        atexit.register(self.process.kill)  # a test that fails leaves no server behind
        self.lines: list[str] = []
        # With the sample data, it prints a welcome instead of the log line.
        is_demo = "--demo" in arguments
        self._last_line = "Plankeeper is ready." if is_demo else START_EVENT
        self._ready = threading.Event()
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()
        assert self._ready.wait(120), self.lines
        assert any(self._last_line in line for line in self.lines), self.lines
        address = "Listening on:" if "PLANKEEPER_PUBLIC_URL" in settings else "Console:"
        self.url: str = self.output_value(address).removesuffix("/console") if is_demo else self.start_line["address"]

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            self.lines.append(line.rstrip("\n"))
            if self._last_line in line:
                self._ready.set()
        self._ready.set()

    @property
    def start_line(self) -> dict[str, Any]:
        """The log lines of the start."""
        [line] = [line for line in self.lines if START_EVENT in line]
        return json.loads(line)

    def output_value(self, label: str) -> str:
        """The text after a word of the output."""
        [line] = [line for line in self.lines if line.startswith(label)]
        return line.removeprefix(label).split()[0]

    @property
    def curl(self) -> str:
        [line] = [line for line in self.lines if line.startswith("curl ")]
        return line

    def client(self) -> httpx.Client:
        """A client with the demonstration's key."""
        headers = {
            "Authorization": f"Bearer {self.output_value('API key:')}",
            "X-Plan-Manager-Id": self.output_value("Plan manager:"),
        }
        return httpx.Client(base_url=f"{self.url}/api/public/v1", headers=headers, timeout=60, limits=LIMITS)

    def child_processes(self) -> list[psutil.Process]:
        """Every process that belongs to it."""
        return psutil.Process(self.process.pid).children(recursive=True)

    def workers(self) -> list[psutil.Process]:
        return [each for each in self.child_processes() if "spawn_main" in " ".join(command_line(each))]

    def postmaster(self) -> psutil.Process:
        children = psutil.Process(self.process.pid).children()
        # A worker that was just killed has no command line.
        [process] = [each for each in children if "/postgres -D" in " ".join(command_line(each))]
        return process

    def stop(self, signal_number: int = signal.SIGTERM) -> int:
        """End it and wait; nothing of it is left."""
        family = self.child_processes() if self.process.poll() is None else []
        if self.process.poll() is None:
            self.process.send_signal(signal_number)
        _, alive = psutil.wait_procs(family, timeout=60)
        assert not alive, alive
        return self.wait_for_exit()

    def wait_for_exit(self) -> int:
        """Its exit code, once it has ended by whatever means."""
        code = self.process.wait(60)
        self._reader.join(5)
        assert self.process.stdout is not None
        self.process.stdout.close()
        return code


def signal_process(process: psutil.Process, number: signal.Signals) -> None:
    """Unless it has ended meanwhile, as PostgreSQL's processes do without their postmaster."""
    with suppress(psutil.NoSuchProcess):
        process.send_signal(number)


def kill_all(processes: Iterable[psutil.Process]) -> None:
    for each in processes:
        signal_process(each, signal.SIGKILL)


def command_line(process: psutil.Process) -> list[str]:
    """Its command line; of one that has ended, none."""
    try:
        return process.cmdline()
    except psutil.NoSuchProcess:  # a zombie, too
        return []
