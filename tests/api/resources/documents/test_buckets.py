"""Documents in a bucket: of a server with the API of S3."""

import asyncio
import os
from collections.abc import AsyncIterator, Iterator
from typing import Any

import boto3
import pytest
from moto.server import ThreadedMotoServer

from plankeeper.resources.documents import service, storage
from plankeeper.resources.documents.storage import DocumentStorage, StorageError
from support import factories
from support.client import PREFIX, Client
from support.factories import upload_document
from support.server import RunningServer

BUCKET, MIB = "office", 1024**2
CONTENT = b"%PDF-1.7 " + os.urandom(12 * MIB)  # three parts


class EarlyEndError(Exception):
    """The client has gone."""


@pytest.fixture(scope="module")
def s3() -> Iterator[Any]:
    """A client of the server of buckets. Its address is in the environment of this process."""
    running = ThreadedMotoServer("127.0.0.1", 0, verbose=False)
    running.start()
    host, port = running.get_host_and_port()
    variables = {
        "AWS_ENDPOINT_URL": f"http://{host}:{port}", "AWS_ALLOW_HTTP": "true", "AWS_REGION": "us-east-1",
        "AWS_ACCESS_KEY_ID": "key", "AWS_SECRET_ACCESS_KEY": "secret",
    }  # fmt: skip
    with pytest.MonkeyPatch.context() as patch:
        for name, value in variables.items():
            patch.setenv(name, value)
        client: Any = boto3.client("s3", endpoint_url=variables["AWS_ENDPOINT_URL"], region_name="us-east-1")
        client.create_bucket(Bucket=BUCKET)
        yield client
        client.close()
    running.stop()


@pytest.fixture
def bucket(s3: Any) -> DocumentStorage:
    return DocumentStorage(f"s3://{BUCKET}/documents")


def keys(s3: Any, prefix: str = "documents/") -> list[str]:
    listed = s3.list_objects_v2(Bucket=BUCKET, Prefix=prefix).get("Contents", [])
    return [each["Key"].removeprefix("documents/") for each in listed]


async def chunks(content: bytes, error: Exception | None = None) -> AsyncIterator[bytes]:
    for start in range(0, len(content), 100_000):
        yield content[start : start + 100_000]
    if error:
        raise error


async def read(bucket: DocumentStorage, key: str) -> bytes:
    return b"".join([chunk async for chunk in bucket.read(key)])


async def test_objects_are_written_in_parts_read_and_deleted(s3: Any, bucket: DocumentStorage) -> None:
    await bucket.put("a/large.pdf", chunks(CONTENT))
    await bucket.put("a/small.pdf", chunks(b"small"))
    assert sorted(keys(s3, "documents/a/")) == ["a/large.pdf", "a/small.pdf"]
    assert await read(bucket, "a/large.pdf") == CONTENT
    assert await read(bucket, "a/small.pdf") == b"small"
    await bucket.delete(["a/large.pdf", "a/small.pdf", "a/unknown.pdf"])
    assert (keys(s3, "documents/a/"), await bucket.exists("a/large.pdf")) == ([], False)
    with pytest.raises(FileNotFoundError):
        await read(bucket, "a/large.pdf")


async def test_an_upload_that_ends_early_leaves_nothing(s3: Any, bucket: DocumentStorage) -> None:
    for content in (b"small", CONTENT):
        with pytest.raises(EarlyEndError):
            await bucket.put("b/early.pdf", chunks(content, EarlyEndError()))
    assert keys(s3, "documents/b/") == []
    assert s3.list_multipart_uploads(Bucket=BUCKET).get("Uploads", []) == []


async def test_a_failure_of_the_service_is_an_error(s3: Any) -> None:
    for url in (f"s3://{BUCKET}-unknown/documents", "s3://no-such-bucket"):
        missing = DocumentStorage(url)
        with pytest.raises(StorageError):
            await missing.put("a.pdf", chunks(CONTENT))


@pytest.fixture
def bucket_server(server: RunningServer, s3: Any, monkeypatch: pytest.MonkeyPatch) -> RunningServer:
    """A server with documents in the bucket."""
    url = f"s3://{BUCKET}/documents"
    monkeypatch.setattr(storage, "_open", lambda _url: DocumentStorage(url))
    return server


def test_a_document_is_stored_in_a_bucket_until_nothing_needs_it(
    bucket_server: RunningServer, api: Client, s3: Any
) -> None:
    server = bucket_server
    ident = factories.import_invoice(server, api, {"participant": None, "provider": None})
    document = upload_document(api, ident, CONTENT)
    assert document["size"] == len(CONTENT)
    url = f"{PREFIX}/invoices/{ident}/document"
    assert api.http.get(url, headers=api.headers()).content == CONTENT
    key = api.get(f"/invoices/{ident}").json()["s3_key"]
    assert key in keys(s3)
    s3.delete_object(Bucket=BUCKET, Key=f"documents/{key}")
    response = api.http.get(url, headers=api.headers())
    assert (response.status_code, response.json()["error"]) == (503, "service_unavailable")
    # The same file again has its own object until the document is stored, and is then deleted as unused.
    assert upload_document(api, ident, CONTENT) == document
    server.run(service.delete_due_objects(server.db, server.settings))
    assert asyncio.run(DocumentStorage(f"s3://{BUCKET}/documents").exists(key)) is False
