"""The documents of invoices over HTTP: types, sizes, names, replacement, and what the storage contains."""

import hashlib
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from http.client import HTTPConnection
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest
from uuid_utils.compat import uuid7

from support import factories
from support.client import PREFIX, Client
from support.factories import upload_document
from support.importing import import_records
from support.server import RunningServer
from support.webhooks import wait_for_events

PDF = b"%PDF-1.7\n" + b"1 0 obj\n" * 100
PNG = b"\x89PNG\r\n\x1a\n" + b"\0" * 100
JPEG = b"\xff\xd8\xff\xe0" + b"\0" * 100
MIB = 1024**2


@pytest.fixture
def invoice_id(server: RunningServer, api: Client) -> str:
    return factories.import_invoice(server, api, {"participant": None, "provider": None})


def put(api: Client, invoice_id: str, content: Any, **headers: str) -> Any:
    url = f"{PREFIX}/invoices/{invoice_id}/document"
    return api.http.put(url, content=content, headers=api.headers() | headers)


def get(api: Client, invoice_id: str, method: str = "GET") -> Any:
    return api.http.request(method, f"{PREFIX}/invoices/{invoice_id}/document", headers=api.headers())


def test_a_document_is_returned_as_it_was_sent(api: Client, invoice_id: str) -> None:
    response = put(api, invoice_id, PDF, **{"Content-Disposition": 'attachment; filename="Rechnung 7.pdf"'})
    assert response.status_code == 200, response.text
    document = response.json()
    assert document == {
        "id": document["id"], "file_name": "Rechnung 7.pdf", "media_type": "application/pdf", "size": len(PDF),
        "sha256": hashlib.sha256(PDF).hexdigest(),
    }  # fmt: skip
    assert api.get(f"/invoices/{invoice_id}").json()["document"] == document
    assert api.get("/invoices").json()["data"][0]["document"] == document
    download = get(api, invoice_id)
    assert (download.status_code, download.content) == (200, PDF)
    expected = {
        "content-type": "application/pdf",
        "content-length": str(len(PDF)),
        "content-disposition": 'attachment; filename="Rechnung 7.pdf"',
        "x-content-type-options": "nosniff",
        "content-security-policy": "sandbox; default-src 'none'",
        "cache-control": "no-store",
    }
    assert {name: download.headers[name] for name in expected} == expected
    head = get(api, invoice_id, "HEAD")
    assert (head.status_code, head.content, head.headers["content-length"]) == (200, b"", str(len(PDF)))


def test_the_content_decides_the_type_and_not_the_name(api: Client, invoice_id: str) -> None:
    for content, media_type in ((PNG, "image/png"), (JPEG, "image/jpeg"), (PDF, "application/pdf")):
        header = {"Content-Disposition": 'attachment; filename="a.txt"', "Content-Type": "text/plain"}
        assert put(api, invoice_id, content, **header).json()["media_type"] == media_type
    for content in (b"PK\x03\x04 a Word file", b" %PDF-1.7", b"%PD", b"<html>%PDF-1.7"):
        response = put(api, invoice_id, content, **{"Content-Disposition": 'attachment; filename="a.pdf"'})
        assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")
        assert response.json()["detail"] == "The file must be a PDF, PNG or JPEG. Its name doesn't matter."
    assert put(api, invoice_id, b"").status_code == 400
    assert get(api, invoice_id).content == PDF


FILE_NAMES = {
    'attachment; filename="C:\\\\temp\\\\a.pdf"': "a.pdf",
    "attachment; filename=../../etc/passwd": "passwd",
    "attachment; filename*=UTF-8''%C3%9Cbersicht%20%E2%82%AC.pdf; filename=\"x.pdf\"": "Übersicht €.pdf",
    'attachment; filename="a\\"b.pdf"': 'a"b.pdf',
    "attachment": "document.pdf",
    'attachment; filename=""': "document.pdf",
}


def test_a_file_name_has_no_path(api: Client, invoice_id: str) -> None:
    responses = {each: put(api, invoice_id, PDF, **{"Content-Disposition": each}) for each in FILE_NAMES}
    assert {header: each.json()["file_name"] for header, each in responses.items()} == FILE_NAMES
    name = "attachment; filename*=UTF-8''%C3%9Cbersicht.pdf"
    put(api, invoice_id, PDF, **{"Content-Disposition": name})
    disposition = get(api, invoice_id).headers["content-disposition"]
    assert disposition == "attachment; filename=\"_bersicht.pdf\"; filename*=UTF-8''%C3%9Cbersicht.pdf"


def test_a_document_has_at_most_20_mib(api: Client, invoice_id: str) -> None:
    content = b"%PDF-".ljust(20 * MIB, b"\0")
    assert put(api, invoice_id, content).json()["size"] == 20 * MIB
    assert get(api, invoice_id).content == content

    def chunks() -> Iterator[bytes]:
        yield content
        yield b"\0"

    for body in (content + b"\0", chunks()):
        response = put(api, invoice_id, body)
        assert (response.status_code, response.json()["error"]) == (413, "body_too_large")
    assert api.get(f"/invoices/{invoice_id}").json()["document"]["size"] == 20 * MIB


def test_a_new_document_replaces_the_former_one(api: Client, invoice_id: str) -> None:
    first = put(api, invoice_id, PDF).json()
    same = put(api, invoice_id, PDF).json()
    second = put(api, invoice_id, PNG).json()
    assert same == first
    assert second["id"] != first["id"]
    assert get(api, invoice_id).content == PNG
    events = wait_for_events(api, "invoice.document_added", 2)
    assert [each["data"]["document"] for each in events] == [first, second]
    assert [each["previous"]["document"] for each in events] == [None, first]


