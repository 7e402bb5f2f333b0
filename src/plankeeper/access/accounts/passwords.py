"""Password hashing with argon2id, one hash at a time: in a thread, or in the process of `password_process`."""

import asyncio
import base64
import json
import os
import re
import sys
import unicodedata
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import cache
from typing import Any, TypeVar

from argon2 import PasswordHasher

from plankeeper.access.accounts import password_process
from plankeeper.access.policy import MAX_PASSWORD_LENGTH, MIN_PASSWORD_LENGTH, encode_password

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
            start_new_session=True,  # Ctrl-C in a terminal would end it with a traceback while it starts
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


MIN_GUESSES = 10**8  # zxcvbn's score of 3 of 4: "safely unguessable", with a slow hash
MIN_OWN_CHARACTERS = 8  # besides the words of the person's name and email
MIN_WORD_LENGTH = 3
MAX_ESTIMATED_LENGTH = 40  # the time of an estimate grows with the square of the length

# Words that people here use in passwords, besides those in the lists of zxcvbn.
LOCAL_WORDS = ("plankeeper", "ndis", "plan", "manager", "provider", "participant", "australia")
_LEET = str.maketrans("@4831!0$57", "aabeiiosst")
_EDGE = re.compile(r"^[\W\d_]+|[\W\d_]+$")


def validate_password(password: str, email: str, names: Iterable[str] = ()) -> str | None:
    """The error message for a new password, or None if the password is acceptable.

    `names` are the person's and the plan managers'.
    """
    length_error = f"must be {MIN_PASSWORD_LENGTH} to {MAX_PASSWORD_LENGTH} characters long"
    if len(password) > 4 * MAX_PASSWORD_LENGTH:  # before the normalisation, which takes its time
        return length_error
    lower = unicodedata.normalize("NFKC", password).lower()
    if not MIN_PASSWORD_LENGTH <= len(lower) <= MAX_PASSWORD_LENGTH:
        return length_error
    if email.lower() in lower or lower in email.lower():
        return "must not be the email address"
    return "is too easy to guess" if is_guessable(lower, personal_words(email, *names)) else None


def personal_words(*texts: str) -> set[str]:
    """The words of names and emails that an attacker tries."""
    words = {word for text in texts for word in re.findall(r"[^\W\d_]+", text.lower()[:500])}
    return {word for word in words if len(word) >= MIN_WORD_LENGTH} | set(LOCAL_WORDS)


def is_guessable(lower: str, words: set[str]) -> bool:
    """Whether a password in lower case is common, or made of little more than the words."""
    from zxcvbn import zxcvbn  # imported for the first new password, because its lists take memory

    stem = _EDGE.sub("", lower)
    if not stem or {stem, stem.translate(_LEET)} & common_words():
        return True
    pattern = "|".join(map(re.escape, sorted(words, key=len, reverse=True)))
    if any(len(re.sub(pattern, "", text)) < MIN_OWN_CHARACTERS for text in (lower, lower.translate(_LEET))):
        return True
    return zxcvbn(lower[:MAX_ESTIMATED_LENGTH], user_inputs=sorted(words))["guesses"] < MIN_GUESSES


@cache
def common_words() -> frozenset[str]:
    """Common passwords, names and English words."""
    from zxcvbn.frequency_lists import FREQUENCY_LISTS

    return frozenset(word for words in FREQUENCY_LISTS.values() for word in words)
