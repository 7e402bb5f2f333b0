"""A database that becomes unreachable and returns, while the cluster of the test run stays up for everybody else."""

from collections.abc import Generator
from contextlib import contextmanager
from pathlib import Path
from urllib.parse import parse_qs, quote, urlsplit

from support.cluster import SharedCluster, execute
from support.folder import temporary_folder


class StoppableDatabase:
    """A migrated database that is reached through a socket folder of its own.

    `stop` does to its clients what a fast shutdown of PostgreSQL does: the socket is gone, so that new connections
    fail with "No such file or directory", and the server ends each open session with "terminating connection due to
    administrator command", which rolls back what it has not committed.
    """

    def __init__(self, cluster: SharedCluster, folder: Path) -> None:
        database = urlsplit(cluster.new_database())
        socket_folder = parse_qs(database.query)["host"][0]
        self._admin_dsn = cluster.dsn_of("postgres")
        self._name = database.path.removeprefix("/")
        self._socket_folder = Path(socket_folder)
        self._link = folder / "socket"
        self.dsn = cluster.dsn_of(self._name).replace(quote(socket_folder), quote(str(self._link)))
        assert str(self._link) in self.dsn
        self.start()

    def start(self) -> None:
        execute(self._admin_dsn, f"alter database {self._name} allow_connections true")
        self._link.symlink_to(self._socket_folder)

    def stop(self) -> None:
        """Return once no session is left."""
        self._link.unlink()
        execute(
            self._admin_dsn,
            # A connection that is being opened at this moment is in no list yet.
            f"alter database {self._name} allow_connections false",
            f"select pg_terminate_backend(pid, 60000) from pg_stat_activity where datname = '{self._name}'",
        )


@contextmanager
def stoppable_database(cluster: SharedCluster) -> Generator[StoppableDatabase]:
    with temporary_folder() as folder:
        yield StoppableDatabase(cluster, folder)
