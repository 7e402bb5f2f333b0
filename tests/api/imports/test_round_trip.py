"""Export, import into an empty plan manager on another database, export again: the same bytes."""

import csv
import io
import json
from collections.abc import Iterable, Iterator
from decimal import Decimal
from typing import Any, NamedTuple, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.access.plan_managers import store
from plankeeper.cli.sample_data import plan_managers, records
from plankeeper.imports.importer import ImportReport
from plankeeper.imports.reader import read_rows
from plankeeper.imports.writer import CsvWriter, JsonLinesWriter
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.upsert import ImportRow
from support.cluster import SharedCluster
from support.import_samples import ALL_ROWS, Row, assert_imported, new_id, to_json_lines
from support.importing import import_bytes
from support.server import RunningServer

FORMATS = ["jsonl", "csv"]
SPECIAL_TEXTS = [
    "", " ", '"', '""', '"""', '""""', "a\nb", "a\r\nb", "\r", "\n", ",", ";", "a;b", "'=1+1", "null", "true", "[",
    "[]", "{}", '{"a": "b"}', "\\", "\\n", "\\u0000", "\\ud800",
    "\u2028\u2029\x85\x0b\x1f\x7f", "\ufeff", "Zoë 🦘 e\u0301",
    "\U0010ffff\ue000", "a" * 255, "-- ' ); drop table participants", "\t", "#", "0", "1E-7", "NaN", "%s", "$1",
]  # fmt: skip


@pytest.fixture(scope="module")
def second_server(cluster: SharedCluster) -> Iterator[RunningServer]:
    """A server on a database of its own, with the schema and nothing in it."""
    running = RunningServer(cluster.new_database()).start()
    yield running
    running.stop()


async def _create_plan_manager(server: RunningServer, id_: UUID) -> None:
    async with server.db.transaction() as tx:
        await store.insert(tx, id_, "Round trip")


async def _export(server: RunningServer, id_: UUID, resource: str, format_: str) -> bytes:
    chosen = RESOURCES[resource]
    writer = CsvWriter(chosen.export_schema) if format_ == "csv" else JsonLinesWriter()
    async with server.db.transaction(snapshot=True) as tx:
        lines = [writer.lines(each) async for each in chosen.export(tx, id_)]
    return writer.header() + b"".join(lines)


def round_trip(
    server: RunningServer, second_server: RunningServer, id_: UUID, format_: str, resources: Iterable[str] = RESOURCES
) -> dict[str, bytes]:
    """The export of a plan manager, which is the same after an import into a new one, but for the ids of the two."""
    imported_id = cast("UUID", uuid7())
    second_server.run(_create_plan_manager(second_server, imported_id))
    exported: dict[str, bytes] = {}
    files: dict[str, bytes] = {}
    for resource in resources:
        exported[resource] = server.run(_export(server, id_, resource, format_))
        files[resource] = exported[resource].replace(str(id_).encode(), str(imported_id).encode())
        report = second_server.run(import_bytes(second_server, imported_id, resource, files[resource]))
        assert_imported(report, created=report.row_count)
    for resource, file in files.items():
        assert second_server.run(_export(second_server, imported_id, resource, format_)) == file, resource
    return exported


class Sample(NamedTuple):
    """A plan manager with the sample data, and the reports of its first and second import of each resource."""

    id: UUID
    reports: list[tuple[ImportReport, ImportReport]]


@pytest.fixture(scope="module")
def sample(server: RunningServer) -> Sample:
    id_ = cast("UUID", uuid7())
    server.run(_create_plan_manager(server, id_))
    reports: list[tuple[ImportReport, ImportReport]] = []
    for resource, rows in records(plan_managers()[1].id):
        file = to_json_lines(list(rows))
        first, second = (server.run(import_bytes(server, id_, resource, file)) for _ in range(2))
        reports.append((first, second))
    return Sample(id_, reports)


def test_importing_the_sample_data_twice_changes_nothing(server: RunningServer, sample: Sample) -> None:
    for first, second in sample.reports:
        assert_imported(first, created=first.row_count)
        assert_imported(second, unchanged=first.row_count)
    types = server.run(server.db.rows(str, "select type from events where plan_manager_id = $1", sample.id))
    created = [each for each in types if each.endswith((".created", ".started", ".ended"))]
    # A plan takes the place of the one that the participant's fields have created.
    replaced = [each for each in types if each == "plan.deleted"]
    assert len(created) == len(types) - len(replaced)
    assert 0 < 2 * len(replaced) <= created.count("plan.created")


@pytest.mark.parametrize("format_", FORMATS)
def test_the_sample_data_survives_a_round_trip(
    server: RunningServer, second_server: RunningServer, sample: Sample, format_: str
) -> None:
    files = round_trip(server, second_server, sample.id, format_)
    assert [len(file.splitlines()) > 1 for file in files.values()] == [True] * len(RESOURCES)


TEXT_FIELDS = {
    "exit-reasons": ["name"],
    "account-managers": ["first_name", "last_name"],
    "participants": ["first_name", "preferred_name", "address_line_1", "reason_for_leaving", "service_region_id"],
    "providers": ["entity_name", "ndis_provider_number"],
    "note-types": ["badge_color", "highlight_color"],
    "team-members": ["first_name", "role", "note", "secondary_email"],
    "invoices": ["invoice_number", "s3_key"],
    "invoice-view-sessions": ["user_id", "user_name"],
}


