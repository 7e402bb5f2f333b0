"""An office that pays, for each test."""

from collections.abc import Callable

import pytest

from support.client import Client
from support.payments import PayingOffice
from support.server import RunningServer

SCOPES = ("read", "write", "claims", "payments")


@pytest.fixture
def office(server: RunningServer, new_client: Callable[..., Client]) -> PayingOffice:
    return PayingOffice(server, new_client(scopes=SCOPES))
