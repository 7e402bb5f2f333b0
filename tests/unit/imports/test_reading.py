"""Reading files: their rows, and the errors of unreadable ones."""

import asyncio
import io
import json
from decimal import Decimal
from typing import Any

import pytest
from msgspec import UNSET

from plankeeper.imports import mapped_import
from plankeeper.imports.importer import BATCH_SIZE
from plankeeper.imports.reader import UnreadableFileError, read_rows
from plankeeper.imports.source_files import SourceRow
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.upsert import ImportRow, RowError

NUL = "must not contain the character U+0000"
FIELDS = (
    "id, created_at, bank_bsb, bank_account_number, bank_account_name, entity_name, abn, email, active, "
    "primary_phone_number, address, city, state, postcode, "
    "ndis_provider_number"
)


def read_all(content: bytes | str, resource: str = "providers") -> list[Any]:
    """Every row of a file as (number, fields), every error as a BadLine."""
    file = io.BytesIO(content.encode() if isinstance(content, str) else content)
    return [
        each if isinstance(each, RowError) else (each.line_number, set_values(each))
        for each in read_rows(file, RESOURCES[resource].import_schema)
    ]


def set_values(line: ImportRow[Any]) -> dict[str, Any]:
    values = {name: getattr(line.values, name) for name in line.values.__struct_fields__}
    return {name: value for name, value in values.items() if value is not UNSET}


def file_error(content: bytes | str) -> str:
    with pytest.raises(UnreadableFileError) as rejected:
        read_all(content)
    return str(rejected.value)


def test_json_lines_are_numbered_objects_and_blank_lines_are_skipped() -> None:
    assert read_all('{"entity_name": "One"}\n\n  \r\n{"entity_name": null, "active": false}') == [
        (1, {"entity_name": "One"}),
        (4, {"entity_name": None, "active": False}),
    ]


def test_csv_has_a_header_and_counts_lines_of_the_file_not_rows() -> None:
    assert read_all('entity_name,city\nOne,"a\nb\n\nc"\n\nTwo,d\n') == [
        (2, {"entity_name": "One", "city": "a\nb\n\nc"}),
        (7, {"entity_name": "Two", "city": "d"}),
    ]


@pytest.mark.parametrize(
    "content",
    [
        b'\xef\xbb\xbf{"abn": "1"}\n{"abn": "2"}\n',
        b'\r\n {"abn": "1"}\r\n{"abn": "2"}\r\n',
        b"\xef\xbb\xbfabn\r\n1\r\n2\r\n",
        b'\xef\xbb\xbf"abn"\r\n"1"\r\n"2"\r\n',
        b"abn\r1\r2\r",
        b"abn\n1\n2",
    ],
)
def test_additions_by_editors_and_spreadsheets_are_ignored(content: bytes) -> None:
    assert [values for _number, values in read_all(content)] == [{"abn": "1"}, {"abn": "2"}]


@pytest.mark.parametrize(
    "text",
    [
        'say "hello"', '"', '""', '"""', '""""', "a,b;c\td", "line\nline", "line\r\nline", "\r", "\n", " padded ",
        "Zoë 🦘 \u0301", "\u2028\u2029\x85\x1f", "\ufeff", "null", "[1", "{}", "'=1+1", "\\u0000", "\\",
    ],
)  # fmt: skip
def test_every_text_is_read_back_unchanged(text: str) -> None:
    quoted = text.replace('"', '""')
    cell = f'"{quoted}"' if text.strip('"') or len(text) % 2 else f'"{quoted}"""""'
    assert read_all(f"city,entity_name\n{cell},x\n") == [(2, {"city": text, "entity_name": "x"})]
    assert read_all(json.dumps({"city": text}) + "\n") == [(1, {"city": text})]


def test_an_empty_cell_is_null_and_two_quotes_are_an_empty_string() -> None:
    assert read_all('entity_name,city,active\n,"",\n"""""",x,true\n') == [
        (2, {"entity_name": None, "city": None}),
        (3, {"entity_name": "", "city": "x", "active": True}),
    ]
    assert read_all('{"entity_name": "", "city": null}\n') == [(1, {"entity_name": "", "city": None})]


def test_cells_are_converted_to_the_types_of_their_fields() -> None:
    [(_, member)] = read_all("contact_priority,permissions\n1,view_budget;view_invoices\n", "team-members")
    assert member == {"contact_priority": 1, "permissions": ["view_budget", "view_invoices"]}
    lines = json.dumps([{"quantity": 1.10, "description": 'a "b"'}]).replace('"', '""')
    [(_, invoice)] = read_all(f'total,invoice_date,line_items\n-0.10,2026-01-31,"{lines}"\n', "invoices")
    assert str(invoice["total"]) == "-0.10"
    assert str(invoice["invoice_date"]) == "2026-01-31"
    [line] = invoice["line_items"]
    assert (line.quantity, line.description) == (Decimal("1.1"), 'a "b"')


