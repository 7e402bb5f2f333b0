"""Telemetry that is off costs nothing: no import, no call, and the same connections and endpoints as without it."""

import subprocess
import sys

import pytest

from plankeeper.core import setting_parsers
from plankeeper.core.settings import SettingError, Settings
from plankeeper.database.connections import notify_all

# A request in a process of its own: which modules are imported, and which functions are called.
REQUEST = """
import asyncio, sys
from plankeeper.server.app import build_app
from plankeeper.core.settings import Settings

app = build_app(Settings.read({"PLANKEEPER_AUTH_FAILURE_RATE_LIMIT": "off", "PLANKEEPER_SLOW_STATEMENTS": "off"}))
scope = {
    "type": "http", "method": "GET", "path": "/api/public/v1/note-types", "raw_path": b"/api/public/v1/note-types",
    "query_string": b"", "client": ("127.0.0.1", 1), "path_params": {},
    "headers": [(b"authorization", b"Bearer wrong"), (b"traceparent", b"00-" + b"1" * 32 + b"-" + b"2" * 16 + b"-01")],
}
sent, called = [], set()

async def receive(): return {"type": "http.request"}
async def send(message): sent.append(message)
def profile(frame, event, _):
    if event == "call":
        called.add(frame.f_globals.get("__name__", ""))

async def request():
    sys.setprofile(profile)
    await app(scope, receive, send)
    sys.setprofile(None)

asyncio.run(request())
assert sent[0]["status"] == 401, sent
print(*sorted(each for each in called if each.startswith(("opentelemetry", "plankeeper.server.telemetry"))))
print(*sorted(each for each in sys.modules if each.startswith("opentelemetry")))
print(len(called) > 5)
"""


def test_a_request_calls_nothing_of_telemetry_and_nothing_is_imported() -> None:
    done = subprocess.run([sys.executable, "-c", REQUEST], capture_output=True, text=True, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split("\n") == ["", "", "True", ""]


def test_without_observers_connections_are_not_observed() -> None:
    assert notify_all(None, None) is None

    def observer(_statement: str, _seconds: float, _error: BaseException | None) -> None: ...

    assert notify_all(None, observer) is observer


def test_telemetry_without_the_extra_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(setting_parsers, "find_spec", lambda _name: None)
    assert Settings.read({"PLANKEEPER_TELEMETRY": "off"}).telemetry is False
    with pytest.raises(SettingError, match=r"off without the extra plankeeper\[telemetry\]"):
        Settings.read({"PLANKEEPER_TELEMETRY": "on"})
