"""No trace of an erased person is left beside the tables: in a dump, in the server's output and in PostgreSQL's log."""

import re
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from plankeeper.server.embedded_postgres.cluster import Cluster
from support.database_dumps import dump
from support.folder import temporary_folder
from support.program import ServeProcess, run_program
from support.server import wait_until

TEXTS = {
    "first_name": "Quillindra", "last_name": "Featherstonehaugh", "preferred_name": "Quillie",
    "email": "quillindra@example.com", "participant_number": "439118822", "address_line_1": "77 Bandicoot Crescent",
    "date_of_birth": "1961-03-29",
}  # fmt: skip
MEMBER = {"first_name": "Thaddeusz", "last_name": "Featherstonehaugh", "email": "thaddeusz@example.com"}
HEXADECIMAL = re.compile(r"\\x([0-9a-f]+)")


@pytest.fixture
def folder() -> Iterator[Path]:
    with temporary_folder() as path:
        yield path


def places_of(texts: list[str], serving: ServeProcess, folder: Path) -> dict[str, list[str]]:
    """Where one of the texts occurs: the first lines with one."""
    with Cluster(folder / "data") as cluster:
        dumped = dump(cluster.owner_dsn)
    decoded = HEXADECIMAL.sub(lambda match: bytes.fromhex(match[1]).decode(errors="replace"), dumped)
    found = {"dump": decoded, "output": "\n".join(serving.lines), "log": (folder / "data/postgres.log").read_text()}
    lines = {place: [line for line in text.splitlines() if contains(line, texts)] for place, text in found.items()}
    return {place: matching[:3] for place, matching in lines.items() if matching}


def contains(line: str, texts: list[str]) -> bool:
    return any(each.lower() in line.lower() for each in texts)


def test_nothing_of_an_erased_person_is_in_a_dump_or_a_log(folder: Path) -> None:
    settings = {"PLANKEEPER_DATA_DIR": str(folder / "data")}
    serving = ServeProcess(folder / "data", PLANKEEPER_ACCESS_LOG="on", PLANKEEPER_SLOW_STATEMENTS="1")
    try:
        plan_manager = run_program("plan-managers", "create", "--name", "Test", **settings).stdout.strip()
        key = run_program("keys", "create", "--name", "test", "--plan-manager", plan_manager, **settings).stdout.strip()
        headers = {"Authorization": f"Bearer {key}", "X-Plan-Manager-Id": plan_manager}
        with httpx.Client(base_url=f"{serving.url}/api/public/v1", headers=headers, timeout=60) as client:
            created = client.post("/participants", json=TEXTS, headers={"Idempotency-Key": "once"})
            assert created.status_code == 200, created.text
            path = f"/participants/{created.json()['id']}"
            client.post(f"{path}/team-members", json=MEMBER, headers={"Idempotency-Key": "too"}).raise_for_status()
            for name in ("email", "participant_number"):
                client.get("/participants", params={name: TEXTS[name]}).raise_for_status()
            assert client.put(path, json={"email": "quillindra"}).status_code == 400
            client.put(path, json={"city": "Quillindraville"}).raise_for_status()
        # A read is recorded up to a second after it.
        for name in ("email", "participant_number"):
            wait_until(lambda query=f"{name}={TEXTS[name]}": places_of([query], serving, folder).keys() == {"dump"})
        texts = [*TEXTS.values(), *MEMBER.values(), "Quillindraville"]
        assert places_of(texts, serving, folder).keys() == {"dump"}
        output = run_program(
            "participants", "erase", created.json()["id"], "--plan-manager", plan_manager, "--yes", **settings
        ).stdout
        assert output.startswith("1 participant deleted\n")
        assert places_of(texts, serving, folder) == {}
    finally:
        serving.stop()
