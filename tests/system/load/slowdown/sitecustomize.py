"""Makes a server slower. Python imports this module at its start if the folder is in PYTHONPATH."""

import os
import time
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_DELAY = float(os.environ["SLOWDOWN_MICROSECONDS"]) * 1000  # ns of processor time for each request

_run_asgi = RequestResponseCycle.run_asgi


async def _run_slowly(cycle: RequestResponseCycle, app: Any) -> None:
    end = time.thread_time_ns() + _DELAY
    while time.thread_time_ns() < end:
        pass
    await _run_asgi(cycle, app)


RequestResponseCycle.run_asgi = _run_slowly
