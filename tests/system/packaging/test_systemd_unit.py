"""The systemd unit: systemd accepts it, and its command runs as the unit says, as far as that works without systemd."""

import json
import os
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import psutil
import pytest

from support.cluster import SharedCluster
from support.pages import PROJECT
from support.program import START_EVENT, environment
from support.secret_keys import shared_key_file
from support.server import readiness, wait_until

UNIT = PROJECT / "packaging" / "plankeeper.service"
PROGRAM = "/opt/plankeeper/bin/plankeeper"
MAX_EXPOSURE = 20  # tenths of the scale of `systemd-analyze security`: 2.0 of 10


@pytest.fixture(scope="module")
def systemd_analyze() -> str:
    """Skips the test without Debian's package systemd, except in CI."""
    found = shutil.which("systemd-analyze")
    if found is None and "CI" not in os.environ:
        pytest.skip("systemd-analyze does not exist: install the package systemd")
    assert found, "install the package systemd"
    return found


@pytest.fixture(scope="module")
def service() -> dict[str, str]:
    """The section [Service] of the unit."""
    lines = UNIT.read_text().partition("[Service]")[2].partition("[Install]")[0].splitlines()
    options: dict[str, str] = {}
    for line in lines:
        name, is_option, value = line.partition("=")
        if is_option and not line.startswith("#"):
            options[name] = f"{options[name]}\n{value}" if name in options else value
    return options


@pytest.fixture
def installed_unit(tmp_path: Path) -> Path:
    """The unit with a command that exists here."""
    text = UNIT.read_text()
    assert text.count(PROGRAM) == 1
    unit = tmp_path / UNIT.name
    unit.write_text(text.replace(PROGRAM, str(Path(sys.executable).with_name("plankeeper"))))
    return unit


def test_systemd_accepts_every_option(systemd_analyze: str, installed_unit: Path) -> None:
    done = subprocess.run(
        [systemd_analyze, "verify", "--man=no", str(installed_unit)], capture_output=True, text=True, check=False
    )
    about_unit = [line for line in done.stderr.splitlines() if UNIT.name in line]
    assert (done.returncode, about_unit, done.stdout) == (0, [], "")


def test_systemd_accepts_the_nightly_backup(systemd_analyze: str, tmp_path: Path) -> None:
    for name in ("plankeeper-backup.service", "plankeeper-backup.timer"):
        text = (PROJECT / "packaging" / name).read_text()
        (tmp_path / name).write_text(text.replace("/opt/plankeeper/share/backup.sh", "/bin/true"))
    command = [systemd_analyze, "verify", "--man=no", str(tmp_path / "plankeeper-backup.timer")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert (done.returncode, [line for line in done.stderr.splitlines() if "plankeeper-backup" in line]) == (0, [])


def test_the_nightly_backup_keeps_new_files_and_records_its_time(cluster: SharedCluster, tmp_path: Path) -> None:
    folder, metrics = tmp_path / "backups", tmp_path / "plankeeper_backup.prom"
    folder.mkdir()
    old, recent, other = (folder / name for name in ("plankeeper-1.dump", "plankeeper-2.dump", "other.dump"))
    for file in (old, recent, other):
        file.touch()
    for file in (old, other):
        os.utime(file, (0, 0))
    variables = {
        "BACKUP_FOLDER": str(folder), "METRICS_FILE": str(metrics), "PLANKEEPER_DATABASE_URL": cluster.dsn,
        "PLANKEEPER_OWNER_DATABASE_URL": cluster.owner_dsn, "PATH": f"{Path(sys.executable).parent}:/usr/bin:/bin",
        "PLANKEEPER_DOCUMENTS_URL": tmp_path.as_uri(),
    }  # fmt: skip
    script = PROJECT / "packaging/backup.sh"
    done = subprocess.run([script], env=environment(variables), capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    [new] = set(folder.iterdir()) - {recent, other, folder / "documents"}
    assert (folder / "documents").is_dir()
    values = dict(line.split() for line in metrics.read_text().splitlines() if not line.startswith("#"))
    assert values["plankeeper_backup_size_bytes"] == str(new.stat().st_size)
    assert abs(int(values["plankeeper_backup_last_success_timestamp_seconds"]) - new.stat().st_mtime) < 60
    failed = subprocess.run([script], env=environment(variables | {"BACKUP_FOLDER": "/none"}), check=False)
    assert failed.returncode != 0


def test_systemd_reports_an_option_that_does_not_exist(systemd_analyze: str, installed_unit: Path) -> None:
    installed_unit.write_text(installed_unit.read_text().replace("ProtectHome=", "ProtectHouse="))
    done = subprocess.run(
        [systemd_analyze, "verify", "--man=no", str(installed_unit)], capture_output=True, text=True, check=False
    )
    assert "'ProtectHouse'" in done.stderr


def test_the_service_is_hardly_exposed(systemd_analyze: str, installed_unit: Path) -> None:
    command = [systemd_analyze, "security", "--offline=true", f"--threshold={MAX_EXPOSURE}", str(installed_unit)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout[-500:]


@pytest.fixture
def running(service: dict[str, str], cluster: SharedCluster, tmp_path: Path) -> Iterator[subprocess.Popen[bytes]]:
    """The unit's command with its environment file, umask and limit of files, and its output in one file."""
    file = tmp_path / "environment"
    file.write_text(
        f"PLANKEEPER_DATABASE_URL={cluster.new_database()}\nPLANKEEPER_SECRET_KEY_FILE={shared_key_file()}\n"
        "PLANKEEPER_PORT=0\nPLANKEEPER_WORKERS=2\n"
    )
    assert service["EnvironmentFile"] == "/etc/plankeeper/environment"
    settings = dict(line.split("=", 1) for line in file.read_text().splitlines())
    program, *arguments = service["ExecStart"].split()
    assert program == PROGRAM
    limited = ["sh", "-c", 'ulimit -n "$0" 2>/dev/null || true; exec "$@"', service["LimitNOFILE"]]
    with (tmp_path / "journal").open("wb") as journal:
        process = subprocess.Popen(
            [*limited, str(Path(sys.executable).with_name(Path(program).name)), *arguments],
            env=environment(settings), cwd="/", stdin=subprocess.DEVNULL, stdout=journal, stderr=subprocess.STDOUT,
            umask=int(service["UMask"], 8), start_new_session=True,
        )  # fmt: skip
    yield process
    if process.poll() is None:
        process.kill()
        process.wait()


def test_the_command_serves_logs_json_and_stops_when_only_its_main_process_is_signalled(
    service: dict[str, str], running: subprocess.Popen[bytes], tmp_path: Path
) -> None:
    journal = tmp_path / "journal"
    wait_until(lambda: START_EVENT in journal.read_text())
    [started] = [json.loads(line) for line in journal.read_text().splitlines() if START_EVENT in line]
    assert readiness(started["address"]).json() == {"status": "ok"}
    assert (service["KillMode"], service["Type"], service["Restart"]) == ("mixed", "exec", "always")
    family = psutil.Process(running.pid).children(recursive=True)
    assert len(family) >= 2
    running.send_signal(signal.SIGTERM)
    assert running.wait(int(service["TimeoutStopSec"])) == 0
    assert psutil.wait_procs(family, timeout=5)[1] == []
    assert {type(json.loads(line)) for line in journal.read_text().splitlines()} == {dict}
