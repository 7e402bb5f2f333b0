"""A proxy in front of PostgreSQL that forwards a commit and drops its response."""

import socket
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

COMMIT = b"Q\x00\x00\x00\x0cCOMMIT;\x00"  # the message of PostgreSQL's protocol, as asyncpg sends it
_CHUNK = 65536


class Proxy:
    """Listens on loopback for the server behind a socket's file.

    After `hold(marker)` it looks for a connection on which the marker is sent, a parameter of a statement. That
    connection's commit is passed on, but PostgreSQL's response is not: `held` is set by then, so the
    transaction is on disk, but not acknowledged.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._marker: bytes | None = None
        self.commit_held = threading.Event()
        self._holding: list[socket.socket] = []
        self._open: list[socket.socket] = []
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self._threads = [threading.Thread(target=self._accept, daemon=True)]
        self._threads[0].start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        for each in (self._listener, *self._open):
            with suppress(OSError):  # it may have ended already
                each.shutdown(socket.SHUT_RDWR)
        for thread in list(self._threads):
            thread.join(10)
        for each in (self._listener, *self._open):
            each.close()

    def hold_commit(self, marker: str) -> None:
        self.commit_held.clear()
        self._marker = marker.encode()

    def cut(self) -> None:
        """Break the connection whose response is held."""
        for each in self._holding:
            each.shutdown(socket.SHUT_RDWR)

    def _accept(self) -> None:
        with suppress(OSError):  # it is shut down at the end
            while True:
                client, _ = self._listener.accept()
                server = socket.socket(socket.AF_UNIX)
                server.connect(str(self._path))
                self._open += [client, server]
                marked = threading.Event()
                for work in (self._forward_requests, self._forward_responses):
                    self._threads.append(threading.Thread(target=work, args=(client, server, marked), daemon=True))
                    self._threads[-1].start()

    def _forward_requests(self, client: socket.socket, server: socket.socket, marked: threading.Event) -> None:
        own = False
        with suppress(OSError):
            while chunk := client.recv(_CHUNK):
                own = own or (self._marker is not None and self._marker in chunk)
                if own and COMMIT in chunk:
                    self._marker, own = None, False
                    marked.set()
                server.sendall(chunk)
            server.shutdown(socket.SHUT_RDWR)

    def _forward_responses(self, client: socket.socket, server: socket.socket, marked: threading.Event) -> None:
        with suppress(OSError):
            while chunk := server.recv(_CHUNK):
                if marked.is_set():
                    assert b"COMMIT\x00" in chunk, chunk
                    self._holding.append(client)
                    self.commit_held.set()
                    return
                client.sendall(chunk)
            client.shutdown(socket.SHUT_RDWR)
