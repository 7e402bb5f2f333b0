"""Is the process alive, and can it serve: for load balancers and process managers, without a key."""

from collections.abc import Callable
from typing import Protocol

from starlette.responses import Response
from starlette.types import Receive, Scope, Send

from plankeeper.database import schema
from plankeeper.database.client import Database
from plankeeper.http.errors import Refusal
from plankeeper.http.requests import Answer, headers_of, log, refused, request_id_of


class Metrics:
    """Answers with the text that `text` makes."""

    def __init__(self, text: Callable[[], bytes], content_type: str) -> None:
        self._text = text
        self._content_type = content_type

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        await Response(self._text(), headers={"content-type": self._content_type})(scope, receive, send)


class _Status(Protocol):
    async def __call__(self) -> Answer: ...


class Probe:
    """Answers with what `check` says."""

    def __init__(self, check: _Status) -> None:
        self._check = check

    async def __call__(self, scope: Scope, _receive: Receive, send: Send) -> None:
        request_id = request_id_of(headers_of(scope))
        try:
            answer = await self._check()
        except Refusal as refusal:
            answer = refused(refusal, request_id.decode())
        await answer.send(request_id, send)


async def alive() -> Answer:
    return Answer.of(200, {"status": "ok"})


def _not_ready(detail: str) -> Refusal:
    return Refusal("service_unavailable", detail, headers={"retry-after": "1"})


def ready(db: Database) -> _Status:
    """200 when the database answers and its schema is the expected one, else 503 with what is wrong."""

    async def check() -> Answer:
        try:
            found = await schema.version(db)
        except Exception as error:
            log.warning("not ready: %r", error)
            raise _not_ready("The database does not answer.") from error
        if found != schema.EXPECTED:
            newer = found is not None and found > schema.EXPECTED
            advice = "update this server" if newer else "run plankeeper migrate"
            detail = f"The schema is {found}, and this server needs {schema.EXPECTED}: {advice}."
            raise _not_ready(detail)
        return Answer.of(200, {"status": "ok"})

    return check