@pytest.mark.parametrize("moment", ["2026-01-31T10:00:00Z", "2026-01-31 10:00:00Z", "2026-01-31T21:00:00.000000+11:00"])
def test_both_formats_accept_the_same_datetimes(moment: str) -> None:
    [(_, by_csv)] = read_all(f"created_at\n{moment}\n")
    [(_, by_json)] = read_all(json.dumps({"created_at": moment}))
    assert by_csv == by_json
    assert by_csv["created_at"].isoformat(timespec="seconds") in {
        "2026-01-31T10:00:00+00:00",
        "2026-01-31T21:00:00+11:00",
    }


@pytest.mark.parametrize(
    "content,bad",
    [
        ('{"entity_name": "\\u0000"}\n', RowError(1, "entity_name", NUL)),
        ("entity_name,city\nx,a\0b\n", RowError(2, "city", NUL)),
        (b"entity_name,city\nx,caf\xe9\n", RowError(2, "city", "is not UTF-8")),
        (b'{"city": "caf\xe9"}\n', RowError(1, "", "Not valid JSON: it is not UTF-8.")),
        ('{"state": "XX"}\n', RowError(1, "state", "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA")),
        ("state\nXX\n", RowError(2, "state", "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA")),
        ('{"email": "nobody"}\n', RowError(1, "email", "must be an email address, such as name@example.com")),
        ("email\nnobody\n", RowError(2, "email", "must be an email address, such as name@example.com")),
        ("id\n1234\n", RowError(2, "id", "must be a UUID with hyphens")),
        ("active\nyes\n", RowError(2, "active", "must be true or false, not a string")),
        (
            "created_at\n2026-01-31\n",
            RowError(2, "created_at", "must be a datetime with a time zone, YYYY-MM-DDTHH:MM:SSZ"),
        ),
        ("created_at\n2026-01-31T10:00:00\n", RowError(2, "created_at", "must be a datetime with a time zone")),
        ('{"abn": 53004085616}\n', RowError(1, "abn", "must be a string or null, not a whole number")),
        ('{"foo": 1}\n', RowError(1, "foo", f"is unknown; expected one of {FIELDS}")),
        ("entity_name\n" + "x" * 256 + "\n", RowError(2, "entity_name", "must be at most 255 characters long")),
        ("{}\n[]\n", RowError(2, "", "The body must be a JSON object.")),
        ("{}\n{\n", RowError(2, "", "Not valid JSON: it ends too early.")),
        ("{}\n" + "[" * 20_000 + "\n", RowError(2, "", "The body is nested more than 32 levels deep.")),
        ("entity_name,city\na\n", RowError(2, "", "has 1 cells, but the header has 2")),
        ("entity_name,city\na,b,c\n", RowError(2, "", "has 3 cells, but the header has 2")),
    ],
)  # fmt: skip
def test_an_invalid_line_is_reported_with_number_field_and_reason(content: bytes | str, bad: RowError) -> None:
    problems = [each for each in read_all(content) if isinstance(each, RowError)]
    assert [(problem.line_number, problem.field) for problem in problems] == [(bad.line_number, bad.field)]
    assert problems[0].message.startswith(bad.message)


def test_all_errors_of_a_line_are_reported_and_later_lines_are_read() -> None:
    by_json = read_all('{"state": "XX", "active": 1, "bar": 2}\n{"abn": "1"}\n')
    assert [(each[0], each[1]) for each in by_json] == [(1, "bar"), (1, "active"), (1, "state"), (2, {"abn": "1"})]
    by_csv = read_all("abn,state,active\n1,XX,1\n1,,\n")
    assert [(each[0], each[1]) for each in by_csv] == [(2, "active"), (2, "state"), (3, {"abn": "1", "state": None})]


@pytest.mark.parametrize("text", [r"\ud800", r"\u0000", r"a\udfffb"])
@pytest.mark.parametrize("place", ["line_items", "state_management"])
def test_json_in_a_cell_follows_the_same_rules(place: str, text: str) -> None:
    document = '[{"description": "%s"}]' if place == "line_items" else '{"ignored_errors": ["%s"]}'
    cell = (document % text).replace('"', '""')
    [problem] = read_all(f'{place}\n"{cell}"\n', "invoices")
    assert isinstance(problem, RowError)
    assert (problem.line_number, problem.field.partition("[")[0].partition(".")[0]) == (2, place)


@pytest.mark.parametrize(
    "cell", ["{}", "nonsense", "[1", "[" * 20_000, "12", '"[{""quantity"":""x""}]"', '"[{""foo"":1}]"']
)
def test_a_cell_with_the_wrong_json_is_invalid(cell: str) -> None:
    [problem] = read_all(f"invoice_number,line_items\n1,{cell}\n", "invoices")
    assert isinstance(problem, RowError)
    assert (problem.line_number, problem.field.partition("[")[0]) == (2, "line_items")


