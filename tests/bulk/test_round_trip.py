"""Export, import into an empty plan manager on another database, export again: the same bytes."""

import csv
import io
import json
from collections.abc import Iterator
from decimal import Decimal
from typing import Any, cast
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec import Struct
from uuid_utils.compat import uuid7

from bulk.samples import BOOK, Row, an_id, by_json, clean
from plankeeper.database import schema
from plankeeper.demo import plan_managers, records
from plankeeper.import_export.reader import ImportRow, read_rows
from plankeeper.import_export.registry import RESOURCES
from plankeeper.import_export.writer import CsvWriter, JsonLinesWriter
from plankeeper.plan_managers import store
from support.importing import import_bytes
from support.server import RunningServer

FORMATS = ["jsonl", "csv"]
NASTY = [
    "", " ", '"', '""', '"""', '""""', "a\nb", "a\r\nb", "\r", "\n", ",", ";", "a;b", "'=1+1", "null", "true", "[",
    "[]", "{}", '{"a": "b"}', "\\", "\\n", "\\u0000", "\\ud800",
    "\u2028\u2029\x85\x0b\x1f\x7f", "\ufeff", "Zoë 🦘 e\u0301",
    "\U0010ffff\ue000", "a" * 255, "-- ' ); drop table participants", "\t", "#", "0", "1E-7", "NaN", "%s", "$1",
]  # fmt: skip


@pytest.fixture(scope="module")
def elsewhere(server: RunningServer) -> Iterator[RunningServer]:
    """A server on a database of its own, with the schema and nothing in it."""
    server.run(server.db.execute("create database elsewhere"))
    dsn = server.dsn.replace("///plankeeper?", "///elsewhere?")
    assert dsn != server.dsn
    schema.migrate(dsn)
    running = RunningServer(dsn).start()
    yield running
    running.stop()


async def _made(server: RunningServer, id_: UUID) -> None:
    async with server.db.transaction() as tx:
        await store.insert(tx, id_, "Round trip")


async def _exported(server: RunningServer, id_: UUID, resource: str, format_: str) -> bytes:
    chosen = RESOURCES[resource]
    writer = CsvWriter(chosen.export_schema) if format_ == "csv" else JsonLinesWriter()
    async with server.db.transaction(snapshot=True) as tx:
        lines = [writer.row(each) async for each in chosen.export(tx, id_)]
    return (writer.header() + "".join(lines)).encode()


def there_and_back(server: RunningServer, elsewhere: RunningServer, id_: UUID, format_: str) -> dict[str, bytes]:
    """What of a plan manager was exported, after it proved to be the same on the other side."""
    elsewhere.run(_made(elsewhere, id_))
    files: dict[str, bytes] = {}
    for resource in RESOURCES:
        files[resource] = server.run(_exported(server, id_, resource, format_))
        report = elsewhere.run(import_bytes(elsewhere, id_, resource, files[resource]))
        clean(report, created=report.row_count)
    for resource, file in files.items():
        assert elsewhere.run(_exported(elsewhere, id_, resource, format_)) == file, resource
    return files


@pytest.mark.parametrize("format_", FORMATS)
def test_the_demonstration_comes_back_as_it_was(server: RunningServer, elsewhere: RunningServer, format_: str) -> None:
    id_ = cast("UUID", uuid7())
    server.run(_made(server, id_))
    for resource, rows in records(plan_managers()[1].id):
        assert server.run(import_bytes(server, id_, resource, by_json(list(rows)))).errors == []
    files = there_and_back(server, elsewhere, id_, format_)
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


def nasty(resource: str, number: int, text: str) -> Row:
    """The book's record of a kind, with a nasty text in all of its fields that take any."""
    id_: Any = number if resource == "note-types" else an_id()
    row = BOOK[resource][-1] | {"id": id_} | dict.fromkeys(TEXT_FIELDS[resource], text)
    if resource == "account-managers":
        row |= {"email": None}
    if resource == "team-members":
        row |= {"email": None, "contact_priority": None, "permissions": ["no_access"]}
        row |= {"user_id": an_id(), "pm_profile_id": id_}
    if resource == "invoices":
        [item] = row["line_items"]
        row["line_items"] = [item | {"id": an_id(), "description": each} for each in (text, text[::-1])]
        row["state_management"] = {"ignored_errors": [text, "check_total"]}
    return row


