"""The process in which a worker computes argon2 hashes: one at a time per server, at the lowest scheduling priority.

A hash takes 20 to 40 ms of a processor, as long as a hundred gets. A process rather than a thread: a thread of low
priority would hold Python's lock while it waits for a processor.

It reads requests as lines of JSON, and writes their results. It ends with its worker, when its input ends.
"""

import base64
import fcntl
import json
import os
import signal
import sys
from collections.abc import Generator
from contextlib import contextmanager
from typing import Any

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

LOWEST_PRIORITY = 19


def verify(password_hash: str, password: bytes) -> bool:
    """Whether a password matches a hash."""
    try:
        return PasswordHasher().verify(password_hash, password)
    except (VerificationError, InvalidHashError):
        return False


def compute(request: list[Any]) -> bool | str:
    """The result of `["verify", hash, password]` or `["hash", [passes, KiB, threads], password]`."""
    operation, argument, encoded = request
    password = base64.b64decode(encoded)
    if operation == "verify":
        return verify(argument, password)
    time_cost, memory_cost, parallelism = argument
    return PasswordHasher(time_cost, memory_cost, parallelism).hash(password)


@contextmanager
def _exclusive(descriptor: int | None) -> Generator[None]:
    """Hold the lock that all workers of a server share."""
    if descriptor is None:
        yield
        return
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        fcntl.flock(descriptor, fcntl.LOCK_UN)


def main(lock_file: str) -> None:
    """Serve one worker until it closes the input. An empty `lock_file` stands for a server with one worker."""
    # The worker finishes its requests after the signal, and then closes the input.
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.setpriority(os.PRIO_PROCESS, 0, LOWEST_PRIORITY)
    descriptor = os.open(lock_file, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600) if lock_file else None
    for line in sys.stdin:
        with _exclusive(descriptor):
            result = compute(json.loads(line))
        sys.stdout.write(json.dumps(result) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(sys.argv[1])
