"""An office with its own fee, for each test, on a server whose catalogue has the fee's item."""

from collections.abc import Iterator

import pytest

from support.cluster import SharedCluster
from support.factories import create_client
from support.fees import FeeOffice, running_fee_server
from support.server import RunningServer


@pytest.fixture(scope="package")
def fee_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    with running_fee_server(cluster) as running:
        yield running


@pytest.fixture
def office(fee_server: RunningServer) -> Iterator[FeeOffice]:
    client = fee_server.run(create_client(fee_server))
    yield FeeOffice(fee_server, client)
    client.http.close()
