"""Rolling restarts of one of two servers behind the documented proxies, under load: clients notice nothing."""

import re
import ssl
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from uuid import uuid4

import httpx
import pytest

from support.client import PREFIX
from support.cluster import SharedCluster
from support.folder import temporary_folder
from support.ports import free_port
from support.program import ServeProcess, run_plankeeper
from support.proxies import COMMANDS, HOST, Ports, require_program, start_proxy, write_certificates
from support.server import wait_until

RESTARTS = 3
CLIENTS = 4


class Load:
    """Clients that write and read without a pause, each over a connection of its own."""

    def __init__(self, url: str, headers: dict[str, str], context: ssl.SSLContext, *, with_keys: bool) -> None:
        self._url, self._headers, self._context, self._with_keys = url, headers, context, with_keys
        self.failures: list[str] = []
        self.created: list[str] = []
        self.requests = 0
        self.longest = 0.0
        self._stopping = threading.Event()
        self._lock = threading.Lock()
        self._threads = [threading.Thread(target=self._run) for _ in range(CLIENTS)]
        for each in self._threads:
            each.start()

    def finish(self) -> None:
        self._stopping.set()
        for each in self._threads:
            each.join(60)

    def _run(self) -> None:
        with httpx.Client(base_url=self._url, headers=self._headers, verify=self._context, timeout=60) as client:
            while not self._stopping.is_set():
                name = uuid4().hex
                key = {"Idempotency-Key": name} if self._with_keys else {}
                created = self._send(client, "POST", "/participants", json={"first_name": name}, headers=key)
                if created is None:
                    continue
                with self._lock:
                    self.created.append(name)
                path = f"/participants/{created['id']}"
                self._send(client, "GET", path)
                self._send(client, "PUT", path, json={"last_name": "Kept"})
                self._send(client, "GET", "/participants?limit=5")

    def _send(self, client: httpx.Client, method: str, path: str, **more: Any) -> Any:
        """The body of a response; None if the request failed."""
        started = time.monotonic()
        try:
            response = client.request(method, PREFIX + path, extensions={"sni_hostname": HOST}, **more)
            problem = "" if response.status_code == 200 else f"{method} {path}: {response.status_code} {response.text}"
        except httpx.TransportError as error:
            response, problem = None, f"{method} {path}: {error!r}"
        with self._lock:
            self.requests += 1
            self.longest = max(self.longest, time.monotonic() - started)
            if problem:
                self.failures.append(problem)
        return None if problem or response is None else response.json()


class Site(NamedTuple):
    url: str
    headers: dict[str, str]
    context: ssl.SSLContext
    settings: dict[str, str]
    folder: Path
    ports: tuple[int, int]

    def start(self, port: int) -> ServeProcess:
        return ServeProcess(self.folder, "--port", str(port), **self.settings)


@contextmanager
def running_site(name: str, cluster: SharedCluster, drain_delay: int) -> Iterator[Site]:
    require_program(name)
    ports, servers = Ports(free_port(), free_port()), (free_port(), free_port())
    settings = {
        "PLANKEEPER_DATABASE_URL": cluster.new_database(), "PLANKEEPER_TRUSTED_PROXIES": "127.0.0.1",
        "PLANKEEPER_DRAIN_DELAY": str(drain_delay),
    }  # fmt: skip
    dsn = {"PLANKEEPER_DATABASE_URL": settings["PLANKEEPER_DATABASE_URL"]}
    with temporary_folder() as folder:
        context = ssl.create_default_context()
        write_certificates(folder, HOST).configure_trust(context)
        plan_manager = run_plankeeper("plan-managers", "create", "--name", "Acacia", **dsn).stdout.strip()
        shown = run_plankeeper("keys", "create", "--name", "k", "--plan-manager", plan_manager, **dsn).stdout
        [key] = set(re.findall(r"plk_\w+", shown))
        url = f"https://127.0.0.1:{ports.https}"
        headers = {
            "Host": f"{HOST}:{ports.https}", "Authorization": f"Bearer {key}", "X-Plan-Manager-Id": plan_manager,
        }  # fmt: skip
        command = COMMANDS[name](folder, ports, *(f"127.0.0.1:{port}" for port in servers))
        proxy = start_proxy(command, ports.https)
        try:
            yield Site(url, headers, context, settings, folder, servers)
        finally:
            proxy.terminate()
            proxy.wait(30)


def created_names(url: str, headers: dict[str, str]) -> Counter[str]:
    """The names of all participants, read from a server itself."""
    names: Counter[str] = Counter()
    after: str | None = "0"
    while after:
        params: dict[str, Any] = {"limit": 1000, "after": after}
        page = httpx.get(f"{url}{PREFIX}/participants", params=params, headers=headers).json()
        names.update(each["first_name"] for each in page["data"])
        after = page["pagination"]["next_cursor"]
    return names


def is_served(url: str) -> bool:
    """Whether requests of the load have reached a server."""
    metrics = httpx.get(f"{url}/metrics").text
    return (
        re.search(r'requests_total\{method="POST",route="\S+/participants",status="200"\} [1-9]', metrics) is not None
    )


@pytest.mark.parametrize(
    "name, drain_delay, with_keys",
    [
        ("nginx", 0, True),
        ("haproxy", 0, True),
        ("haproxy", 5, False),  # longer than HAProxy takes to notice
    ],
)
def test_no_request_fails_while_a_server_restarts(
    name: str, drain_delay: int, with_keys: bool, cluster: SharedCluster
) -> None:
    with running_site(name, cluster, drain_delay) as site:
        restarted, other = (site.start(port) for port in site.ports)
        wait_until(lambda: is_ready(site))
        load = Load(site.url, site.headers, site.context, with_keys=with_keys)
        for _ in range(RESTARTS):
            wait_until(lambda server=restarted: is_served(server.url))
            assert restarted.stop() == 0
            restarted = site.start(site.ports[0])
        wait_until(lambda: is_served(restarted.url))
        assert is_served(other.url)
        load.finish()
        sys.stdout.write(f"{name}, {drain_delay} s: {load.requests} requests, longest {load.longest * 1000:.0f} ms\n")
        assert load.failures == []
        assert created_names(other.url, site.headers) == Counter(load.created)
        assert (restarted.stop(), other.stop()) == (0, 0)


def is_ready(site: Site) -> bool:
    with httpx.Client(verify=site.context, headers=site.headers) as client:
        response = client.get(f"{site.url}/readyz", extensions={"sni_hostname": HOST})
    return response.status_code == 200
