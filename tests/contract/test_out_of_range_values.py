"""Numbers and datetimes for which arithmetic fails, in each field and parameter that takes one: never an error 500."""

import json
import re
from collections.abc import Iterator, Sequence
from copy import deepcopy
from datetime import datetime
from decimal import Decimal
from typing import Any, get_args, get_origin

from msgspec import Struct

from contract.operations import BODIES, OPERATIONS, ids_of
from plankeeper.core.validation import is_struct, known_fields
from plankeeper.http.routing import PREFIX
from support.factories import Tenant
from support.sweeps import sweep

# As JSON. What Python's Decimal takes, and what sums, comparisons or hashes of it reject.
NUMBERS = ('"NaN"', '"sNaN"', '"Infinity"', '"-Infinity"', "1e1000000", "-1e1000000", "1e-1000000", '"1e1000000"')
DATETIMES = ('"0001-01-01T00:00:00+10:00"', '"9999-12-31T23:59:59-10:00"')
# In the calendar in UTC, but not in every time zone in which the console shows them. As filters, they are open ends.
FIRST_AND_LAST = ('"0001-01-01T00:00:00Z"', '"9999-12-31T23:59:59Z"')
VALUES = {Decimal: NUMBERS, datetime: DATETIMES}
LIST_ITEM = 0  # a step of a path
Path = tuple[str | int, ...]


def paths_in(kind: Any, path: Path = ()) -> Iterator[tuple[Path, type]]:
    """Where a type takes a number or a datetime, however deep, and which of the two."""
    if is_struct(kind):
        for name, field in known_fields(kind).items():
            yield from paths_in(field.type, (*path, name))
    elif kind in VALUES:
        yield path, kind
    else:
        assert get_origin(kind) is not dict, f"{path}: add objects with any fields to this sweep"
        inner = (*path, LIST_ITEM) if get_origin(kind) is list else path
        for each in get_args(kind):
            yield from paths_in(each, inner)


def cases(shapes: dict[str, type[Struct] | None]) -> list[tuple[str, Path, type]]:
    return [(name, *found) for name, shape in shapes.items() if shape for found in paths_in(shape)]


BODY_CASES = cases({name: each.body for name, each in OPERATIONS.items()})
QUERY_CASES = cases({name: each.query for name, each in OPERATIONS.items()})


def with_value(document: Any, path: Path, value: Any) -> Any:
    """A body with a value at a path. The last item of a list takes it, or a new one of an empty list."""
    if not path:
        return value
    step, rest = path[0], path[1:]
    if step == LIST_ITEM:
        items: list[Any] = document or [None]
        return [*items[:-1], with_value(items[-1], rest, value)]
    fields: dict[str, Any] = document or {}
    return fields | {str(step): with_value(fields.get(str(step)), rest, value)}


def field_name(path: Path, body: Any) -> str:
    """The name of the field in an error, such as `line_items[0].quantity`."""
    name = ""
    for step in path:
        if step == LIST_ITEM:
            name, body = f"{name}[{len(body) - 1}]", body[-1]
        else:
            name, body = f"{name}.{step}".removeprefix("."), body[step]
    return name


def has_error(errors: Sequence[dict[str, Any]], field: str) -> bool:
    messages = "must be (a number|between the years 1 and 9999|a datetime in the years 2 to 9998)"
    return any(each["field"] == field and re.match(messages, each["message"]) for each in errors)


@sweep("name, path, kind", BODY_CASES)
def test_a_value_of_a_body_that_is_out_of_range_is_rejected(
    tenant: Tenant, name: str, path: Path, kind: type[Decimal | datetime]
) -> None:
    operation = OPERATIONS[name]
    address = operation.path.removeprefix(PREFIX).format(**ids_of(name, tenant.ids))
    for value in (*VALUES[kind], *(FIRST_AND_LAST if kind is datetime else ())):
        body = with_value(deepcopy(BODIES[name]), path, "the value")
        response = tenant.client.request(
            operation.method,
            address,
            content=json.dumps(body).replace('"the value"', value),
            headers={"Content-Type": "application/json"},
        )
        assert response.status_code == 400, (value, response.text)
        assert has_error(response.json()["errors"], field_name(path, body)), (value, response.text)


@sweep("name, path, kind", QUERY_CASES)
def test_a_value_of_a_query_that_is_out_of_range_is_rejected(
    tenant: Tenant, name: str, path: Path, kind: type[Decimal | datetime]
) -> None:
    address = OPERATIONS[name].path.removeprefix(PREFIX).format(**ids_of(name, tenant.ids))
    for value in VALUES[kind]:
        response = tenant.client.get(address, **{str(path[0]): json.loads(value, parse_float=str)})
        assert response.status_code == 400, (value, response.text)
        assert has_error(response.json()["errors"], str(path[0])), (value, response.text)
