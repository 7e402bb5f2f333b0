"""Documents in the commands: backup, restore, the export of a person, and doctor."""

import asyncio
import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from plankeeper.database.client import Database
from plankeeper.resources.documents import store
from plankeeper.resources.documents.schemas import DocumentRow
from plankeeper.resources.documents.service import MAX_BYTES
from plankeeper.resources.documents.store import DueObject
from support import factories
from support.client import PREFIX, Client
from support.cluster import SharedCluster
from support.factories import upload_document
from support.program import Done, run_plankeeper
from support.server import RunningServer

FIRST, SECOND, THIRD = (b"%PDF-1.7 " + each for each in (b"first", b"second", b"third"))


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server with a database of its own, which is backed up."""
    running = RunningServer(cluster.new_database()).start()
    yield running
    running.stop()


@pytest.fixture
def invoice(server: RunningServer, api: Client) -> dict[str, Any]:
    """An invoice with a document, and with a former one."""
    participant = api.create("/participants", {"first_name": "Ann"})["id"]
    ident = factories.import_invoice(server, api, {"participant": participant, "provider": None})
    upload_document(api, ident, FIRST)
    upload_document(api, ident, SECOND)
    return api.get(f"/invoices/{ident}").json()


def run(server: RunningServer, *arguments: str, dsn: str = "", url: str = "") -> Done:
    """A command, with the server's settings."""
    variables = {
        "PLANKEEPER_DATABASE_URL": dsn or server.dsn,
        "PLANKEEPER_DOCUMENTS_URL": url or server.settings.documents_url or "",
    }
    return run_plankeeper(*arguments, **variables)


def files(folder: Path) -> dict[str, bytes]:
    return {str(each.relative_to(folder)): each.read_bytes() for each in folder.rglob("*") if each.is_file()}


async def _list_documents(dsn: str, plan_manager_id: str) -> tuple[list[DocumentRow], list[DueObject]]:
    """The documents of a plan manager, and the objects to delete."""
    async with Database(dsn, pool_size=1).open() as db:
        documents = await store.list_page(db, UUID(plan_manager_id), UUID(int=0), 10)
        return documents, await store.list_due(db, datetime.now(UTC) + timedelta(days=1), 10)


def make_statement_pdf(server: RunningServer, api: Client) -> str:
    """The key of the object of a statement's PDF."""
    path = f"/participants/{api.create('/participants', {})['id']}"
    api.create(f"{path}/plans", {"start_date": "2026-01-01", "end_date": "2026-12-31"})
    statement = api.create(f"{path}/statements", {"month": "2026-02"})
    url = f"{path}/statements/{statement['id']}"
    assert api.request("GET", url, headers={"Accept": "application/pdf"}).content.startswith(b"%PDF-")
    sql = "select pdf_key from statements where plan_manager_id = $1 and id = $2"
    return server.run(server.db.one(str, sql, UUID(api.plan_manager_id), UUID(statement["id"])))


def test_files_are_backed_up_and_restored_and_lost_ones_are_named(
    server: RunningServer, api: Client, invoice: dict[str, Any], cluster: SharedCluster, tmp_path: Path
) -> None:
    dump, copies, restored = tmp_path / "a.dump", tmp_path / "copies", tmp_path / "restored"
    stored = Path((server.settings.documents_url or "").removeprefix("file://"))
    of_statement = make_statement_pdf(server, api)
    # An upload is in progress.
    due_at = datetime.now(UTC) + timedelta(hours=1)
    server.run(store.add_object(server.db, UUID(api.plan_manager_id), "an-upload.pdf", due_at))
    assert run(server, "backup", str(dump), "--documents", str(copies)).stderr == ""
    assert files(copies) == files(stored)
    assert {FIRST, SECOND} <= set(files(copies).values())
    assert copies.stat().st_mode & 0o777 == 0o700
    # A second backup adds what is new. A file that the storage has lost is in the folder already.
    upload_document(api, invoice["id"], THIRD)
    (stored / invoice["s3_key"]).unlink()
    assert run(server, "backup", str(dump), "--force", "--documents", str(copies)).stderr == ""
    assert THIRD in files(copies).values()
    assert files(stored).items() < files(copies).items()
    (copies / invoice["s3_key"]).unlink()
    target = cluster.new_database(migrated=False)
    done = run(server, "restore", str(dump), "--documents", str(copies), dsn=target, url=restored.as_uri())
    lost = f"Warning: the file of document {invoice['document']['id']} of invoice {invoice['id']} is missing"
    assert (done.returncode, done.stderr) == (0, f"{lost}: {invoice['s3_key']}\n")
    assert files(restored) == files(copies)
    rows, due = asyncio.run(_list_documents(target, api.plan_manager_id))
    assert due == []
    assert of_statement in files(restored)
    assert {each.object_key for each in rows} == {*files(restored), invoice["s3_key"]} - {of_statement}


