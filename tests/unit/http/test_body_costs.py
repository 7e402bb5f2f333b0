"""The processor time for a body depends on its size, not on its errors."""

import json
import random
import time
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any

import msgspec
import pytest
from msgspec import Struct

from plankeeper.core.errors import MAX_ERRORS, DomainError, ValidationError
from plankeeper.core.json import (
    MAX_CONTAINERS,
    MAX_SEPARATORS,
    MAX_VALUES,
    BodyParser,
)
from plankeeper.core.validation import MAX_UNKNOWN_FIELDS, known_fields
from plankeeper.http.routing import PREFIX, Operation
from plankeeper.imports.reader import (
    MAX_CELLS,
    MAX_COLUMNS,
    UnreadableFileError,
    read_rows,
)
from plankeeper.resources.participants.schemas import ParticipantImport
from plankeeper.resources.upsert import RowError
from plankeeper.server.app import operations

# Times the processor time of decoding a list of ordinary records of the same size. It was 1,200 for unknown fields.
MAX_COST = 40

WITH_BODY = {f"{each.method} {each.path}": each for each in operations() if each.parser}


def anagrams(name: str, chance: random.Random) -> Iterator[str]:
    """Names for which comparing takes longest: half of a field's name, and the rest of it in another order."""
    head, tail = name[: len(name) // 2], list(name[len(name) // 2 :])
    while True:
        chance.shuffle(tail)
        yield head + "".join(tail)


def numbered(size: int, template: str = '"k{}":1') -> str:
    """An object with different fields."""
    length = len(template) + 7
    return "{" + ",".join(template.format(number + 10**8) for number in range(size // length)) + "}"


def unknown_fields(names: list[str], size: int) -> str:
    chance = anagrams(max(names, key=len), random.Random(1))
    variants = [next(chance) for _ in range(1000)]
    each = len(variants[0]) + 16
    fields = (f'"{variants[number % 1000]}{number + 10**8}":1' for number in range(size // each))
    return "{" + ",".join(fields) + "}"


def in_a_list(names: list[str], size: int) -> str:
    return f'{{"{names[0]}": [{unknown_fields(names, size - 100)}]}}'


def repeated(text: str) -> Callable[[list[str], int], str]:
    return lambda names, size: f'{{"{names[0]}":[' + ",".join([text] * ((size - 100) // (len(text) + 1))) + "]}"


KINDS: dict[str, Callable[[list[str], int], str]] = {
    "unknown fields that resemble a known one": unknown_fields,
    "different unknown fields": lambda _, size: numbered(size),
    "one item with many fields": in_a_list,
    "many numbers": repeated("1"),
    "many objects": repeated("{}"),
    "many texts": repeated('"a"'),
    "objects with unknown fields": repeated('{"exit_reason_yrogetacbus_id":1}'),
    "repeated fields": lambda _, size: "{" + ",".join(['"k":1'] * (size // 6)) + "}",
    "a long number": lambda _, size: '{"k":' + "7" * size + "}",
    "a long fraction": lambda _, size: '{"k":0.' + "7" * size + "}",
    "a large exponent": lambda _, size: '{"k":1e' + "9" * min(size, 500_000) + "}",
    "nested lists": repeated("[" * 30 + "]" * 30),
    "nested objects": repeated('{"k":' * 29 + "{" + "}" * 30),
    "many texts and one with commas": lambda names, size: (
        f'{{"{names[0]}":["' + "," * (size // 2) + '"' + ',""' * min(size // 6, MAX_SEPARATORS - 100) + "]}"
    ),
    "escaped quotes": lambda _, size: '{"k":"' + "," * (size // 2) + '\\"' * (size // 4) + '"}',
    "deep nesting": lambda _, size: '{"k":' + "[" * (size // 2) + "]" * (size // 2) + "}",
}


@cache
def baseline(size: int) -> float:
    """The processor time of decoding ordinary records."""
    record = json.dumps(
        {"first_name": "Ann", "last_name": "Lee", "city": "Hobart", "postcode": "7000", "note": "x" * 60}
    )
    body = ("[" + ",".join([record] * (size // len(record))) + "]").encode()
    return min(cost(lambda: msgspec.json.decode(body)) for _ in range(5))


def cost(work: Callable[[], object]) -> float:
    began = time.process_time()
    work()
    return time.process_time() - began


def collect(errors: list[DomainError], parser: BodyParser[Any], body: bytes) -> None:
    errors.append(rejection(parser, body))


def rejection(parser: BodyParser[Any], body: bytes) -> DomainError:
    with pytest.raises(DomainError) as caught:
        parser.parse(body)
    return caught.value


@cache
def body_of(kind: str, names: tuple[str, ...], size: int) -> bytes:
    return KINDS[kind](list(names), size - 100).encode()


# Those whose cost depends on the names of the fields that an operation knows.
ABOUT_FIELDS = {
    "unknown fields that resemble a known one", "one item with many fields", "objects with unknown fields"
}  # fmt: skip


def operations_for(kind: str) -> dict[str, Operation]:
    """One of those with the same fields, or, of each size of a body, those with the fewest and the most fields."""
    if kind in ABOUT_FIELDS:
        by_fields = {(each.body, each.read_only, each.max_body_bytes): (name, each) for name, each in WITH_BODY.items()}
        return dict(by_fields.values())
    in_order = sorted(WITH_BODY.items(), key=lambda each: len(known_fields(each[1].body or Struct)))
    fewest = {each.max_body_bytes: (name, each) for name, each in reversed(in_order)}
    most = {each.max_body_bytes: (name, each) for name, each in in_order}
    return dict([*fewest.values(), *most.values()])


@pytest.mark.parametrize("kind", KINDS)
def test_a_body_of_the_largest_size_is_rejected_at_once(kind: str) -> None:
    slow: dict[str, float] = {}
    for name, operation in operations_for(kind).items():
        assert operation.parser
        names = (*known_fields(operation.body or Struct),) or ("items",)
        body = body_of(kind, (names[0], max(names, key=len)), operation.max_body_bytes)
        errors: list[DomainError] = []
        measure, limit = partial(collect, errors, operation.parser, body), MAX_COST * baseline(operation.max_body_bytes)
        seconds = cost(measure)
        if seconds > limit:  # a collection of the garbage of all tests can fall into one measurement
            seconds = min(cost(measure) for _ in range(2))
        if seconds > limit:
            slow[name] = seconds
        error = errors[0]
        assert not isinstance(error, ValidationError) or 0 < len(error.body("").errors or ()) <= MAX_ERRORS
    assert slow == {}


def test_an_object_with_many_unknown_fields_has_one_error() -> None:
    parser = WITH_BODY[f"POST {PREFIX}/participants"].parser
    assert parser is not None
    body = {f"k{number}": 1 for number in range(MAX_UNKNOWN_FIELDS + 1)}
    error = rejection(parser, json.dumps(body).encode())
    assert [(each.field, each.message) for each in error.errors or ()] == [
        ("body", "has 201 fields, of which more than 200 are unknown")
    ]
    bulk = WITH_BODY[f"POST {PREFIX}/participants/bulk"].parser
    assert bulk is not None
    error = rejection(bulk, json.dumps({"items": [body]}).encode())
    assert [each.field for each in error.errors or ()] == ["items[0]"]


def test_only_a_few_unknown_fields_have_a_suggestion() -> None:
    parser = WITH_BODY[f"POST {PREFIX}/participants"].parser
    assert parser is not None
    body = json.dumps({f"first_name{number}": 1 for number in range(25)}).encode()
    messages = [each.message for each in rejection(parser, body).errors]
    assert ["did you mean first_name?" in each for each in messages] == [True] * 20 + [False] * 5


def test_a_body_with_too_many_values_says_so() -> None:
    parser = WITH_BODY[f"POST {PREFIX}/participants/bulk"].parser
    assert parser is not None
    error = rejection(parser, json.dumps({"items": [1] * (MAX_VALUES + 1)}).encode())
    assert [(each.field, each.message) for each in error.errors or ()] == [("body", "has more than 25,000 values")]


@pytest.mark.parametrize("text", [",", "[", "{", '":', "\\", '\\",', "[\\"])
def test_what_a_text_contains_is_no_value(text: str) -> None:
    class Note(Struct):
        note: str

    note = text * (MAX_SEPARATORS + 1)
    assert BodyParser(Note).parse(json.dumps({"note": note}).encode()) == Note(note)


@pytest.mark.parametrize(
    "values",
    [
        '"\\\\",' * MAX_SEPARATORS + "1,1",
        "[]," * MAX_CONTAINERS + "1",
        '{"a":"\\","},' * (MAX_CONTAINERS + 1) + "1",
        '"",' * (MAX_SEPARATORS + 1) + '""',
    ],
)
def test_values_beside_texts_are_counted(monkeypatch: pytest.MonkeyPatch, values: str) -> None:
    decoded: list[bytes] = []

    class Decoder:
        def decode(self, body: bytes) -> None:
            decoded.append(body)

    parser = BodyParser(Struct)
    monkeypatch.setattr(parser, "_decoder", Decoder())
    error = rejection(parser, f'{{"note":"{"," * MAX_SEPARATORS}","values":[{values}]}}'.encode())
    assert [(each.field, each.message) for each in error.errors or ()] == [("body", "has more than 25,000 values")]
    assert decoded == []


def read(*lines: bytes) -> list[RowError]:
    return [each for each in read_rows(lines, ParticipantImport) if isinstance(each, RowError)]


def test_a_line_of_an_import_with_many_fields_is_rejected_at_once() -> None:
    size = 9_000_000
    line = numbered(size)
    found: list[RowError] = []
    assert cost(lambda: found.extend(read(line.encode()))) / baseline(size) < MAX_COST
    assert found == [RowError(1, "", "has more than 25,000 values")]


def test_lines_with_different_unknown_fields_cost_little_more_than_lines_with_the_same() -> None:
    names = anagrams("exit_reason_subcategory_id", random.Random(1))
    different = [f'{{"{next(names)}": 1}}'.encode() for _ in range(5000)]
    found: list[RowError] = []
    seconds = cost(lambda: found.extend(read(*different)))
    assert len(found) == len(different)
    assert seconds < 3 * cost(lambda: read(*different[:1] * len(different)))


@pytest.mark.parametrize(
    "content, message",
    [
        (b"a," * MAX_COLUMNS + b"a\n", "line 1: has 201 columns; up to 200 are possible"),
        (b"," * 9_000_000 + b"\n", "line 1: has more than 100,000 cells"),
    ],
)
def test_a_header_with_many_columns_is_rejected_before_its_names_are_read(content: bytes, message: str) -> None:
    with pytest.raises(UnreadableFileError, match=message):
        read(content)


def test_a_row_with_many_cells_is_rejected_before_they_are_read() -> None:
    row = b"," * (MAX_CELLS + 1) + b"\n"
    assert read(b"first_name\n", row) == [
        RowError(2, "", "has more than 100,000 cells; the rest of the file was not read")
    ]
