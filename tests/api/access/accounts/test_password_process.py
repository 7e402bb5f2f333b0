"""The process that computes hashes: it agrees with argon2, outlives an interruption, and shares a lock."""

import asyncio
import fcntl
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from argon2 import PasswordHasher

from plankeeper.access.accounts import passwords
from plankeeper.access.accounts.passwords import LOCK_FILE_VARIABLE


@pytest.fixture
def lock_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    """Hashes are computed in a process, as in a worker of `serve`."""
    path = tmp_path / "passwords.lock"
    monkeypatch.setenv(LOCK_FILE_VARIABLE, str(path))
    passwords.use_process()
    yield path
    passwords._processes.clear()  # noqa: SLF001 - what follows computes in threads again


async def test_a_process_hashes_and_verifies(lock_file: Path) -> None:
    password_hash = await passwords.hash_password("nine violet umbrellas")
    assert PasswordHasher().verify(password_hash, "nine violet umbrellas")
    assert await passwords.verify(password_hash, "nine violet umbrellas")
    assert not await passwords.verify(password_hash, "nine violet umbrella")
    assert not await passwords.verify(None, "\ud800 \n \0")
    assert not await passwords.verify("no hash", "x")
    assert lock_file.stat().st_mode & 0o777 == 0o600
    await passwords.close()


async def test_a_cancelled_request_does_not_answer_the_next(lock_file: Path) -> None:
    right = await passwords.hash_password("right")
    for _ in range(3):
        descriptor = os.open(lock_file, os.O_RDWR)
        fcntl.flock(descriptor, fcntl.LOCK_EX)  # so that the request waits
        cancelled = asyncio.create_task(passwords.verify(right, "right"))
        await asyncio.sleep(0.01)
        cancelled.cancel()
        with pytest.raises(asyncio.CancelledError):
            await cancelled
        os.close(descriptor)
        assert not await passwords.verify(right, "wrong")
    await passwords.close()


async def test_no_hash_is_computed_while_another_worker_computes_one(lock_file: Path) -> None:
    right = await passwords.hash_password("right")
    descriptor = os.open(lock_file, os.O_RDWR)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    waiting = asyncio.create_task(passwords.verify(right, "right"))
    done, _ = await asyncio.wait([waiting], timeout=0.3)
    assert not done
    os.close(descriptor)
    assert await waiting
    await passwords.close()
