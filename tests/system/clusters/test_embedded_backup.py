"""A backup of an embedded cluster, restored into another one."""

import re
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import pytest

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.exports import export_all
from support.folder import temporary_folder
from support.program import ServeProcess, run_program


@pytest.fixture
def data_dirs() -> Iterator[tuple[Path, Path]]:
    with temporary_folder() as one, temporary_folder() as two:
        yield one, two


def test_what_an_embedded_server_holds_comes_back_and_its_key_works(
    data_dirs: tuple[Path, Path], tmp_path: Path, copy_sample_data: Callable[[Path], None]
) -> None:
    (one, two), file = data_dirs, tmp_path / "embedded.dump"
    copy_sample_data(one)
    serving = ServeProcess(one, "--demo")
    assert run_program("backup", str(file), PLANKEEPER_DATA_DIR=str(one)).returncode == 0
    assert serving.stop() == 0
    done = run_program("restore", str(file), PLANKEEPER_DATA_DIR=str(two))
    # The backup has the encrypted bank details of the sample data, and not their key.
    assert done.returncode == 0
    *progress, warning = done.stderr.splitlines()  # the progress of what takes long
    assert all(re.match(r"[\d.]+ MB read", line) for line in progress), done.stderr
    assert re.fullmatch(r"Warning: The key file .* lacks keys of stored secrets: .*", warning), done.stderr
    with Cluster(one) as before:
        expected = export_all(before.dsn)
    with Cluster(two) as after:
        assert export_all(after.dsn) == expected
    again = ServeProcess(two)
    with serving.client() as old:
        answer = again_with(again, old.headers["Authorization"], old.headers["X-Plan-Manager-Id"])
    assert answer == 400
    assert again.stop() == 0


def again_with(serving: ServeProcess, authorization: str, plan_manager_id: str) -> int:
    """How many participants a key sees."""
    headers = {"Authorization": authorization, "X-Plan-Manager-Id": plan_manager_id}
    answer = httpx.get(f"{serving.url}/api/public/v1/participants", headers=headers)
    assert answer.status_code == 200, answer.text
    return answer.json()["pagination"]["total"]
