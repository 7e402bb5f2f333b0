"""The key file of `plankeeper serve`: created for an embedded database, and missing with a database of one's own."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from plankeeper.core.encryption.cipher import create_key_file, read_keys
from support.cluster import SharedCluster
from support.folder import temporary_folder
from support.program import ServeProcess, run_plankeeper

NOT_SET = (
    "PLANKEEPER_SECRET_KEY_FILE is not set, so secrets of webhooks, two-factor authentication and single sign-on can't"
    " be encrypted or decrypted. `plankeeper secret-key create FILE` creates a key file."
)


@pytest.fixture
def serve() -> Any:
    """Starts servers, which are stopped at the end."""
    started: list[ServeProcess] = []

    def start(folder: Path, *arguments: str, **settings: str) -> ServeProcess:
        started.append(ServeProcess(folder, *arguments, **settings))
        return started[-1]

    yield start
    for each in started:
        each.stop()


def test_serve_with_an_embedded_database_creates_the_key_file(serve: Callable[..., ServeProcess]) -> None:
    with temporary_folder() as folder:
        file = folder / "secret.keys"
        serving = serve(folder, "--demo")
        assert stat.S_IMODE(file.stat().st_mode) == 0o600
        [key] = read_keys(file)
        with serving.client() as client:
            created = client.post("/webhook-endpoints", json={"url": "https://example.com/hooks"})
            assert created.status_code == 201
        settings = {"PLANKEEPER_DATA_DIR": str(folder)}
        listed = run_plankeeper("secret-key", "list", **settings).stdout
        assert listed == f"{key.id}  encrypts  61 secrets\n"  # that of the endpoint, and 60 bank accounts
        assert serving.stop() == 0
        serving = serve(folder)
        assert key_file_warnings(serving) == []
        assert read_keys(file) == [key]
        assert serving.stop() == 0

        # A new file would not help: the key of the stored secret is needed.
        kept = file.rename(folder / "kept.keys")
        serving = serve(folder)
        assert not file.exists()
        warnings = key_file_warnings(serving)
        assert warnings[0].startswith(f"There is no key file {file}. Copy it from another server")
        assert warnings[1].endswith(f"lacks keys of stored secrets: 61 secrets of the key {key.id}.")
        kept.rename(file)
        assert run_plankeeper("doctor", **settings).returncode == 0
        assert serving.stop() == 0


def key_file_warnings(serving: ServeProcess) -> list[str]:
    reasons = [json.loads(line).get("reason", "") for line in serving.lines]
    return [each for each in reasons if "key file" in each or "keys of stored secrets" in each]


def test_serve_with_a_database_of_ones_own_and_no_key_file_starts_with_a_warning(
    serve: Callable[..., ServeProcess], cluster: SharedCluster, tmp_path: Path
) -> None:
    dsn, missing = cluster.new_database(), tmp_path / "secret.keys"
    for file, warning in (("", NOT_SET), (str(missing), f"There is no key file {missing}. Copy it from another")):
        serving = serve(tmp_path, "--demo", PLANKEEPER_DATABASE_URL=dsn, PLANKEEPER_SECRET_KEY_FILE=file)
        [line] = [line for line in serving.lines if line.startswith("Warning: ")]
        assert line.startswith(f"Warning: {warning}")
        [line] = [line for line in serving.lines if line.startswith("Documents: ")]
        assert line.endswith("The operator must set PLANKEEPER_DOCUMENTS_URL.")
        with serving.client() as client:
            assert client.get("/participants").status_code == 200
            rejected = client.post("/webhook-endpoints", json={"url": "https://example.com/hooks"})
            assert (rejected.status_code, rejected.json()["error"]) == (503, "secret_key_missing")
            assert "PLANKEEPER_SECRET_KEY_FILE" in rejected.json()["detail"]
            if file:  # the server notices a file that appears
                create_key_file(missing)
                assert client.post("/webhook-endpoints", json={"url": "https://example.com/hooks"}).status_code == 201
        assert serving.stop() == 0
    assert not (tmp_path / "postgres").exists()
