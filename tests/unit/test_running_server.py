"""The tests' own server says why it can't start."""

from typing import NoReturn

import pytest

from plankeeper.core.settings import Settings
from support import server
from support.server import RunningServer


def test_a_server_that_cannot_be_built_raises_the_cause(monkeypatch: pytest.MonkeyPatch) -> None:
    def build_app(_settings: Settings) -> NoReturn:
        raise TypeError("Type unions may not contain more than one str-like type")

    monkeypatch.setattr(server, "build_app", build_app)
    with pytest.raises(TypeError, match="str-like type"):
        RunningServer("postgresql://nobody@127.0.0.1:1/none").start()
