"""The tests' own server says why it can't start."""

import time
from collections.abc import Callable
from contextlib import asynccontextmanager
from typing import Any, NoReturn
from unittest.mock import MagicMock

import pytest
import uvicorn

from plankeeper.core.settings import Settings
from plankeeper.http.routing import PathRouter
from support import server
from support.server import RunningServer


def cannot_build(_settings: Settings) -> NoReturn:
    raise TypeError("the cause")


def cannot_open(_settings: Settings) -> Any:
    @asynccontextmanager
    async def lifespan() -> Any:
        raise TypeError("the cause")
        yield

    return PathRouter({}, default=MagicMock(), lifespan=lifespan)


@pytest.mark.parametrize("build_app", [cannot_build, cannot_open])
def test_a_server_that_cannot_start_raises_the_cause_at_once(
    monkeypatch: pytest.MonkeyPatch, build_app: Callable[[Settings], Any]
) -> None:
    monkeypatch.setattr(server, "build_app", build_app)
    started = time.monotonic()
    with pytest.raises(TypeError, match="the cause"):
        RunningServer("postgresql://nobody@127.0.0.1:1/none").start()
    assert time.monotonic() - started < 10  # and not after the 60 seconds that a start may take


def test_a_server_that_exits_at_its_start_is_reported_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async def serve(*_: Any) -> NoReturn:
        raise SystemExit(1)

    monkeypatch.setattr(uvicorn.Server, "serve", serve)
    with pytest.raises(SystemExit):
        RunningServer("postgresql://nobody@127.0.0.1:1/none").start()
