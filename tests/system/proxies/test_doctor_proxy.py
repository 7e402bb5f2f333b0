"""`plankeeper doctor` in front of HAProxy: what breaks the console, or lets clients choose their address."""

from collections.abc import Callable, Iterator
from ipaddress import ip_network
from pathlib import Path

import pytest

from support.cluster import SharedCluster
from support.folder import temporary_folder
from support.ports import free_port
from support.program import run_plankeeper
from support.proxies import require_program, start_proxy, write_certificates
from support.server import RunningServer

CONFIGURATION = """
defaults
    mode http
    timeout connect 5s
    timeout client 30s
    timeout server 30s
    default_backend plankeeper

backend plankeeper
    server plankeeper1 {server}
"""
FRONTEND = """
frontend {name}
    bind 127.0.0.1:{port} ssl crt {folder}/all.pem
    {rule}
"""
RULES = {
    "correct": "http-request set-header X-Forwarded-For %[src]",
    "another host": "http-request set-header X-Forwarded-For %[src]\n    http-request set-header Host 127.0.0.1",
    "forwarded header of clients": "http-request set-header Host 127.0.0.1:{correct}",
    "no server": "http-request return status 404",
}


@pytest.fixture(scope="module")
def proxy_lines(cluster: SharedCluster) -> Iterator[Callable[[str], list[str]]]:
    """Run the doctor with the public URL of a frontend: its lines about the proxy, with `URL` for the address."""
    require_program("haproxy")
    ports = {name: free_port() for name in [*RULES, "stopped"]}
    dsn = cluster.new_database()
    server = RunningServer(
        dsn,
        public_url=f"https://127.0.0.1:{ports['correct']}",
        trusted_proxies=("127.0.0.1",),
        metrics_networks=(ip_network("10.1.0.0/16"),),
    ).start()
    with temporary_folder() as folder:
        authority = write_certificates(folder, "127.0.0.1")
        authority.cert_pem.write_to_path(folder / "authority.pem")
        start = start_proxy(haproxy_command(folder, server.url, ports), ports["correct"])

        def run_doctor(name: str) -> list[str]:
            url = f"https://127.0.0.1:{ports[name]}"
            shown = run_plankeeper(
                "doctor",
                PLANKEEPER_DATABASE_URL=dsn,
                PLANKEEPER_PUBLIC_URL=url,
                PLANKEEPER_TRUSTED_PROXIES="127.0.0.1",
                PLANKEEPER_METRICS_NETWORKS="10.1.0.0/16",
                SSL_CERT_FILE=str(folder / "authority.pem"),
            ).stdout
            return [line.replace(url, "URL") for line in shown.splitlines() if url in line]

        yield run_doctor
        start.terminate()
        start.wait(30)
    server.stop()
    cluster.drop(dsn)


def haproxy_command(folder: Path, url: str, ports: dict[str, int]) -> list[str]:
    text = CONFIGURATION.format(server=url.removeprefix("http://"))
    for name, rule in RULES.items():
        frontend = {"name": name.replace(" ", "_"), "port": ports[name], "folder": folder}
        text += FRONTEND.format(**frontend, rule=rule.format(**ports))
    (folder / "haproxy.cfg").write_text(text)
    return ["/usr/sbin/haproxy", "-db", "-f", str(folder / "haproxy.cfg")]


LINES = {
    "correct": "ok    URL leads to a server, with the headers that it requires",
    "another host": "FAIL  the proxy of URL doesn't pass on `Host` with its port, so the console rejects it",
    "forwarded header of clients": (
        "FAIL  the proxy of URL passes on the `X-Forwarded-For` of clients, who can choose their address:"
        " let it overwrite the header"
    ),
    "no server": "warn  URL/healthz responds with 404 instead of 200: does the proxy lead to a server?",
    "stopped": "warn  URL can't be reached from here (ConnectError), so its proxy is not checked",
}


@pytest.mark.parametrize("name,line", LINES.items(), ids=LINES)
def test_the_doctor_checks_what_the_proxy_passes_on(
    proxy_lines: Callable[[str], list[str]], name: str, line: str
) -> None:
    assert proxy_lines(name) == [line]
