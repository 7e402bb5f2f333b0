"""A signal ends a command's work, also where a cancellation gets lost."""

import asyncio
import os
import signal
from contextlib import suppress

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
        context.run(_ignore_first_cancellation())
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler
