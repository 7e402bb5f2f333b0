"""The running program: started, stopped, killed, and started again."""

import json
import os
import platform
import pty
import signal
import stat
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from plankeeper import __version__
from plankeeper.core.version import commit
from plankeeper.database.schema import LATEST_REVISION
from support.folder import temporary_folder
from support.program import ServeProcess, environment, kill_all, run_program
from support.receiver import Receiver
from support.server import readiness, wait_until


@pytest.fixture
def data_dir() -> Iterator[Path]:
    with temporary_folder() as folder:
        yield folder


def test_the_sample_data_is_served_and_survives_a_restart(data_dir: Path) -> None:
    first = ServeProcess(data_dir, "--demo", workers=2)
    assert not [line for line in first.lines if line.startswith("{")]
    assert httpx.get(f"{first.url}/docs").status_code == 200
    response = subprocess.run(["sh", "-c", first.curl], capture_output=True, text=True, check=True)
    assert len(json.loads(response.stdout)["data"]) == 3
    beside = run_program("plan-managers", "list", PLANKEEPER_DATA_DIR=str(data_dir))
    assert len(beside.stdout.splitlines()) == 2
    with first.client() as client:
        made = client.post("/note-types", json={"note_type": "kept"}).json()
    assert first.stop(signal.SIGINT) == 0

    second = ServeProcess(data_dir, "--demo")
    assert second.output_value("API key:") == first.output_value("API key:")
    assert second.output_value("Sign-in:") == first.output_value("Sign-in:")
    assert stat.S_IMODE((data_dir / "demo-credentials.json").stat().st_mode) == 0o600
    with second.client() as client:
        assert client.get(f"/note-types/{made['id']}").json() == made
        assert client.get("/participants").json()["pagination"]["total"] == 400
    assert second.stop() == 0
    assert len(run_program("plan-managers", "list", PLANKEEPER_DATA_DIR=str(data_dir)).stdout.splitlines()) == 2


def test_without_sample_data_it_writes_only_json(data_dir: Path) -> None:
    public_url = "https://plans.example.com"
    serving = ServeProcess(
        data_dir, workers=2, PLANKEEPER_PUBLIC_URL=public_url, PLANKEEPER_WORKER="3",
        PLANKEEPER_SMTP_URL="smtp://u:hidden-password@127.0.0.1:1?starttls=off",
    )  # fmt: skip
    serving.workers()[0].kill()
    wait_until(lambda: any("a worker ended unexpectedly" in line for line in serving.lines))
    assert serving.stop() == 0
    lines = [json.loads(line) for line in serving.lines]
    assert all({"time", "level", "event", "logger"} <= set(line) for line in lines)
    assert "PLANKEEPER_WORKER is not a setting, and has no effect: is PLANKEEPER_WORKERS meant?" in [
        line["reason"] for line in lines if line["event"] == "the configuration needs attention"
    ]
    started = serving.start_line
    assert (started["version"], started["commit"]) == (__version__, commit())
    assert started["python"] == platform.python_version()
    assert (started["workers"], started["address"]) == (2, serving.url)
    assert started["database_host"] == f"embedded in {data_dir}"
    assert started["schema"] == LATEST_REVISION
    assert started["settings"]["PLANKEEPER_PUBLIC_URL"] == public_url
    assert started["settings"]["PLANKEEPER_SMTP_URL"] == "(secret)"
    assert "PLANKEEPER_TIME_ZONE" not in started["settings"]
    assert not [line for line in serving.lines if "hidden-password" in line]


def test_in_a_terminal_it_prints_its_addresses(data_dir: Path) -> None:
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "plankeeper", "serve", "--port", "0", "--workers", "1"]
    settings = environment({"PLANKEEPER_DATA_DIR": str(data_dir), "PLANKEEPER_WEBHOOK_WORKER": "off"})
    process = subprocess.Popen(command, env=settings, stdout=theirs, stderr=subprocess.DEVNULL)
    os.close(theirs)
    shown = b""
    while b"is ready" not in shown:
        shown += os.read(ours, 1000)
    process.terminate()
    assert process.wait(60) == 0
    os.close(ours)
    assert [line.split()[0] for line in shown.decode().splitlines()][:2] == ["Documentation:", "Console:"]


