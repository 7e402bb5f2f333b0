"""Password hashing with argon2id, one hash at a time: in a thread, or in the process of `password_process`."""

import asyncio
import base64
import json
import os
import sys
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from argon2 import PasswordHasher

from plankeeper.accounts import password_process
from plankeeper.accounts.policy import MAX_PASSWORD_LENGTH, encode_password

T = TypeVar("T")

# Set by `serve` for its workers: a file in a private directory, which only one hash at a time may lock.
LOCK_FILE_VARIABLE = "PLANKEEPER_INTERNAL_PASSWORD_LOCK"

CLOSE_TIMEOUT = 5.0  # seconds

_hasher = PasswordHasher(time_cost=3, memory_cost=19 * 1024, parallelism=1)


class PasswordProcess:
    """A worker's process for hashes. It starts with the first request, and again after it died."""

    def __init__(self, lock_file: str) -> None:
        self._lock_file = lock_file
        self._process: asyncio.subprocess.Process | None = None
        self._turn = asyncio.Lock()

    async def call(self, operation: str, argument: Any, password: bytes) -> Any:
        line = json.dumps([operation, argument, base64.b64encode(password).decode()]).encode() + b"\n"
        async with self._turn:
            result = await self._exchange(line) or await self._exchange(line)
        if not result:
            raise ChildProcessError("the process that computes password hashes ended unexpectedly twice")
        return json.loads(result)

    async def close(self) -> None:
        """End the process. It finishes a hash first, unless that takes long."""
        process, self._process = self._process, None
        if process and process.stdin:
            process.stdin.close()
            try:
                async with asyncio.timeout(CLOSE_TIMEOUT):
                    await process.wait()
            except TimeoutError:
                process.kill()
                await process.wait()

    async def _exchange(self, line: bytes) -> bytes:
        """The result of a request; empty if the process ended."""
        process = self._process
        # Writing to a closed pipe is an error of the event loop.
        if process is None or process.stdin is None or process.stdin.is_closing():
            process = await self._start()
        result = b""
        try:
            if process.stdin and process.stdout:
                process.stdin.write(line)
                await process.stdin.drain()
                result = await process.stdout.readline()
        except (BrokenPipeError, ConnectionResetError):
            pass
        finally:
            # After a cancellation too: the next request must not read the result of this one.
            if not result.endswith(b"\n"):
                self._process = None
                with suppress(ProcessLookupError):  # it may have ended without being waited for
                    process.kill()
        return result

    async def _start(self) -> asyncio.subprocess.Process:
        self._process = await asyncio.create_subprocess_exec(
            sys.executable,
            "-m",
            password_process.__name__,
            self._lock_file,
            stdin=asyncio.subprocess.PIPE,
            stdout=asyncio.subprocess.PIPE,
        )
        return self._process


_processes: list[PasswordProcess] = []  # at most one


def use_process() -> None:
    """Compute the hashes of this process, which is a worker of a server, in a process of low priority."""
    _processes[:] = [PasswordProcess(os.environ.get(LOCK_FILE_VARIABLE, ""))]


async def close() -> None:
    """End the process that computes hashes, if there is one."""
    for process in _processes:
        await process.close()


async def hash_password(password: str) -> str:
    encoded = encode_password(password)
    if _processes:
        parameters = [_hasher.time_cost, _hasher.memory_cost, _hasher.parallelism]
        return await _processes[0].call("hash", parameters, encoded)
    return await _run_in_thread(lambda: _hasher.hash(encoded))


async def verify(password_hash: str | None, password: str) -> bool:
    """Whether a password matches a hash. Without a hash the result is False, after the same time."""
    encoded = encode_password(password[: 4 * MAX_PASSWORD_LENGTH])
    compared = password_hash or _dummy_hash()
    if _processes:
        matches: bool = await _processes[0].call("verify", compared, encoded)
    else:
        matches = await _run_in_thread(lambda: password_process.verify(compared, encoded))
    return matches and password_hash is not None


def is_outdated(password_hash: str) -> bool:
    """Whether a hash was computed with parameters that are no longer current."""
    return _hasher.check_needs_rehash(password_hash)


def _dummy_hash() -> str:
    """A hash that no password matches. Comparing it costs as much as comparing any other with these parameters."""
    parameters = f"m={_hasher.memory_cost},t={_hasher.time_cost},p={_hasher.parallelism}"
    return f"$argon2id$v=19${parameters}${'A' * 22}${'A' * 43}"


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(1, "passwords")


async def _run_in_thread(work: Callable[[], T]) -> T:
    """Run CPU-bound work in a thread, so that the event loop stays responsive."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)
