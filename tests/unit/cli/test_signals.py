"""A signal ends a command's work without a word, also where a cancellation gets lost."""

import asyncio
import os
import signal
from contextlib import suppress
from functools import partial
from typing import Any
from weakref import WeakValueDictionary

import pytest

from plankeeper.cli import context


async def _ignore_first_cancellation() -> None:
    """Takes no notice of the first cancellation, as a library may."""
    asyncio.get_running_loop().call_soon(os.kill, os.getpid(), signal.SIGINT)
    with suppress(asyncio.CancelledError):
        await asyncio.sleep(60)
    await asyncio.sleep(60)


def test_work_that_ignores_its_cancellation_is_cancelled_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(context, "CANCEL_RETRY_INTERVAL", 0.05)
    with pytest.raises(KeyboardInterrupt):
        context.run(_ignore_first_cancellation)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


@pytest.mark.parametrize("owner, name", [(WeakValueDictionary, "__init__"), (signal, "signal")])
def test_a_signal_before_the_work_starts_ends_the_command_without_a_message(
    owner: object, name: str, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """It comes while uvloop makes the event loop, or while asyncio prepares to run it."""
    function = getattr(owner, name)

    def interrupt(*arguments: Any) -> Any:
        monkeypatch.undo()
        result = function(*arguments)
        os.kill(os.getpid(), signal.SIGINT)
        return result

    monkeypatch.setattr(owner, name, interrupt)
    with pytest.raises(KeyboardInterrupt):
        context.run(partial(asyncio.sleep, 60))
    assert caplog.messages == []  # uvloop reports an event loop that was never closed


def test_a_signal_as_the_work_ends_ends_the_command() -> None:
    async def work() -> None:
        os.kill(os.getpid(), signal.SIGINT)

    with pytest.raises(KeyboardInterrupt):
        context.run(work)
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
