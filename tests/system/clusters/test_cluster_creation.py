"""Clusters of root outside their data folder: none is left behind by an interrupted creation, or forgotten."""

import os
import shutil
import subprocess
from pathlib import Path

import pytest

from plankeeper.server.embedded_postgres import binaries, creation
from plankeeper.server.embedded_postgres.cluster import Cluster
from plankeeper.server.embedded_postgres.creation import abandoned_homes

pytestmark = pytest.mark.skipif(os.geteuid() != 0, reason="changing to another system user takes root")


def test_a_cluster_outside_its_data_folder_is_found_when_that_is_gone(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    shared = home / "shared"
    monkeypatch.setattr(binaries, "SHARED_DIR", shared)
    closed = home / "closed"
    closed.mkdir(mode=0o700)
    with Cluster(closed / "data") as cluster:
        place = cluster.location
    assert abandoned_homes() == []
    shutil.rmtree(closed / "data")
    assert abandoned_homes() == [place]
    with Cluster(closed / "data"):
        assert abandoned_homes() == [place]
    subprocess.run(["sh", "-c", f"rm -r {place}*"], check=True)
    assert abandoned_homes() == []


def test_an_interrupted_or_killed_creation_leaves_no_folder_behind(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = home / "shared"
    monkeypatch.setattr(binaries, "SHARED_DIR", shared)
    closed = home / "closed"
    closed.mkdir(mode=0o700)

    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(creation, "_initialise", interrupt)
        with pytest.raises(KeyboardInterrupt):
            Cluster(closed / "data").ensure()
        assert [*shared.iterdir(), *(closed / "data").glob("postgres.init")] == []
        # As if killed: nothing removes the folder until the next start.
        patch.setattr(creation, "_remove_home", lambda _home: None)
        patch.setattr(Path, "is_symlink", lambda _path: False)
        with pytest.raises(KeyboardInterrupt):
            Cluster(closed / "data").ensure()
    assert (closed / "data" / "postgres.init").is_symlink()
    assert len([each for each in shared.iterdir() if each.is_dir()]) == 1
    with Cluster(closed / "data") as cluster:
        assert [each for each in shared.iterdir() if each.is_dir()] == [cluster.location]


def test_a_disk_without_space_is_reported_before_the_creation(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(creation, "MIN_FREE_BYTES", 2**60)
    data_dir = home / "data"
    with pytest.raises(
        binaries.ClusterError, match=r"^The disk of \S+ has \d+ MiB of free space, and a database needs"
    ):
        Cluster(data_dir).ensure()
    assert [each.name for each in data_dir.iterdir() if "postgres" in each.name] == ["postgres.lock"]
