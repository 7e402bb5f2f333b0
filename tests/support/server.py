"""The application on a real socket, in a thread of the test process."""

import asyncio
import atexit
import shutil
import socket
import threading
import time
from collections.abc import Coroutine
from dataclasses import replace
from tempfile import mkdtemp
from typing import Any, TypeVar
from uuid import uuid4

import asyncpg
import httpx
import uvicorn
import uvloop

from plankeeper.core.settings import Settings
from plankeeper.database.client import Database
from plankeeper.database.unavailability import SENTENCES
from plankeeper.http.connections import IDLE_TIMEOUT, LimitedHttpProtocol
from plankeeper.server.app import build_app
from support.cluster import as_owner
from support.secret_keys import shared_key_file

T = TypeVar("T")

# The documents of all servers of this process.
_DOCUMENTS = mkdtemp(prefix="plankeeper-documents-")
atexit.register(shutil.rmtree, _DOCUMENTS, ignore_errors=True)


class RunningServer:
    """A server with its own event loop; `run` runs a coroutine there, beside it, on a pool of its own (`db`)."""

    def __init__(self, dsn: str, idle_timeout: int = IDLE_TIMEOUT, **changes: Any) -> None:
        self.dsn = dsn
        self.idle_timeout = idle_timeout
        # All tests come from one address, and some send more in a minute than a client should.
        defaults: dict[str, Any] = {
            "auth_failure_rate_limit": 0,
            "sign_in_rate_limit": 0,
            "rate_limit": 100_000,
            "access_log": False,
            "slow_statements": None,  # on a busy machine, any statement can be slow, and a test reads what is logged
            "secret_key_file": shared_key_file(),
            "documents_url": f"file://{_DOCUMENTS}/{uuid4()}",
        }
        self.settings = replace(Settings.read({"PLANKEEPER_DATABASE_URL": dsn}), **(defaults | changes))
        self.db = Database(dsn, pool_size=5)
        self.loop = uvloop.new_event_loop()  # as in production
        self._socket = socket.create_server(("127.0.0.1", 0))
        self.url = f"http://127.0.0.1:{self._socket.getsockname()[1]}"
        self._ready = threading.Event()
        self._start_error: BaseException | None = None
        self._thread = threading.Thread(target=self._main, daemon=True)

    def start(self) -> "RunningServer":
        self._thread.start()
        assert self._ready.wait(60), "the server did not start"
        if self._start_error:
            raise self._start_error
        return self

    def stop(self) -> None:
        self._server.should_exit = True
        self._thread.join(60)
        assert not self._thread.is_alive(), "the server did not stop"

    def run(self, work: Coroutine[Any, Any, T], seconds: float = 60) -> T:
        return asyncio.run_coroutine_threadsafe(work, self.loop).result(seconds)

    def execute_as_owner(self, statement: str, *values: object) -> None:
        """Run a statement that no server runs, with the role that owns the tables."""

        async def execute() -> None:
            connection: Any = await asyncpg.connect(as_owner(self.dsn))
            try:
                await connection.execute(statement, *values)
            finally:
                await connection.close()

        self.run(execute())

    def _main(self) -> None:
        asyncio.set_event_loop(self.loop)
        try:
            self.loop.run_until_complete(self._serve())
        except BaseException as error:  # also SystemExit, with which uvicorn gives up
            if self._ready.is_set():
                raise
            self._socket.close()
            self._start_error = self._start_error or error  # `start` raises it
            self._ready.set()
        finally:
            self.loop.close()

    def _build_app(self) -> Any:
        """The application. An exception at its start, which uvicorn only logs, is kept."""
        app: Any = build_app(self.settings)

        async def run(scope: Any, receive: Any, send: Any) -> None:
            try:
                await app(scope, receive, send)
            except BaseException as error:
                if scope["type"] == "lifespan":
                    self._start_error = error
                raise

        return run

    async def _serve(self) -> None:
        config = uvicorn.Config(
            self._build_app(), loop="none", log_level="warning", lifespan="on", access_log=False,
            timeout_graceful_shutdown=2, timeout_keep_alive=self.idle_timeout, http=LimitedHttpProtocol,
        )  # fmt: skip
        self._server = uvicorn.Server(config)
        async with self.db.open():
            serving = asyncio.create_task(self._server.serve([self._socket]))
            while not self._server.started and not serving.done():
                await asyncio.sleep(0.01)
            if not self._server.started:
                await serving
                raise RuntimeError("the server did not start")
            self._ready.set()
            await serving


def readiness(url: str) -> httpx.Response:
    """The response of `/readyz`. Asks again while PostgreSQL doesn't answer in time, as on a busy machine."""
    return wait_until(lambda: SENTENCES["down"] not in (found := httpx.get(f"{url}/readyz")).text and found)


def wait_until(condition: Any, seconds: float = 60) -> Any:
    """Repeat until the result is true. The time allows for a busy machine, and is no bound of the product."""
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if result := condition():
            return result
        time.sleep(0.02)
    raise AssertionError("it did not come true in time")
