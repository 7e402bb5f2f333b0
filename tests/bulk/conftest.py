"""Importing for a client's plan manager, and the events that come of it."""

from uuid import UUID

import pytest

from bulk.samples import BOOK, Events, Import, Row, Told, by_json, clean
from plankeeper.import_export.importer import ImportReport
from support.client import Client
from support.importing import import_bytes
from support.server import RunningServer


@pytest.fixture
def taken(server: RunningServer) -> Import:
    """Imports rows, or a whole file, for a client's plan manager."""

    def work(client: Client, resource: str, content: bytes | list[Row]) -> ImportReport:
        file = content if isinstance(content, bytes) else by_json(content)
        return server.run(import_bytes(server, UUID(client.plan_manager_id), resource, file))

    return work


@pytest.fixture
def told(server: RunningServer) -> Events:
    """All events of a client's plan manager, but those of keys."""

    def work(client: Client) -> list[Told]:
        statement = """
            select type, resource_id, actor_kind || ' ' || actor_name as actor, data, previous from events
            where plan_manager_id = $1 and resource_kind <> 'api_key' order by id
        """
        return server.run(server.db.rows(Told, statement, UUID(client.plan_manager_id)))

    return work


@pytest.fixture
def stocked(api: Client, taken: Import) -> Client:
    """A client of a plan manager that has one or two of everything."""
    for resource, rows in BOOK.items():
        clean(taken(api, resource, rows), created=len(rows))
    return api
