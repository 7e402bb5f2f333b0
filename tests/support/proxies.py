"""nginx and HAProxy as programs of their own, with certificates of a test authority."""

import os
import socket
import subprocess
from pathlib import Path

import pytest
import trustme

from support.server import wait_until

PROGRAMS = {"nginx": Path("/usr/sbin/nginx"), "haproxy": Path("/usr/sbin/haproxy")}


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as found:
        return found.getsockname()[1]


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
