"""A signal ends a command's work without a word, also where a cancellation gets lost."""

import asyncio
import gc
import os
import signal
import weakref
from contextlib import suppress
from functools import partial
from typing import Any

import pytest

from plankeeper.cli import context
from plankeeper.core.settings import Settings


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


@pytest.mark.parametrize("owner, name", [(weakref.WeakValueDictionary, "__init__"), (signal, "signal")])
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


def test_a_signal_in_a_callback_of_the_garbage_collector_is_not_lost() -> None:
    class Cycle:
        """One that only the garbage collector frees."""

        def __init__(self) -> None:
            self.itself = self

    def interrupt(_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    reference = weakref.ref(Cycle(), interrupt)
    with pytest.raises(KeyboardInterrupt), context.delay_signals():
        gc.collect()
    assert reference() is None


def test_sigterm_ends_a_command_with_a_named_database_as_one_with_its_own() -> None:
    settings = Settings.read({"PLANKEEPER_DATABASE_URL": "postgresql:///named"})
    before = signal.getsignal(signal.SIGTERM)
    try:
        with pytest.raises(SystemExit, match="143"), context.embedded_cluster(settings):
            signal.raise_signal(signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, before)