@pytest.mark.parametrize("content", ['{"%s": "%s"}\n', "%s\n%s\n"])
@pytest.mark.parametrize("moment", ["0001-01-01T00:00:00+10:00", "9999-12-31T23:59:59-10:00", "9999-12-31T00:00:00Z"])
def test_a_timestamp_that_is_beyond_the_calendar_in_a_time_zone_is_invalid(content: str, moment: str) -> None:
    [problem] = read_all(content % ("created_at", moment))
    assert isinstance(problem, RowError)
    assert (problem.field, problem.message) == ("created_at", "must be a datetime in the years 2 to 9998")


@pytest.mark.parametrize(
    "content,reason",
    [
        ("abn,foo,bar\n1,2,3\n", f"line 1: unknown columns: 'foo', 'bar'; the columns are {FIELDS}"),
        ("abn;city\n1;2\n", f"line 1: unknown columns: 'abn;city'; the columns are {FIELDS}"),
        ("ABN\n1\n", f"line 1: unknown columns: 'ABN'; the columns are {FIELDS}"),
        ("abn,\n1,\n", f"line 1: unknown columns: ''; the columns are {FIELDS}"),
        ("abn,city,abn\n1,2,3\n", "line 1: repeated columns: abn; each column must appear once"),
        ("[1, 2]\n", f"line 1: unknown columns: '[1', ' 2]'; the columns are {FIELDS}"),
        (b"\xff\xfea\x00b\x00n\x00\r\x00\n\x00", "line 1: unknown columns:"),
        (b"caf\xe9\n", "line 1: unknown columns:"),
        ('"abn\n1\n', "line 1: not valid CSV: unexpected end of data"),
    ],
)
def test_a_file_in_another_format_is_rejected(content: bytes | str, reason: str) -> None:
    assert file_error(content).startswith(reason)


def test_an_unclosed_quote_reports_where_reading_stopped() -> None:
    assert read_all('abn,city\n1,"a\n2,b\n') == [
        RowError(2, "", "not valid CSV: unexpected end of data; the rest of the file was not read")
    ]
    stopped = read_all('abn,city\n0,x\n1,"a"b\n2,b\n')
    assert stopped[0] == (2, {"abn": "0", "city": "x"})
    assert stopped[1].line_number == 3
    assert stopped[1].message.endswith("the rest of the file was not read")


@pytest.mark.parametrize("content", [b"", b"abn\n", b"\xef\xbb\xbfabn\r\n"])
def test_an_empty_file_has_no_lines(content: bytes) -> None:
    assert read_all(content) == []


def test_a_cell_may_hold_all_lines_of_an_invoice() -> None:
    items = [{"description": "d" * 10_000} for _ in range(30)]
    cell = json.dumps(items).replace('"', '""')
    [(_, invoice)] = read_all(f'line_items\n"{cell}"\n', "invoices")
    assert [item.description for item in invoice["line_items"]] == ["d" * 10_000] * 30


class SlowPipe(io.RawIOBase):
    """A pipe whose writer sends a byte at a time."""

    def __init__(self, content: bytes) -> None:
        self.content = io.BytesIO(content)

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        byte = self.content.read(1)
        buffer[: len(byte)] = byte
        return len(byte)


@pytest.mark.parametrize("content", ["{}", '\ufeff{"abn": "1"}\n', '\n{"abn": "1"}\n', "abn\n1\n", "\ufeffabn\n1\n"])
def test_a_slow_pipe_is_read_like_a_file(content: str) -> None:
    dripping: Any = io.BufferedReader(SlowPipe(content.encode()))
    lines = [each for each in read_rows(dripping, RESOURCES["providers"].import_schema) if isinstance(each, ImportRow)]
    assert [(each.line_number, set_values(each)) for each in lines] == read_all(content)


@pytest.mark.parametrize("line", [b'{"abn": "1"}\n', b"1\n"])
def test_a_file_is_read_line_by_line(line: bytes) -> None:
    """The file goes on for ever: whoever read it to its end before giving the first line would never come back."""

    class Endless(io.RawIOBase):
        rest = b"" if line.startswith(b"{") else b"abn\n"

        def readable(self) -> bool:
            return True

        def readinto(self, buffer: Any) -> int:
            self.rest = (self.rest + line * 100)[: len(buffer)]
            buffer[: len(self.rest)] = self.rest
            size, self.rest = len(self.rest), b""
            return size

    lines = read_rows(io.BufferedReader(Endless()), RESOURCES["providers"].import_schema)
    assert set_values(
        next(line for _, line in zip(range(5000), lines, strict=False) if isinstance(line, ImportRow))
    ) == {"abn": "1"}


async def test_others_have_turns_while_a_batch_is_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(mapped_import, "MAX_TURN", 0)
    source = iter([SourceRow(number, [], None, []) for number in range(BATCH_SIZE + 1)])
    task = asyncio.create_task(mapped_import.read_batch(source))
    turns = 0
    while not task.done():
        turns += 1
        await asyncio.sleep(0)
    assert turns > BATCH_SIZE
    assert [each.line_number for each in await task] == list(range(BATCH_SIZE))
    assert [each.line_number for each in await mapped_import.read_batch(source)] == [BATCH_SIZE]
    assert await mapped_import.read_batch(source) == []