def test_an_upload_depends_on_the_document_that_it_replaces(api: Client, invoice_id: str) -> None:
    assert put(api, invoice_id, PDF, **{"If-Match": "*"}).status_code == 412  # there is none
    first = put(api, invoice_id, PDF, **{"If-None-Match": "*"})
    assert (first.status_code, "content-location" in first.headers) == (200, False)
    assert put(api, invoice_id, PNG, **{"If-None-Match": "*"}).status_code == 412
    second = put(api, invoice_id, PNG, **{"If-Match": first.headers["etag"]})
    assert (second.status_code, second.headers["etag"] != first.headers["etag"]) == (200, True)
    stale = put(api, invoice_id, JPEG, **{"If-Match": first.headers["etag"]})
    assert (stale.status_code, stale.json()["error"]) == (412, "precondition_failed")
    assert put(api, invoice_id, PNG).headers["etag"] == second.headers["etag"]  # the same file again
    for method in ("GET", "HEAD"):
        assert get(api, invoice_id, method).headers["etag"] == second.headers["etag"]


def test_a_download_depends_on_the_document(api: Client, invoice_id: str) -> None:
    tag, path = put(api, invoice_id, PDF).headers["etag"], f"/invoices/{invoice_id}/document"
    for method, name, value, status in (
        ("GET", "If-None-Match", tag, 304), ("HEAD", "If-None-Match", tag, 304), ("GET", "If-Match", tag, 200),
        ("GET", "If-None-Match", '"other"', 200), ("GET", "If-Match", '"other"', 412), ("GET", "If-Match", "x", 400),
    ):  # fmt: skip
        response = api.request(method, path, headers={name: value})
        assert response.status_code == status
        assert status >= 400 or (response.headers["etag"], response.content) == (tag, PDF if status == 200 else b"")


def test_an_unknown_invoice_has_no_document(api: Client, invoice_id: str) -> None:
    for ident in (invoice_id, str(uuid7())):
        assert get(api, ident).status_code == 404
    assert put(api, str(uuid7()), PDF).status_code == 404


def test_the_storage_contains_only_the_objects_of_documents(
    server: RunningServer, api: Client, invoice_id: str
) -> None:
    """Objects that no document needs are in the list of objects to delete."""
    put(api, invoice_id, PDF)
    put(api, invoice_id, b"%PDF-".ljust(MIB, b"\0"))
    put(api, invoice_id, b"no document")
    key = api.get(f"/invoices/{invoice_id}").json()["s3_key"]
    folder = Path(server.settings.documents_url.removeprefix("file://"), api.plan_manager_id)
    assert Path(key).name in {each.name for each in folder.iterdir()}
    assert len(list(folder.iterdir())) == 2


def test_invoices_with_the_same_document_have_a_warning(server: RunningServer, api: Client, invoice_id: str) -> None:
    other_id = factories.import_invoice(server, api, {"participant": None, "provider": None})

    def warned() -> list[bool]:
        found = [api.get(f"/invoices/{each}").json()["state_management"]["errors"] for each in (invoice_id, other_id)]
        return ["same_document" in each for each in found]

    put(api, invoice_id, PDF)
    assert warned() == [False, False]
    put(api, other_id, PDF)
    assert warned() == [True, True]
    details = api.get("/invoices", include="warnings").json()["data"]
    related = {
        each["id"]: [
            warning["related_invoice_id"] for warning in each["warnings"] if warning["code"] == "same_document"
        ]
        for each in details
    }
    assert related == {invoice_id: [other_id], other_id: [invoice_id]}
    api.post(f"/invoices/{other_id}/cancel", {"reason": "Twice"}).raise_for_status()
    assert warned() == [False, True]
    api.post(f"/invoices/{other_id}/reopen", {}).raise_for_status()
    assert warned() == [True, True]
    put(api, other_id, PDF + b"another")
    assert warned() == [False, False]
    put(api, other_id, PDF)
    rows = [{"id": other_id, "is_deleted": True}]
    assert not server.run(import_records(server, UUID(api.plan_manager_id), "invoices", rows)).errors
    assert warned() == [False, True]


@contextmanager
def arriving_upload(api: Client, invoice_id: str) -> Iterator[Callable[[], int]]:
    """An upload without a length that the server has begun to read. The result completes it, and returns the status."""
    url = api.http.base_url
    connection = HTTPConnection(url.host, url.port or 80, timeout=60)
    with closing(connection):
        connection.putrequest("PUT", f"{PREFIX}/invoices/{invoice_id}/document")
        for name, value in (api.headers() | {"Transfer-Encoding": "chunked", "Expect": "100-continue"}).items():
            connection.putheader(name, value)
        connection.endheaders()
        assert connection.sock.recv(12) == b"HTTP/1.1 100"

        def complete() -> int:
            connection.sock.recv(100)  # the rest of the line
            connection.send(b"%x\r\n%s\r\n0\r\n\r\n" % (len(PDF), PDF))
            return connection.getresponse().status

        yield complete


def test_the_files_of_a_plan_manager_that_arrive_are_limited(
    server: RunningServer, api: Client, other: Client, invoice_id: str
) -> None:
    """A file without a length counts as the largest: two of them are as many as can arrive."""
    with arriving_upload(api, invoice_id) as complete_first, arriving_upload(api, invoice_id) as complete_second:
        rejected = put(api, invoice_id, PDF)
        error = (rejected.json()["error"], rejected.json()["detail"], rejected.headers["retry-after"])
        detail = "Large bodies of this plan manager are arriving already, 40 MiB at most at a time."
        assert error == ("service_unavailable", detail, "1")
        upload_document(other, factories.import_invoice(server, other, {"participant": None, "provider": None}))
        assert (complete_first(), complete_second()) == (200, 200)
    assert put(api, invoice_id, PDF).status_code == 200
