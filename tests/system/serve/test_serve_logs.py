"""A server whose log can't be written, or isn't read: it serves, and counts its requests."""

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx
import pytest

from support.cluster import SharedCluster
from support.folder import temporary_folder
from support.ports import free_port
from support.program import environment
from support.secret_keys import shared_key_file
from support.server import wait_until

PATH = "/api/public/v1/participants"
REQUESTS = 1500  # their lines are more than a pipe holds


@contextmanager
def running_server(dsn: str, stderr: Any) -> Iterator[str]:
    """A server with one worker and a webhook worker, whose standard error leads elsewhere: its URL."""
    port = free_port()
    settings = {
        "PLANKEEPER_DATABASE_URL": dsn, "PLANKEEPER_SECRET_KEY_FILE": str(shared_key_file()),
        "PLANKEEPER_AUTH_FAILURE_RATE_LIMIT": "off", "PLANKEEPER_SLOW_STATEMENTS": "off",
    }  # fmt: skip
    command = [sys.executable, "-m", "plankeeper", "serve", "--port", str(port), "--workers", "1"]
    process = subprocess.Popen(command, env=environment(settings), stdout=subprocess.DEVNULL, stderr=stderr)
    url = f"http://127.0.0.1:{port}"
    try:
        wait_until(lambda: is_ready(url))
        yield url
        process.terminate()
        assert process.wait(60) == 0
    finally:
        process.kill()
        process.wait()


def is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz").status_code == 200
    except httpx.TransportError:
        return False


def metric(url: str, name: str) -> float:
    lines = httpx.get(f"{url}/metrics").text.splitlines()
    return sum(float(line.rpartition(" ")[2]) for line in lines if line.startswith(name))


def send_requests(url: str) -> None:
    with httpx.Client(base_url=url, timeout=20) as client:
        for _ in range(REQUESTS):
            assert client.get(PATH).status_code == 401
    counted = f'plankeeper_http_requests_total{{method="GET",route="{PATH}",status="401"}}'
    wait_until(lambda: metric(url, counted) == REQUESTS)


@contextmanager
def full_disk(folder: Path) -> Iterator[Path]:
    """A small file system without space, as root; otherwise the device that is always full."""
    if (
        os.geteuid()
        or subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "x", str(folder)], check=False).returncode
    ):
        yield Path("/dev/full")
        return
    try:
        with pytest.raises(OSError, match="No space left"):
            (folder / "filler").write_bytes(bytes(2**20))
        yield folder / "log"
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def test_a_full_disk_stops_neither_requests_nor_metrics(cluster: SharedCluster) -> None:
    dsn = cluster.new_database()
    with (
        temporary_folder() as folder,
        full_disk(folder) as log,
        log.open("w") as file,
        running_server(dsn, file) as url,
    ):
        send_requests(url)
        wait_until(lambda: metric(url, "plankeeper_log_lines_dropped_total") >= REQUESTS)


def requests_of(lines: list[dict[str, Any]]) -> int:
    """How many of the lines are those of requests."""
    return [line["event"] for line in lines].count("request")


def test_a_reader_that_stops_stops_neither_requests_nor_metrics(cluster: SharedCluster) -> None:
    reader, writer = os.pipe()
    lines: list[dict[str, Any]] = []

    def read() -> None:
        with os.fdopen(reader) as file:
            for line in file:
                lines.append(json.loads(line))  # noqa: PERF401 - the test counts them meanwhile

    reading = threading.Thread(target=read)
    with running_server(cluster.new_database(), writer) as url:
        os.close(writer)
        send_requests(url)
        reading.start()
        wait_until(lambda: requests_of(lines) == REQUESTS)
    reading.join(60)
    assert requests_of(lines) == REQUESTS
