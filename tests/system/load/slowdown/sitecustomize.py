"""Makes a server slower. Python imports this module at its start if the folder is in PYTHONPATH."""

import os
from typing import Any

from uvicorn.protocols.http.httptools_impl import RequestResponseCycle

_LOOPS = int(os.environ["SLOWDOWN_LOOPS"])  # for each request: like its own work, they take longer on a busy machine

_run_asgi = RequestResponseCycle.run_asgi


async def _run_slowly(cycle: RequestResponseCycle, app: Any) -> None:
    for _ in range(_LOOPS):
        pass
    await _run_asgi(cycle, app)


RequestResponseCycle.run_asgi = _run_slowly
