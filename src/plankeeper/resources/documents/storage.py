"""The storage of documents: a folder, or a bucket of a service with the API of S3. Objects never change."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterable, AsyncIterator, Sequence
from datetime import timedelta
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING
from urllib.parse import unquote

import obstore
from obstore.exceptions import BaseError
from obstore.store import LocalStore, from_url

if TYPE_CHECKING:  # obstore has these types only for checkers
    from obstore.store import ClientConfig, RetryConfig

from plankeeper.core.errors import DomainError
from plankeeper.core.settings import Settings

CHUNK_BYTES = 256 * 1024  # of a download
PART_BYTES = 5 * 1024**2  # of an upload to a bucket, the smallest that S3 accepts
MIN_FREE_BYTES = 100 * 1024**2  # of the disk of a folder, on which the database can be, too
_FOLDER = "file://"
# Of requests to a bucket. A slow client receives a document slowly, so only each read has a short limit.
_CLIENT_OPTIONS: "ClientConfig" = {"connect_timeout": "5s", "read_timeout": "20s", "timeout": "1h"}
_RETRIES: "RetryConfig" = {"max_retries": 3, "retry_timeout": timedelta(seconds=20)}


class StorageError(Exception):
    """The storage failed, or is full."""


class DocumentStorage:
    """Stores, reads and deletes objects by their keys. Raises StorageError."""

    def __init__(self, url: str) -> None:
        """`url` is `file:///folder` or `s3://bucket/prefix`; raises ValueError for another one.

        Credentials and the address of the service come from the variables `AWS_...`.
        """
        self._folder: Path | None = None
        if url.startswith(_FOLDER):
            self._folder = Path(unquote(url.removeprefix(_FOLDER)))
            self._store = LocalStore(self._folder, mkdir=True)
        else:
            # Options replace those of the environment, and so this variable.
            options: ClientConfig = {**_CLIENT_OPTIONS, "allow_http": os.environ.get("AWS_ALLOW_HTTP") == "true"}
            self._store = from_url(url, client_options=options, retry_config=_RETRIES)

    async def put(self, key: str, chunks: AsyncIterable[bytes]) -> None:
        """Store an object. If `chunks` raises an error, or the disk is almost full, nothing is stored."""
        try:
            if self._folder and shutil.disk_usage(self._folder).free < MIN_FREE_BYTES:
                raise StorageError(f"the disk of {self._folder} is almost full")
            await obstore.put_async(self._store, key, chunks, chunk_size=PART_BYTES, max_concurrency=1)
        except (BaseError, OSError) as error:
            raise StorageError from error

    async def read(self, key: str) -> AsyncIterator[bytes]:
        """The content of an object; raises FileNotFoundError at the first chunk if it doesn't exist."""
        try:
            result = await obstore.get_async(self._store, key)
            async for chunk in result.stream(min_chunk_size=CHUNK_BYTES):
                yield bytes(chunk)
        except FileNotFoundError:
            raise
        except (BaseError, OSError) as error:
            raise StorageError from error

    async def exists(self, key: str) -> bool:
        try:
            await obstore.head_async(self._store, key)
        except FileNotFoundError:
            return False
        except (BaseError, OSError) as error:
            raise StorageError from error
        return True

    async def delete(self, keys: Sequence[str]) -> None:
        """Delete objects, and what killed uploads have left of them; those that don't exist are ignored."""
        for key in keys:
            try:
                if self._folder:  # obstore writes a file of this name, renames it at the end, and doesn't see it
                    await asyncio.to_thread((self._folder / f"{key}#1").unlink, missing_ok=True)
                await obstore.delete_async(self._store, key)
            except FileNotFoundError:
                continue
            except (BaseError, OSError) as error:
                raise StorageError from error


def storage_of(settings: Settings) -> DocumentStorage:
    """The storage of a server; raises DomainError 503 if it has none, or if it can't be opened."""
    url = settings.storage_url
    if url is None:
        raise DomainError(
            "service_unavailable",
            "The server has no storage for documents. The operator must set PLANKEEPER_DOCUMENTS_URL.",
        )
    try:
        return _open(url)
    except (BaseError, OSError) as error:
        raise DomainError("service_unavailable", "The server can't open its storage for documents.") from error


@cache
def _open(url: str) -> DocumentStorage:
    return DocumentStorage(url)
