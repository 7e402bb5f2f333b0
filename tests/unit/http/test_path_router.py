"""One router finds the endpoint of every path, and runs the application's lifespan."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest
from starlette.types import Message, Receive, Scope, Send

from plankeeper.http.routing import PathRouter


class NamedApp:
    """An application whose response is its name."""

    def __init__(self, name: str) -> None:
        self.name = name

    async def __call__(self, _scope: Scope, _receive: Receive, send: Send) -> None:
        await send({"type": "name", "name": self.name})


PATHS = ["/", "/things", "/things/{thing_id}", "/things/{thing_id}/parts/{part_id}", "/things/new", "/pages"]


def route(path: str) -> tuple[str, Mapping[str, str]]:
    """The name of the application for a path, and the path's parameters."""
    router = PathRouter(
        {each: NamedApp(each) for each in PATHS},
        default=NamedApp("default"),
        fallbacks={"/pages/": NamedApp("page not found")},
    )
    scope: dict[str, Any] = {"type": "http", "path": path}
    [message] = run(router, scope, [])
    return message["name"], scope.get("path_params", {})


def run(app: PathRouter, scope: Scope, received: list[Message]) -> list[Message]:
    messages: list[Message] = []

    async def receive() -> Message:
        return received.pop(0)

    async def send(message: Message) -> None:
        messages.append(message)

    asyncio.run(app(scope, receive, send))
    return messages


@pytest.mark.parametrize(
    "path, name, parameters",
    [
        ("/", "/", {}),
        ("/things", "/things", {}),
        ("/things/7", "/things/{thing_id}", {"thing_id": "7"}),
        ("/things/7/parts/x y", "/things/{thing_id}/parts/{part_id}", {"thing_id": "7", "part_id": "x y"}),
        ("/things/new", "/things/new", {}),
        ("/pages", "/pages", {}),
    ],
)
def test_a_path_leads_to_its_application(path: str, name: str, parameters: Mapping[str, str]) -> None:
    assert route(path) == (name, parameters)


@pytest.mark.parametrize(
    "path",
    ["", "//", "/thing", "/things/", "/things//", "/things/7/", "/things/7/parts", "/things//parts/1", "/pagesX"],
)
def test_an_unknown_path_leads_to_the_default(path: str) -> None:
    assert route(path)[0] == "default"


@pytest.mark.parametrize("path", ["/pages/", "/pages/1", "/pages/1/2"])
def test_an_unknown_path_below_a_prefix_leads_to_its_fallback(path: str) -> None:
    assert route(path)[0] == "page not found"


def test_the_lifespan_yields_the_state_and_closes_on_shutdown() -> None:
    steps: list[str] = []

    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[dict[str, int]]:
        steps.append("open")
        yield {"max_connections": 5}
        steps.append("close")

    scope: dict[str, Any] = {"type": "lifespan", "state": {}}
    app = PathRouter({}, default=NamedApp("default"), lifespan=lifespan)
    messages = run(app, scope, [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}])
    assert scope["state"] == {"max_connections": 5}
    assert steps == ["open", "close"]
    assert messages == [{"type": "lifespan.startup.complete"}, {"type": "lifespan.shutdown.complete"}]


@pytest.mark.parametrize("phase", ["startup", "shutdown"])
def test_a_failure_of_the_lifespan_is_reported_to_the_server(phase: str, caplog: pytest.LogCaptureFixture) -> None:
    @asynccontextmanager
    async def lifespan() -> AsyncGenerator[None]:
        if phase == "startup":
            raise OSError("no database")
        yield
        raise OSError("no database")

    app = PathRouter({}, default=NamedApp("default"), lifespan=lifespan)
    messages: list[Message] = []
    received = [{"type": "lifespan.startup"}, {"type": "lifespan.shutdown"}]

    async def receive() -> Message:
        return received.pop(0)

    async def send(message: Message) -> None:
        messages.append(message)

    with pytest.raises(OSError, match="no database"):
        asyncio.run(app({"type": "lifespan"}, receive, send))
    assert messages[-1]["type"] == f"lifespan.{phase}.failed"
    assert messages[-1]["message"] == ""  # uvicorn would log the text of the exception
    [record] = caplog.records
    assert (record.getMessage(), vars(record)["phase"]) == ("the lifespan failed", phase)
    assert record.exc_info
    assert record.exc_info[0] is OSError