def row_with_text(resource: str, number: int, text: str) -> Row:
    """The book's record of a kind, with a nasty text in all of its fields that take any."""
    id_: Any = number if resource == "note-types" else new_id()
    row = ALL_ROWS[resource][-1] | {"id": id_} | dict.fromkeys(TEXT_FIELDS[resource], text)
    if "external_id" in row:
        row |= {"external_id": f"{number}{text}"[:255]}
    if resource == "account-managers":
        row |= {"email": None}
    if resource == "team-members":
        row |= {"email": None, "contact_priority": None, "permissions": ["no_access"]}
        row |= {"user_id": new_id(), "pm_profile_id": id_}
    if resource == "invoices":
        [item] = row["line_items"]
        row["line_items"] = [item | {"id": new_id(), "description": each} for each in (text, text[::-1])]
        row["state_management"] = {"ignored_errors": [text, "check_total"]}
    return row


@pytest.mark.parametrize("format_", FORMATS)
def test_special_texts_survive_a_round_trip(server: RunningServer, second_server: RunningServer, format_: str) -> None:
    id_ = cast("UUID", uuid7())
    server.run(_create_plan_manager(server, id_))
    for resource, rows in ALL_ROWS.items():
        content = to_json_lines(
            [*rows, *(row_with_text(resource, 1000 + n, text) for n, text in enumerate(SPECIAL_TEXTS))]
        )
        assert server.run(import_bytes(server, id_, resource, content)).errors == []
    files = round_trip(server, second_server, id_, format_)
    assert len(parse_with_python(files["participants"], format_)) == len(SPECIAL_TEXTS) + 1
    names = [row["preferred_name"] for row in parse_with_python(files["participants"], format_)[1:]]
    # In CSV a text of nothing but pairs of quotes has one pair more, for an empty cell is null.
    assert names == [text + '""' if format_ == "csv" and text in ("", '""', '""""') else text for text in SPECIAL_TEXTS]


def parse_with_python(file: bytes, format_: str) -> list[Row]:
    if format_ == "csv":
        return list(csv.DictReader(io.StringIO(file.decode(), newline="")))
    return [json.loads(line) for line in file.split(b"\n")[:-1]]


def test_an_empty_plan_manager_exports_nothing(server: RunningServer, second_server: RunningServer) -> None:
    for format_ in FORMATS:
        id_ = cast("UUID", uuid7())
        server.run(_create_plan_manager(server, id_))
        files = round_trip(server, second_server, id_, format_)
        assert {len(file.splitlines()) for file in files.values()} == {0 if format_ == "jsonl" else 1}


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
CSV_TEXTS = st.text(st.sampled_from('"",;\r\n\\ {}[]\'a'), max_size=8)
AMOUNTS = st.decimals(-(10**12) + 1, 10**12 - 1, places=10) | st.decimals(-1000, 1000, places=2) | st.none()


class NestedJson(Struct):
    """The JSON of the cell `state_management`."""

    errors: list[str]
    ignored_errors: list[str]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TEXTS | CSV_TEXTS | st.none(), CSV_TEXTS, AMOUNTS, st.lists(TEXTS | CSV_TEXTS)), max_size=4))
def test_any_csv_is_read_back_unchanged(rows: list[tuple[Any, str, Decimal | None, list[str]]]) -> None:
    shape = RESOURCES["invoices"].export_schema
    writer = CsvWriter(shape)
    file = writer.header() + writer.lines([_invoice(*row) for row in rows])
    lines = list(read_rows(io.BytesIO(file), RESOURCES["invoices"].import_schema))
    assert [type(line) for line in lines] == [ImportRow] * len(rows)
    found = [
        (line.values.invoice_number, line.values.s3_key, line.values.total, line.values.state_management.ignored_errors)
        for line in cast("list[ImportRow[Any]]", lines)
    ]
    assert found == rows


def _invoice(number: str | None, key: str, total: Decimal | None, ignored: list[str]) -> Any:
    names = RESOURCES["invoices"].export_schema.__struct_fields__
    values: dict[str, Any] = dict.fromkeys(names) | {"line_items": []}
    state = NestedJson(errors=[], ignored_errors=ignored)
    values |= {"invoice_number": number, "s3_key": key, "total": total, "state_management": state}
    values |= {"claim_status": "new", "approval_status": "not_required"}
    return RESOURCES["invoices"].export_schema(**values)


@settings(max_examples=5, deadline=None)
@given(
    texts=st.lists(st.tuples(TEXTS | CSV_TEXTS, st.none() | CSV_TEXTS), min_size=1, max_size=20),
    format_=st.sampled_from(FORMATS),
)
def test_any_text_is_stored_unchanged(
    server: RunningServer, second_server: RunningServer, texts: list[tuple[str, str | None]], format_: str
) -> None:
    id_ = cast("UUID", uuid7())
    server.run(_create_plan_manager(server, id_))
    rows = [{"id": new_id(), "entity_name": one, "address": two} for one, two in texts]
    assert_imported(server.run(import_bytes(server, id_, "providers", to_json_lines(rows))), created=len(rows))
    round_trip(server, second_server, id_, format_, ["providers"])
