"""Importing for a client's plan manager, and its events."""

from uuid import UUID

import pytest

from plankeeper.imports.importer import ImportReport
from support.client import Client
from support.import_samples import ALL_ROWS, EventRow, Events, Import, Row, assert_imported, to_json_lines
from support.importing import import_bytes
from support.server import RunningServer


@pytest.fixture
def import_content(server: RunningServer) -> Import:
    """Imports rows, or a whole file, for a client's plan manager."""

    def import_one(client: Client, resource: str, content: bytes | list[Row]) -> ImportReport:
        file = content if isinstance(content, bytes) else to_json_lines(content)
        return server.run(import_bytes(server, UUID(client.plan_manager_id), resource, file))

    return import_one


@pytest.fixture
def recorded_events(server: RunningServer) -> Events:
    """All events of a client's plan manager, but those of keys."""

    def read(client: Client) -> list[EventRow]:
        statement = """
            select type, resource_id, actor_kind || ' ' || actor_name as actor, data, previous from events
            where plan_manager_id = $1 and resource_kind <> 'api_key' order by id
        """
        return server.run(server.db.rows(EventRow, statement, UUID(client.plan_manager_id)))

    return read


@pytest.fixture
def seeded_api(api: Client, import_content: Import) -> Client:
    """A client of a plan manager that has one or two of everything."""
    for resource, rows in ALL_ROWS.items():
        assert_imported(import_content(api, resource, rows), created=len(rows))
    return api
