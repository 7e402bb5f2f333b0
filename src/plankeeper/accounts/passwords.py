"""Password hashing with argon2id. At most two hashes run at once, because each takes 19 MiB and a CPU core."""

import asyncio
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from typing import TypeVar

from argon2 import PasswordHasher
from argon2.exceptions import InvalidHashError, VerificationError

from plankeeper.accounts.policy import MAX_PASSWORD_LENGTH, encode_password

T = TypeVar("T")

_hasher = PasswordHasher(time_cost=3, memory_cost=19 * 1024, parallelism=1)


async def hash_password(password: str) -> str:
    return await _run_in_thread(lambda: _hasher.hash(encode_password(password)))


async def verify(password_hash: str | None, password: str) -> bool:
    """Whether a password matches a hash. Without a hash the result is False, after the same time."""
    return await _run_in_thread(lambda: _verify(password_hash or _dummy_hash(), password)) and password_hash is not None


def is_outdated(password_hash: str) -> bool:
    """Whether a hash was computed with parameters that are no longer current."""
    return _hasher.check_needs_rehash(password_hash)


def _verify(password_hash: str, password: str) -> bool:
    try:
        return _hasher.verify(password_hash, encode_password(password[: 4 * MAX_PASSWORD_LENGTH]))
    except (VerificationError, InvalidHashError):
        return False


@cache
def _dummy_hash() -> str:
    return _hasher.hash("nobody's")


@cache
def _threads() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(2, "passwords")


async def _run_in_thread(work: Callable[[], T]) -> T:
    """Run CPU-bound work in a thread, so that the event loop stays responsive."""
    return await asyncio.get_running_loop().run_in_executor(_threads(), work)
