"""Lines of `plankeeper doctor` about the headers that reach the server through the proxy."""

import ssl
from collections.abc import Mapping

import httpcore

from plankeeper.cli.doctor_checks import Line
from plankeeper.core.settings import Settings

_TIMEOUT = {"connect": 5.0, "read": 5.0, "write": 5.0, "pool": 5.0}  # seconds
_MISDIRECTED_REQUEST = 421


def proxy_lines(settings: Settings) -> list[Line]:
    """Requests to the public URL, through whatever is in front of the server. Without that URL, there are none."""
    url = settings.public_url
    if url is None:
        return []
    try:
        with httpcore.ConnectionPool(ssl_context=ssl.create_default_context()) as pool:
            health, sign_in = _get(pool, f"{url}/healthz"), _get(pool, f"{url}/console/sign-in")
            metrics = _get(pool, f"{url}/metrics")
            forged_metrics = _get(pool, f"{url}/metrics", _forged_headers(settings))
    except (httpcore.NetworkError, httpcore.TimeoutException, httpcore.ProtocolError) as error:
        return [("warn", f"{url} can't be reached from here ({type(error).__name__}), so its proxy is not checked")]
    if health != 200:
        return [("warn", f"{url}/healthz responds with {health} instead of 200: does the proxy lead to a server?")]
    lines: list[Line] = []
    if sign_in == _MISDIRECTED_REQUEST:
        lines.append(("FAIL", f"the proxy of {url} doesn't pass on `Host` with its port, so the console rejects it"))
    if forged_metrics == 200 != metrics:
        text = f"the proxy of {url} passes on the `X-Forwarded-For` of clients, who can choose their address"
        lines.append(("FAIL", f"{text}: let it overwrite the header"))
    return lines or [("ok", f"{url} leads to a server, with the headers that it requires")]


def _forged_headers(settings: Settings) -> Mapping[str, str]:
    """The address of a client that may read the metrics."""
    network = next(iter(settings.metrics_networks), None)
    return {"X-Forwarded-For": str(network.network_address)} if network else {}


def _get(pool: httpcore.ConnectionPool, url: str, headers: Mapping[str, str] | None = None) -> int:
    """The status of the response."""
    sent = [(name.encode(), value.encode()) for name, value in (headers or {}).items()]
    return pool.request("GET", url, headers=sent, extensions={"timeout": _TIMEOUT}).status