def test_a_person_gets_the_files_of_all_documents(
    server: RunningServer, api: Client, invoice: dict[str, Any], tmp_path: Path
) -> None:
    command = ("participants", "export-person", invoice["participant_id"], "--plan-manager", api.plan_manager_id)
    done = run(server, *command, "--documents", str(tmp_path / "ann"))
    assert (done.returncode, done.stderr) == (0, "")
    documents = json.loads(done.stdout)["documents"]
    assert [each["replaced_at"] is None for each in documents] == [False, True]
    names = [f"{each['id']}.pdf" for each in documents]
    assert files(tmp_path / "ann") == dict(zip(names, [FIRST, SECOND], strict=True))


def test_exported_documents_are_imported_into_another_plan_manager(
    server: RunningServer,
    api: Client,
    new_plan_manager: Callable[[], UUID],
    new_key: Callable[..., str],
    tmp_path: Path,
) -> None:
    made = [api.create("/invoices", {"external_id": each})["id"] for each in ("x-1", "x-2", "x-3")]
    for ident, content in zip(made, (FIRST, SECOND), strict=False):
        upload_document(api, ident, content)
    upload_document(api, made[0], THIRD)
    exported, folder = tmp_path / "invoices.jsonl", tmp_path / "documents"
    done = run(server, "export", "invoices", "--plan-manager", api.plan_manager_id, "--documents", str(folder))
    assert done.stderr == ""
    assert files(folder) == {f"{made[0]}.pdf": THIRD, f"{made[1]}.pdf": SECOND}
    rows = [json.loads(line) for line in done.stdout.splitlines()]
    target = new_plan_manager()
    exported.write_text("".join(f"{json.dumps(row | {'plan_manager': str(target)})}\n" for row in rows))
    command = ("import", "invoices", str(exported), "--plan-manager", str(target), "--documents", str(folder))
    done = run(server, *command)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "documents: 2 added, 0 unchanged, 0 not added")
    client = Client(server.url, new_key(target), target)
    contents = {
        ident: client.http.get(f"{PREFIX}/invoices/{ident}/document", headers=client.headers()) for ident in made
    }
    assert [(each.status_code, each.content) for each in contents.values()][:2] == [(200, THIRD), (200, SECOND)]
    assert contents[made[2]].status_code == 404
    client.http.close()


def test_an_export_of_documents_can_be_repeated_and_replaces_only_other_files(
    server: RunningServer, api: Client, tmp_path: Path
) -> None:
    same, changed, linked = (api.create("/invoices", {})["id"] for _ in range(3))
    for ident in (same, changed, linked):
        upload_document(api, ident, FIRST)
    folder = tmp_path / "documents"
    command = ("export", "invoices", "--plan-manager", api.plan_manager_id, "--documents", str(folder))
    assert run(server, *command).stderr == ""
    kept = (folder / f"{same}.pdf").stat()
    upload_document(api, changed, SECOND)
    outside = tmp_path / "outside.pdf"
    outside.write_bytes(FIRST)
    (folder / f"{linked}.pdf").unlink()
    (folder / f"{linked}.pdf").symlink_to(outside)
    upload_document(api, linked, THIRD)
    assert run(server, *command).stderr == ""
    assert files(folder) == {f"{same}.pdf": FIRST, f"{changed}.pdf": SECOND, f"{linked}.pdf": THIRD}
    assert (folder / f"{same}.pdf").stat().st_ino == kept.st_ino
    assert outside.read_bytes() == FIRST
    # A folder that can't be written.
    (folder / f"{same}.pdf").unlink()
    (folder / f"{same}.pdf").mkdir()
    (folder / f"{same}.pdf" / "file").touch()
    done = run(server, *command)
    assert (done.returncode, "Copying the documents failed: " in done.stderr) == (1, True)


def test_without_a_storage_nothing_is_exported_or_imported(server: RunningServer, api: Client, tmp_path: Path) -> None:
    rows = tmp_path / "invoices.jsonl"
    rows.write_text(json.dumps({"invoice_number": "new"}))
    options = ("--plan-manager", api.plan_manager_id, "--documents", str(tmp_path))
    for command in (("export", "invoices", *options), ("import", "invoices", str(rows), *options)):
        done = run_plankeeper(*command, PLANKEEPER_DATABASE_URL=server.dsn)
        assert (done.returncode, done.stdout) == (1, "")
        assert "The operator must set PLANKEEPER_DOCUMENTS_URL." in done.stderr
    assert api.get("/invoices").json()["data"] == []


