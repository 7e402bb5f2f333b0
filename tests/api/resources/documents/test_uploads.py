"""Uploads that end early, stop or are slow, and the task that deletes what they leave in the storage."""

import asyncio
import time
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime, timedelta
from pathlib import Path
from socket import create_connection, socket
from typing import Any
from uuid import UUID

import httpx
import pytest

from plankeeper.resources.documents import service, storage, store
from plankeeper.resources.documents.storage import DocumentStorage, StorageError
from support import factories
from support.client import PREFIX, Client
from support.cluster import SharedCluster
from support.factories import upload_document
from support.server import RunningServer, wait_until

CLIENT_TIMEOUT = 2  # seconds
PIECE = bytes(300_000)  # enough progress that the time limit starts again


@pytest.fixture(scope="module")
def server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server with a short time limit, and a database of its own: other servers would delete in other folders."""
    running = RunningServer(cluster.new_database(), client_io_timeout=CLIENT_TIMEOUT).start()
    yield running
    running.stop()


@pytest.fixture
def invoice_id(server: RunningServer, api: Client) -> str:
    return factories.import_invoice(server, api, {"participant": None, "provider": None})


def begin_upload(server: RunningServer, api: Client, invoice_id: str, size: int) -> socket:
    """A connection with the head of an upload and the first bytes of the file."""
    url = httpx.URL(server.url)
    client = create_connection((url.host, url.port), timeout=30)
    headers = {"Host": "x", "Content-Length": str(size)} | api.headers()
    lines = [f"PUT {PREFIX}/invoices/{invoice_id}/document HTTP/1.1", *(f"{name}: {headers[name]}" for name in headers)]
    client.sendall("\r\n".join([*lines, "", "%PDF-"]).encode())
    return client


def objects(server: RunningServer, api: Client) -> list[Path]:
    folder = Path((server.settings.documents_url or "").removeprefix("file://"), api.plan_manager_id)
    return list(folder.iterdir()) if folder.exists() else []


def cleanup(server: RunningServer, api: Client) -> list[datetime]:
    """When the task will delete objects of the plan manager."""
    statement = "select due_at from object_cleanup where plan_manager_id = $1"
    return server.run(server.db.rows(datetime, statement, UUID(api.plan_manager_id)))


def test_an_upload_that_ends_early_stores_nothing(server: RunningServer, api: Client, invoice_id: str) -> None:
    kept = upload_document(api, invoice_id)
    with begin_upload(server, api, invoice_id, 10 * len(PIECE)) as client:
        client.sendall(PIECE)
        wait_until(lambda: len(cleanup(server, api)) == 1)
    assert_kept(server, api, invoice_id, kept)


def test_an_upload_that_stops_stores_nothing_but_a_slow_one_is_stored(
    server: RunningServer, api: Client, other: Client, invoice_id: str
) -> None:
    kept, pieces = upload_document(api, invoice_id), 6
    slow_id = factories.import_invoice(server, other, {"participant": None, "provider": None})
    with (
        begin_upload(server, api, invoice_id, 10 * len(PIECE)) as stopped,
        begin_upload(server, other, slow_id, len(b"%PDF-") + pieces * len(PIECE)) as slow,
    ):
        stopped.sendall(PIECE)
        for _ in range(pieces):  # together longer than the time limit
            time.sleep(CLIENT_TIMEOUT / 4)
            slow.sendall(PIECE)
        assert slow.recv(20).startswith(b"HTTP/1.1 200 OK")
        assert stopped.recv(100) == b""  # the server closes the connection
    assert_kept(server, api, invoice_id, kept)
    assert cleanup(server, other) == []
    assert len(objects(server, other)) == 1


def assert_kept(server: RunningServer, api: Client, invoice_id: str, kept: dict[str, Any]) -> None:
    """What has been received of an upload is deleted soon, and the invoice still has its document."""
    [due_at] = cleanup(server, api)
    assert due_at > datetime.now(UTC) + timedelta(minutes=55)
    assert api.get(f"/invoices/{invoice_id}").json()["document"] == kept
    wait_until(lambda: len(objects(server, api)) == 1)


async def test_half_of_a_file_that_a_killed_server_leaves_is_deleted(tmp_path: Path) -> None:
    storage, written, key = DocumentStorage(f"file://{tmp_path}"), asyncio.Event(), "office/half.pdf"

    async def half() -> AsyncIterator[bytes]:
        yield b"%PDF-"
        written.set()
        await asyncio.Event().wait()

    upload = asyncio.create_task(storage.put(key, half()))
    await written.wait()
    [left] = (tmp_path / "office").iterdir()
    upload.cancel()
    await asyncio.wait([upload])
    while left.exists():  # a server that isn't killed deletes it in a thread
        await asyncio.sleep(0.01)
    left.write_bytes(b"%PDF-")
    await storage.delete([key])
    assert [*(tmp_path / "office").iterdir()] == []


def test_what_a_killed_server_leaves_is_deleted_when_it_is_due(
    server: RunningServer, api: Client, invoice_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    plan_manager_id = UUID(api.plan_manager_id)
    upload_document(api, invoice_id)
    [kept] = objects(server, api)
    now = datetime.now(UTC)
    # An upload whose row was never written, one that is in progress, and one that was killed before it began.
    left, current, missing = (f"{plan_manager_id}/{name}.pdf" for name in ("left", "current", "missing"))

    async def fail(_self: object, _keys: object) -> None:
        raise StorageError

    with monkeypatch.context() as patch:
        patch.setattr(DocumentStorage, "delete", fail)  # also for the server, which cleans up by itself
        for key, due_at in ((left, now), (current, now + timedelta(hours=1)), (missing, now)):
            server.run(store.add_object(server.db, plan_manager_id, key, due_at))
            if key != missing:
                (kept.parent / Path(key).name).write_bytes(b"%PDF-")
        server.run(service.delete_due_objects(server.db, server.settings))
        assert len(objects(server, api)) == 3
        assert min(cleanup(server, api)) > now + timedelta(minutes=4)  # it is tried again
    make_due = "update object_cleanup set due_at = $2 where plan_manager_id = $1 and object_key <> $3"
    server.execute_as_owner(make_due, plan_manager_id, now, current)
    server.run(service.delete_due_objects(server.db, server.settings))
    assert sorted(objects(server, api)) == sorted([kept, kept.parent / "current.pdf"])
    assert len(cleanup(server, api)) == 1


def test_no_file_is_stored_on_a_disk_that_is_almost_full(
    server: RunningServer, api: Client, invoice_id: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    kept = upload_document(api, invoice_id)
    monkeypatch.setattr(storage, "MIN_FREE_BYTES", 2**62)
    url = f"{PREFIX}/invoices/{invoice_id}/document"
    rejected = api.http.put(url, content=b"%PDF-1", headers=api.headers())
    assert (rejected.status_code, rejected.json()["error"]) == (503, "service_unavailable")
    monkeypatch.undo()
    assert_kept(server, api, invoice_id, kept)
