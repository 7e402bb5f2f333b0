"""Runs programs that end with this process, and measures their memory and processor time."""

import contextlib
import ctypes
import os
import signal
import socket
import subprocess
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import psutil

_PR_SET_PDEATHSIG = 1
_READY_SECONDS = 60
_STOP_SECONDS = 20


class ProgramError(Exception):
    """A program failed. The message names it and contains the end of its output."""


class Program:
    """A server in its own session, so that a terminal's Ctrl-C reaches only this process, which then stops it."""

    def __init__(self, command: Sequence[str | Path], log: Path, extra_env: Mapping[str, str] | None = None) -> None:
        """`extra_env` is added to the environment."""
        self.log = log
        log.parent.mkdir(parents=True, exist_ok=True)
        with log.open("wb") as output:
            self._process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=output,
                env=environment(extra_env),
                start_new_session=True,
                preexec_fn=_die_with_parent(),  # noqa: PLW1509 - one system call, before any thread
            )

    @property
    def pid(self) -> int:
        return self._process.pid

    def wait_until_ready(self, url: str) -> None:
        """Wait for any HTTP response except 503. Raises ProgramError if the program ends or takes too long."""
        deadline = time.monotonic() + _READY_SECONDS
        while time.monotonic() < deadline:
            if self._process.poll() is not None:
                break
            if _is_ready(url):
                return
            time.sleep(0.02)
        self.stop()
        raise ProgramError(f"{self._process.args} is not ready: {_tail(self.log)}")

    def stop(self) -> None:
        """Terminate the program, then kill the remaining processes of its session."""
        self._process.terminate()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self._process.wait(_STOP_SECONDS)
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self._process.pid, signal.SIGKILL)
        self._process.wait()


def run_program(
    command: Sequence[str | Path],
    *,
    extra_env: Mapping[str, str] | None = None,
    stdin: Path | str | None = None,
    stdout: Path | None = None,
    seconds: float | None = None,
) -> str:
    """Run a program and return its standard output. `stdin` is a file or a text, `stdout` a file to write instead.

    Raises ProgramError if it fails, and subprocess.TimeoutExpired after `seconds`.
    """
    with contextlib.ExitStack() as stack:
        source: dict[str, Any] = {"input": stdin or ""}
        if isinstance(stdin, Path):
            source = {"stdin": stack.enter_context(stdin.open())}
        output_file = stack.enter_context(stdout.open("w")) if stdout else subprocess.PIPE
        try:
            source |= {"stdout": output_file, "stderr": subprocess.PIPE, "env": environment(extra_env)}
            completed = subprocess.run(command, check=False, text=True, timeout=seconds, **source)
        except FileNotFoundError:
            raise ProgramError(f"{command[0]} is not installed, or not in PATH") from None
    if completed.returncode != 0:
        output = (completed.stderr.strip() or (completed.stdout or "").strip())[-2000:]
        raise ProgramError(f"{Path(command[0]).name} failed with {completed.returncode}: {output}")
    return completed.stdout or ""


def environment(extra_env: Mapping[str, str] | None = None) -> dict[str, str]:
    """The environment without variables that would change the configuration of the programs."""
    excluded = ("PLANKEEPER_", "PG", "UVICORN_", "WEB_CONCURRENCY")
    return {name: value for name, value in os.environ.items() if not name.startswith(excluded)} | dict(extra_env or {})


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return server.getsockname()[1]


def process_tree(pid: int) -> list[int]:
    """A process and all its descendants."""
    with contextlib.suppress(psutil.NoSuchProcess):
        return [pid, *(each.pid for each in psutil.Process(pid).children(recursive=True))]
    return []


def resident_memory(pids: Iterable[int]) -> list[int]:
    """The proportional set size (PSS) of each process in bytes: its own pages, and its share of shared ones."""
    sizes: list[int] = []
    for pid in pids:
        with contextlib.suppress(psutil.Error):
            sizes.append(psutil.Process(pid).memory_full_info().pss)
    return sizes


def processor_seconds(pids: Iterable[int]) -> float:
    """The processor time of processes and of their ended children so far."""
    seconds = 0.0
    for pid in pids:
        with contextlib.suppress(psutil.Error, OSError):
            ended = psutil.Process(pid).cpu_times()
            seconds += time.clock_gettime(_processor_clock(pid)) + ended.children_user + ended.children_system
    return seconds


def _processor_clock(pid: int) -> int:
    """The clock of a process's processor time, as clock_getcpuclockid(3) returns it: it counts nanoseconds."""
    return ~pid << 3 | 2


def _is_ready(url: str) -> bool:
    try:
        urllib.request.urlopen(url, timeout=5).close()
    except urllib.error.HTTPError as error:
        error.close()
        return error.code != 503
    except OSError:
        return False
    return True


def _tail(log: Path) -> str:
    return log.read_text(errors="replace")[-2000:].strip()


def _die_with_parent() -> Callable[[], None]:
    """A `preexec_fn` that makes the kernel end the child when this process ends."""
    prctl = ctypes.CDLL(None).prctl
    return lambda: prctl(_PR_SET_PDEATHSIG, int(signal.SIGTERM), 0, 0, 0)
