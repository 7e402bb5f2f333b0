"""Bodies that arrive slowly share a limited memory, of the worker and of each key."""

import asyncio
import gc
import weakref
from collections.abc import Awaitable, Callable, Iterator
from typing import Any

import pytest
from starlette.requests import Request

from plankeeper.console.shell.forms import MAX_FORM_BYTES, UploadLimits, read_form, read_upload
from plankeeper.core.errors import DomainError
from plankeeper.http.requests import BodyBudget, read_body

JSON = {b"content-type": b"application/json"}


class SlowBody:
    """The parts of a body. Each arrives when the test sends it."""

    def __init__(self) -> None:
        self._parts = asyncio.Queue[dict[str, Any]]()

    def send(self, part: bytes, *, is_last: bool = False) -> None:
        self._parts.put_nowait({"type": "http.request", "body": part, "more_body": not is_last})

    async def receive(self) -> dict[str, Any]:
        return await self._parts.get()


def reading(budget: BodyBudget, sender: str, length: int | None = None) -> tuple[SlowBody, "asyncio.Task[bytes]"]:
    """A body whose first byte has arrived, and the task that reads it."""
    body = SlowBody()
    body.send(b"{")
    headers = JSON | ({b"content-length": str(length).encode()} if length else {})
    return body, asyncio.create_task(read_body(headers, body.receive, budget, sender, 100))


async def settle() -> None:
    for _ in range(5):
        await asyncio.sleep(0)


@pytest.fixture
def budget() -> Iterator[BodyBudget]:
    budget = BodyBudget(worker=150, sender=100)
    yield budget
    assert budget.used == 0


async def test_the_announced_length_counts_until_the_body_is_complete(budget: BodyBudget) -> None:
    first, task = reading(budget, "one", 90)
    await settle()
    assert budget.used == 90
    _, rejected = reading(budget, "one", 20)
    with pytest.raises(DomainError, match="Large bodies of this key") as error:
        await rejected
    assert (error.value.status, error.value.retry_after) == (503, 1)
    _, rejected = reading(budget, "two", 80)
    with pytest.raises(DomainError, match="too busy"):
        await rejected
    first.send(b"}", is_last=True)
    assert await task == b"{}"
    second, task = reading(budget, "two", 80)
    second.send(b"}", is_last=True)
    assert await task == b"{}"


async def test_a_body_without_a_length_counts_as_it_arrives(budget: BodyBudget) -> None:
    _, task = reading(budget, "one", 90)
    growing, grown = reading(budget, "two")
    growing.send(b" " * 40)
    await settle()
    assert budget.used == 131
    growing.send(b" " * 40)
    with pytest.raises(DomainError, match="too busy"):
        await grown
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def test_a_body_that_arrives_with_its_headers_does_not_count(budget: BodyBudget) -> None:
    _, task = reading(budget, "one", 100)
    await settle()
    body = SlowBody()
    body.send(b'{"a": 1}', is_last=True)
    assert await read_body(JSON, body.receive, budget, "one", 100) == b'{"a": 1}'
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


async def read_large_form(body: SlowBody) -> object:
    headers = [(b"content-type", b"application/x-www-form-urlencoded")]
    return await read_form(Request({"type": "http", "headers": headers}, body.receive), 100)


async def read_large_upload(body: SlowBody) -> object:
    headers = [(b"content-type", b"multipart/form-data; boundary=x")]
    limits = UploadLimits(1, 1, "too large")
    return await read_upload(Request({"type": "http", "headers": headers}, body.receive), limits)


async def read_large_body(body: SlowBody) -> object:
    return await read_body(JSON, body.receive, BodyBudget(), "one", 100)


async def read_announced_body(body: SlowBody) -> object:
    return await read_body(JSON | {b"content-length": b"1000"}, body.receive, BodyBudget(), "one", 100)


@pytest.mark.parametrize("read", [read_large_body, read_announced_body, read_large_form, read_large_upload])
async def test_a_body_that_is_too_large_is_free_at_once(read: Callable[[SlowBody], Awaitable[object]]) -> None:
    """Without a collection of cycles: the error, whose traceback has the frames with the body, is in none."""
    body = SlowBody()
    body.send(b'--x\r\nContent-Disposition: form-data; name="f"; filename="f"\r\n\r\n')
    body.send(b" " * MAX_FORM_BYTES, is_last=True)
    gc.disable()
    try:
        with pytest.raises(DomainError, match="body_too_large") as caught:
            await read(body)
        error = weakref.ref(caught.value)
        del caught
        assert error() is None
    finally:
        gc.enable()