def test_webhooks_of_the_sample_data_can_be_sent_to_this_machine(
    data_dir: Path, copy_sample_data: Callable[[Path], None]
) -> None:
    copy_sample_data(data_dir)
    serving = ServeProcess(data_dir, "--demo", PLANKEEPER_WEBHOOK_WORKER="on")
    with Receiver() as receiver, serving.client() as client:
        endpoint = {"url": receiver.url, "event_types": ["note_type.created"]}
        assert client.post("/webhook-endpoints", json=endpoint).status_code in (200, 201)
        client.post("/note-types", json={"note_type": "sent"})
        wait_until(lambda: receiver.received)
    assert serving.stop() == 0


def test_a_killed_worker_is_replaced(data_dir: Path, copy_migrated_data: Callable[[Path], None]) -> None:
    copy_migrated_data(data_dir)
    serving = ServeProcess(data_dir)
    [worker] = serving.workers()
    worker.kill()
    wait_until(lambda: any(each.pid != worker.pid for each in serving.workers()))
    wait_until(lambda: _is_ready(serving.url))
    assert serving.stop() == 0


def _is_ready(url: str) -> bool:
    try:
        return httpx.get(f"{url}/readyz", timeout=2).status_code == 200
    except httpx.TransportError:
        return False


def test_no_acknowledged_row_is_lost_when_every_process_is_killed(
    data_dir: Path, copy_sample_data: Callable[[Path], None]
) -> None:
    """KILL_AFTER is how many creates are acknowledged before every process is killed."""
    enough = int(os.environ.get("KILL_AFTER", "200"))
    copy_sample_data(data_dir)
    serving = ServeProcess(data_dir, "--demo")
    acknowledged: list[str] = []
    writers = [threading.Thread(target=_create_until_failure, args=(serving, acknowledged)) for _ in range(4)]
    for writer in writers:
        writer.start()
    wait_until(lambda: len(acknowledged) >= enough, 60)
    family = [*serving.child_processes(), psutil.Process(serving.process.pid)]
    kill_all(family)
    psutil.wait_procs(family, timeout=20)
    serving.wait_for_exit()
    for writer in writers:
        writer.join(20)

    again = ServeProcess(data_dir, "--demo")
    stored = _all_ids(again)
    assert again.stop() == 0
    sys.stdout.write(f"{len(acknowledged)} creates acknowledged, {len(set(acknowledged) - stored)} lost\n")
    assert len(acknowledged) >= enough
    assert set(acknowledged) <= stored


def _create_until_failure(serving: ServeProcess, acknowledged: list[str]) -> None:
    with serving.client() as client:
        while True:
            try:
                response = client.post("/participants", json={"first_name": "Kept"})
            except httpx.TransportError:
                return
            if response.status_code != 200:
                return
            acknowledged.append(response.json()["id"])


def _all_ids(serving: ServeProcess) -> set[str]:
    ids: set[str] = set()
    after: str | None = "0"
    with serving.client() as client:
        while after:
            page = client.get("/participants", params={"limit": 1000, "after": after}).json()
            ids |= {each["id"] for each in page["data"]}
            after = page["pagination"]["next_cursor"]
    return ids


def test_no_process_is_left_behind_when_the_server_is_killed(
    data_dir: Path, copy_migrated_data: Callable[[Path], None]
) -> None:
    copy_migrated_data(data_dir)
    serving = ServeProcess(data_dir)
    family = serving.child_processes()
    serving.process.kill()
    _, alive = psutil.wait_procs(family, timeout=120)  # PostgreSQL writes a checkpoint first
    assert not alive
    serving.wait_for_exit()
    again = ServeProcess(data_dir)
    assert readiness(again.url).json() == {"status": "ok"}
    assert again.stop() == 0
