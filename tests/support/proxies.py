"""nginx and HAProxy as programs of their own, with the documented configuration and a test authority."""

import os
import socket
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import pytest
import trustme

from support.pages import blocks, substitute
from support.server import wait_until

PROGRAMS = {"nginx": Path("/usr/sbin/nginx"), "haproxy": Path("/usr/sbin/haproxy")}


def write_certificates(folder: Path, host: str) -> trustme.CA:
    authority = trustme.CA()
    certificate = authority.issue_cert(host)
    certificate.private_key_and_cert_chain_pem.write_to_path(folder / "all.pem")
    certificate.private_key_pem.write_to_path(folder / "key.pem")
    for each in certificate.cert_chain_pems:
        each.write_to_path(folder / "chain.pem", append=True)
    return authority


def start_proxy(command: list[str], port: int) -> subprocess.Popen[bytes]:
    process = subprocess.Popen(command)

    def is_listening() -> bool:
        assert process.poll() is None, command
        with socket.socket() as client:
            return client.connect_ex(("127.0.0.1", port)) == 0

    wait_until(is_listening)
    return process


def require_program(name: str) -> None:
    """Skips the test if the program is missing, except in CI."""
    if not PROGRAMS[name].is_file() and "CI" not in os.environ:
        pytest.skip(f"{PROGRAMS[name]} does not exist: install the package {name}")


HOST = "plans.example.com"
# The documented blocks stand for a whole file of HAProxy, and for a part of nginx's.
NGINX_FILE = """
daemon off;
{user}
pid {folder}/nginx.pid;
error_log stderr;
events {{}}
http {{
    access_log {folder}/access.log;
    client_body_temp_path {folder}/body;
    proxy_temp_path {folder}/proxy;
    fastcgi_temp_path {folder}/fastcgi;
    uwsgi_temp_path {folder}/uwsgi;
    scgi_temp_path {folder}/scgi;
{block}
}}
"""


class Ports(NamedTuple):
    http: int
    https: int


def documented_block(language: str) -> str:
    """The block of docs/operations/proxies.md with the configuration of a proxy in front of Plankeeper."""
    [block] = [
        each.text for each in blocks("docs/operations/proxies.md") if each.language == language and HOST in each.text
    ]
    return block


def nginx_command(folder: Path, ports: Ports, backend: str, second: str = "") -> list[str]:
    block = substitute(
        documented_block("nginx"),
        {
            r"^    listen 80;": f"    listen 127.0.0.1:{ports.http};",
            r"^    listen 443 ssl;": f"    listen 127.0.0.1:{ports.https} ssl;",
            r"/etc/ssl/plans\.example\.com\.pem": f"{folder}/chain.pem",
            r"/etc/ssl/private/plans\.example\.com\.key": f"{folder}/key.pem",
            r"10\.0\.0\.11:8000": backend,
            **({r"10\.0\.0\.12:8000": second} if second else {r"^    server 10\.0\.0\.12:8000 .*;\n": ""}),
        },
    )
    user = "user root;" if os.geteuid() == 0 else ""
    (folder / "nginx.conf").write_text(NGINX_FILE.format(folder=folder, user=user, block=block))
    return [str(PROGRAMS["nginx"]), "-p", str(folder), "-c", str(folder / "nginx.conf")]


def haproxy_command(folder: Path, ports: Ports, backend: str, second: str = "") -> list[str]:
    block = substitute(
        documented_block("haproxy"),
        {
            r"bind :80$": f"bind 127.0.0.1:{ports.http}",
            r"bind :443 ": f"bind 127.0.0.1:{ports.https} ",
            r"/etc/ssl/private/plans\.example\.com\.pem": f"{folder}/all.pem",
        },
    )
    others = {r"10\.0\.0\.12:8000": second} if second else {r"^    server plankeeper2 10\.0\.0\.12:8000\n?": ""}
    block = substitute(block, {r"10\.0\.0\.11:8000": backend, **others}, times=2)
    (folder / "haproxy.cfg").write_text(block + "\n")
    return [str(PROGRAMS["haproxy"]), "-db", "-f", str(folder / "haproxy.cfg")]


# A proxy's command, with the documented configuration: folder, ports, and the addresses of one or two servers.
COMMANDS: dict[str, Callable[..., list[str]]] = {"nginx": nginx_command, "haproxy": haproxy_command}