@pytest.mark.parametrize("format_", FORMATS)
def test_nasty_texts_come_back_as_they_were(server: RunningServer, elsewhere: RunningServer, format_: str) -> None:
    id_ = cast("UUID", uuid7())
    server.run(_made(server, id_))
    for resource, rows in BOOK.items():
        content = by_json([*rows, *(nasty(resource, 1000 + n, text) for n, text in enumerate(NASTY))])
        assert server.run(import_bytes(server, id_, resource, content)).errors == []
    files = there_and_back(server, elsewhere, id_, format_)
    assert len(read_by_python(files["participants"], format_)) == len(NASTY) + 1
    names = [row["preferred_name"] for row in read_by_python(files["participants"], format_)[1:]]
    # In CSV a text of nothing but pairs of quotes has one pair more, for an empty cell is null.
    assert names == [text + '""' if format_ == "csv" and text in ("", '""', '""""') else text for text in NASTY]


def read_by_python(file: bytes, format_: str) -> list[Row]:
    if format_ == "csv":
        return list(csv.DictReader(io.StringIO(file.decode(), newline="")))
    return [json.loads(line) for line in file.split(b"\n")[:-1]]


def test_of_nothing_comes_nothing(server: RunningServer, elsewhere: RunningServer) -> None:
    for format_ in FORMATS:
        id_ = cast("UUID", uuid7())
        server.run(_made(server, id_))
        files = there_and_back(server, elsewhere, id_, format_)
        assert {len(file.splitlines()) for file in files.values()} == {0 if format_ == "jsonl" else 1}


TEXTS = st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"]), max_size=20)
SPECIAL = st.text(st.sampled_from('"",;\r\n\\ {}[]\'a'), max_size=8)
AMOUNTS = st.decimals(-(10**12) + 1, 10**12 - 1, places=10) | st.decimals(-1000, 1000, places=2) | st.none()


class Nested(Struct):
    """What a cell may hold as JSON."""

    errors: list[str]
    ignored_errors: list[str]


@settings(max_examples=100, deadline=None)
@given(st.lists(st.tuples(TEXTS | SPECIAL | st.none(), SPECIAL, AMOUNTS, st.lists(TEXTS | SPECIAL)), max_size=4))
def test_whatever_is_written_as_csv_is_read_as_it_was(rows: list[tuple[Any, str, Decimal | None, list[str]]]) -> None:
    shape = RESOURCES["invoices"].export_schema
    writer = CsvWriter(shape)
    file = writer.header() + "".join(writer.row(_invoice(*row)) for row in rows)
    lines = list(read_rows(io.BytesIO(file.encode()), RESOURCES["invoices"].import_schema))
    assert [type(line) for line in lines] == [ImportRow] * len(rows)
    found = [
        (line.values.invoice_number, line.values.s3_key, line.values.total, line.values.state_management.ignored_errors)
        for line in cast("list[Line[Any]]", lines)
    ]
    assert found == rows


def _invoice(number: str | None, key: str, total: Decimal | None, ignored: list[str]) -> Any:
    names = RESOURCES["invoices"].export_schema.__struct_fields__
    values: dict[str, Any] = dict.fromkeys(names) | {"line_items": []}
    state = Nested(errors=[], ignored_errors=ignored)
    values |= {"invoice_number": number, "s3_key": key, "total": total, "state_management": state}
    values |= {"claim_status": "new", "approval_status": "not_required"}
    return RESOURCES["invoices"].export_schema(**values)


@settings(max_examples=5, deadline=None)
@given(
    texts=st.lists(st.tuples(TEXTS | SPECIAL, st.none() | SPECIAL), min_size=1, max_size=20),
    format_=st.sampled_from(FORMATS),
)
def test_any_text_survives_the_database(texts: list[tuple[str, str | None]], format_: str) -> None:
    server, elsewhere = SERVERS
    id_ = cast("UUID", uuid7())
    server.run(_made(server, id_))
    rows = [{"id": an_id(), "entity_name": one, "address": two} for one, two in texts]
    clean(server.run(import_bytes(server, id_, "providers", by_json(rows))), created=len(rows))
    there_and_back(server, elsewhere, id_, format_)


SERVERS: list[RunningServer] = []


@pytest.fixture(scope="module", autouse=True)
def _servers(server: RunningServer, elsewhere: RunningServer) -> Iterator[None]:
    """For hypothesis, whose examples share what a function asks for."""
    SERVERS[:] = [server, elsewhere]
    yield
    SERVERS.clear()