def test_an_import_of_documents_can_be_repeated_and_names_files_that_are_none(
    server: RunningServer, api: Client, tmp_path: Path
) -> None:
    ids = [api.create("/invoices", {"external_id": f"x-{number}"})["id"] for number in range(1, 7)]
    second = ids[1]
    rows, folder = tmp_path / "invoices.jsonl", tmp_path / "documents"
    rows.write_text("")
    folder.mkdir()
    (folder / "x-1.pdf").write_bytes(FIRST)
    command = ("import", "invoices", str(rows), "--plan-manager", api.plan_manager_id, "--documents", str(folder))
    assert run(server, *command).stdout.endswith("documents: 1 added, 0 unchanged, 0 not added\n")
    (folder / f"{second}.png").write_bytes(b"\x89PNG\r\n\x1a\n...")
    (folder / "a-link.pdf").symlink_to(rows)
    (folder / "x-1.txt").write_text("a note")
    (folder / "x-2.pdf").write_bytes(FIRST)
    (folder / "x-3.pdf").touch()
    (folder / "x-4.pdf").write_bytes(b"%PDF-1.7 ".ljust(MAX_BYTES + 1))
    (folder / "x-5.txt").write_text("a note")
    (folder / "x-6.pdf").symlink_to(tmp_path / "outside.pdf")
    (folder / "x-9.pdf").write_bytes(FIRST)
    (folder / os.fsdecode(b"caf\xe9.pdf")).write_bytes(FIRST)
    for left_out in (".DS_Store", f"{second}.pdf#1"):
        (folder / left_out).write_bytes(FIRST)
    (folder / "x-7").mkdir()
    done = run(server, *command)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (1, "documents: 1 added, 1 unchanged, 9 not added")
    assert done.stderr.splitlines() == [
        "a-link.pdf: no invoice has the id or the external_id a-link",
        "caf\\udce9.pdf: no invoice has the id or the external_id caf\\udce9",
        "x-1.txt: x-1.pdf is for the same invoice. Remove one of them",
        f"x-2.pdf: {second}.png is for the same invoice. Remove one of them",
        "x-3.pdf: is empty",
        f"x-4.pdf: has {MAX_BYTES + 1:,} bytes, but a document has at most {MAX_BYTES:,}",
        "x-5.txt: The file must be a PDF, PNG or JPEG. Its name doesn't matter.",
        "x-6.pdf: is a link. Replace it with the file itself",
        "x-9.pdf: no invoice has the id or the external_id x-9",
    ]
    stored = [api.get(f"/invoices/{each}").json()["document"] for each in ids]
    assert [each and each["file_name"] for each in stored] == ["x-1.pdf", f"{second}.png", *[None] * 4]


def test_only_invoices_have_documents(server: RunningServer, api: Client, tmp_path: Path) -> None:
    refused = run(server, "export", "providers", "--plan-manager", api.plan_manager_id, "--documents", str(tmp_path))
    assert (refused.returncode, "providers have no documents, only invoices have" in refused.stderr) == (2, True)


@pytest.fixture
def doctor(server: RunningServer) -> Callable[[str], list[str]]:
    """What doctor says of the storage."""
    return lambda url: [
        line for line in run(server, "doctor", url=url).stdout.splitlines() if "ocuments" in line or "DOCUMENTS" in line
    ]


def test_doctor_writes_to_the_storage(doctor: Callable[[str], list[str]], tmp_path: Path) -> None:
    assert doctor(tmp_path.as_uri()) == [f"ok    documents are stored in {tmp_path.as_uri()}"]
    assert files(tmp_path) == {}
    [line] = doctor("file:///proc/documents")
    assert line.startswith("FAIL  the storage of documents in file:///proc/documents can't be used: ")


ASK_THE_STORAGE = """
import sys
from plankeeper.cli.context import run
from plankeeper.resources.documents.storage import DocumentStorage

run(lambda: DocumentStorage(sys.argv[1]).exists("key"))
"""


def test_no_command_is_aborted_when_it_has_used_the_storage(tmp_path: Path) -> None:
    """On asyncio's default event loop, a third of these processes are aborted when they exit."""
    command = [sys.executable, "-c", ASK_THE_STORAGE, tmp_path.as_uri()]
    for _ in range(10):
        together = [subprocess.Popen(command) for _ in range(4)]
        assert [each.wait(60) for each in together] == [0, 0, 0, 0]
