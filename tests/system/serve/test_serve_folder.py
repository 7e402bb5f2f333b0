"""The temporary folder of a server: a clean-up of the system leaves it, and a server makes it again."""

import os
import shutil
import subprocess
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import psutil
import pytest

from support.cluster import SharedCluster
from support.folder import temporary_folder
from support.program import ServeProcess
from support.server import readiness, wait_until

PATH = "/api/public/v1/participants"
COUNTED = f'plankeeper_http_requests_total{{method="GET",route="{PATH}",status="401"}}'
DAYS = 20


@pytest.fixture
def temporary() -> Iterator[Path]:
    """TMPDIR of the server."""
    with temporary_folder() as made:
        yield made


@pytest.fixture
def serving(cluster: SharedCluster, temporary: Path) -> Iterator[ServeProcess]:
    started = ServeProcess(
        Path(),
        workers=2,
        TMPDIR=str(temporary),
        PLANKEEPER_DATABASE_URL=cluster.new_database(),
        PLANKEEPER_WEBHOOK_WORKER="on",
        PLANKEEPER_AUTH_FAILURE_RATE_LIMIT="off",
    )
    yield started
    assert started.stop() == 0
    assert list(temporary.iterdir()) == []


def metrics(serving: ServeProcess) -> dict[str, float] | None:
    """The samples, or None unless the response is 200."""
    try:
        response = httpx.get(f"{serving.url}/metrics", timeout=20)
    except httpx.TransportError:
        return None
    if response.status_code != 200:
        return None
    samples = [line.rpartition(" ") for line in response.text.splitlines() if not line.startswith("#")]
    return {name: float(value) for name, _, value in samples}


def send_requests(serving: ServeProcess, count: int) -> None:
    for _ in range(count):  # each on a connection of its own, so that all workers get some
        assert httpx.get(serving.url + PATH, timeout=20).status_code == 401


def wait_for_metrics(serving: ServeProcess, request_count: int, restarts: int) -> None:
    """Wait for complete metrics: of all workers, the webhook worker and the supervisor."""

    def is_complete() -> bool:
        found = metrics(serving) or {}
        return (
            found.get(COUNTED) == request_count
            and found.get('plankeeper_workers{process="api"}') == 2
            and found.get('plankeeper_worker_restarts_total{process="api"}') == restarts
            and all(found.get(f'plankeeper_process_max_fds{{process="{each}"}}') for each in ("api", "webhook"))
        )

    wait_until(is_complete)


def api_workers(serving: ServeProcess) -> set[int]:
    return {each.pid for each in serving.workers() if each.nice() == psutil.Process().nice()}


def replace_worker(serving: ServeProcess, folder: Path) -> None:
    """Kill a worker, and wait until another one runs that continues its metrics."""
    killed = min(api_workers(serving))
    files = {each.name for each in folder.glob("gauge_*.db")}
    psutil.Process(killed).kill()

    def is_replaced() -> bool:
        now = {each.name for each in folder.glob("gauge_*.db")}
        return len(now) == len(files) and len(now - files) == 2

    wait_until(is_replaced)


def clean_up(folder: Path) -> None:
    """Clean up as the timer of systemd does, for files that nobody has used for days."""
    for file in sorted(folder.rglob("*")):
        used_at = time.time() - DAYS * 86_400
        os.utime(file, (used_at, used_at))
    rules = folder.with_name(f"{folder.name}.conf")
    rules.write_text(f"e {folder} - - - aAmM:10d\n")
    subprocess.run(["systemd-tmpfiles", "--clean", str(rules)], check=True)
    rules.unlink()


def test_a_clean_up_of_temporary_files_leaves_it(serving: ServeProcess, temporary: Path) -> None:
    if shutil.which("systemd-tmpfiles") is None and "CI" not in os.environ:
        pytest.skip("systemd-tmpfiles does not exist: install the package systemd")
    send_requests(serving, 6)
    wait_for_metrics(serving, 6, restarts=0)
    [folder] = temporary.iterdir()
    unlocked = temporary / "unlocked"
    unlocked.mkdir()
    (unlocked / "file").touch()
    files = set(folder.iterdir())
    clean_up(temporary)
    assert not unlocked.exists()
    assert files <= set(folder.iterdir())
    replace_worker(serving, folder)
    wait_for_metrics(serving, 6, restarts=1)


def remove_folder(folder: Path) -> None:
    removed = folder.with_name("removed")  # in the folder itself, a process could write a file meanwhile
    folder.rename(removed)
    shutil.rmtree(removed)


def remove_files(folder: Path) -> None:
    for file in folder.iterdir():
        file.unlink()


@pytest.mark.parametrize("remove", [remove_folder, remove_files])
def test_a_server_makes_it_again_with_everything_that_was_counted(
    serving: ServeProcess, temporary: Path, remove: Callable[[Path], None]
) -> None:
    send_requests(serving, 8)
    wait_for_metrics(serving, 8, restarts=0)
    [folder] = temporary.iterdir()
    replace_worker(serving, folder)
    wait_for_metrics(serving, 8, restarts=1)
    names = {each.name for each in folder.glob("*.db")}
    remove(folder)
    wait_for_metrics(serving, 8, restarts=1)
    # Each process makes its files by itself, also the one that replaced another and has counted nothing.
    wait_until(lambda: {each.name for each in folder.glob("*.db")} == names)
    assert folder.stat().st_mode & 0o777 == 0o700

    replace_worker(serving, folder)
    send_requests(serving, 4)
    wait_for_metrics(serving, 12, restarts=2)
    assert readiness(serving.url).status_code == 200


def test_each_process_keeps_one_set_of_files_however_often_it_is_replaced(
    serving: ServeProcess, temporary: Path
) -> None:
    [folder] = temporary.iterdir()
    send_requests(serving, 4)
    wait_for_metrics(serving, 4, restarts=0)
    names = {each.name for each in folder.glob("*.db")}
    for restarts in range(1, 4):
        replace_worker(serving, folder)
        wait_for_metrics(serving, 4, restarts=restarts)
    wait_until(lambda: len(list(folder.glob("*.db"))) == len(names))
