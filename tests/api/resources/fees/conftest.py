"""An office with its own fee, for each test, on a server whose catalogue has the fee's item."""

from collections.abc import Iterator

import pytest

from support.catalogues import import_catalogue
from support.cluster import SharedCluster
from support.factories import create_client
from support.fees import FEE_ITEM, FeeOffice
from support.server import RunningServer


@pytest.fixture(scope="package")
def fee_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server on a database of its own, because all plan managers of a database share the catalogue."""
    dsn = cluster.new_database()
    import_catalogue(dsn, FEE_ITEM)
    running = RunningServer(dsn).start()
    yield running
    running.stop()


@pytest.fixture
def office(fee_server: RunningServer) -> Iterator[FeeOffice]:
    client = fee_server.run(create_client(fee_server))
    yield FeeOffice(fee_server, client)
    client.http.close()
