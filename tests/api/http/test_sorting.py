"""Sorted lists: the order of values and of missing values, encrypted cursors, and reading pages while others write."""

import base64
import threading
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from typing import Any

import pytest

from support.client import Client
from support.server import RunningServer

NAMES = ["Émile", "Dean", "de Silva", None, "zoe", "Zoe", "dean", "", None, "O’Brien", "Ænima", "a😀", "ab"]
DATES = ["2027-01-31", None, "2026-06-30", "2026-06-30", None, "0001-01-01", "9999-12-31"]
AMOUNTS = [10, None, 9.99, -5, 100000000.01, 10, 0, None]


def walk_values(api: Client, path: str, name: str, **params: Any) -> list[tuple[Any, str]]:
    """The values of a field with the ids, in the order of the pages."""
    values: list[tuple[Any, str]] = []
    after: str | None = "0"
    while after is not None:
        page = api.get(path, after=after, **params).json()
        values += [(each[name], each["id"]) for each in page["data"]]
        after = page["pagination"]["next_cursor"]
    return values


def in_order(rows: list[dict[str, Any]], name: str, *, descending: bool) -> list[tuple[Any, str]]:
    """The expected order: texts without regard to case by code point, missing values last."""
    present = [each for each in rows if each[name] is not None]
    missing = [each for each in rows if each[name] is None]

    def key(each: dict[str, Any]) -> tuple[Any, str]:
        return (each[name].lower() if name == "last_name" else each[name], each["id"])

    ordered = sorted(present, key=key, reverse=descending)
    ordered += sorted(missing, key=lambda each: each["id"], reverse=descending)
    return [(each[name], each["id"]) for each in ordered]


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name, values", [("last_name", NAMES), ("plan_end_date", DATES)])
@pytest.mark.parametrize("filters", [{}, {"status": "Active"}])
def test_participants_are_sorted(
    api: Client, name: str, values: list[str | None], descending: bool, filters: dict[str, str]
) -> None:
    created = api.post("/participants/bulk", {"items": [{name: value} for value in values]})
    assert created.status_code == 200
    rows = api.get("/participants").json()["data"]
    expected = in_order(rows, name, descending=descending)
    sort = f"-{name}" if descending else name
    for limit in (1, 2, 5, 1000):
        assert walk_values(api, "/participants", name, sort=sort, limit=limit, **filters) == expected
    for offset in range(len(values) + 1):
        page = api.get("/participants", sort=sort, offset=offset, limit=3, **filters).json()
        assert [(each[name], each["id"]) for each in page["data"]] == expected[offset : offset + 3]
        assert page["pagination"]["has_more"] == (offset + 3 < len(values))


@pytest.mark.parametrize("descending", [False, True])
@pytest.mark.parametrize("name, values", [("invoice_date", DATES), ("total", AMOUNTS)])
@pytest.mark.parametrize("filters", [{}, {"claim_status": "new"}])
def test_invoices_are_sorted(
    api: Client,
    import_rows: Callable[..., Any],
    name: str,
    values: list[Any],
    descending: bool,
    filters: dict[str, str],
) -> None:
    assert not import_rows(api, "invoices", [{name: value} for value in values]).errors
    expected = in_order(api.get("/invoices").json()["data"], name, descending=descending)
    sort = f"-{name}" if descending else name
    for limit in (1, 3, 1000):
        assert walk_values(api, "/invoices", name, sort=sort, limit=limit, **filters) == expected


def first_cursor(api: Client, **params: Any) -> str:
    return api.get("/participants", after="0", limit=1, **params).json()["pagination"]["next_cursor"]


def after_errors(api: Client, path: str = "/participants", **params: Any) -> list[tuple[str, str]]:
    response = api.get(path, **params)
    assert (response.status_code, response.json()["error"]) == (400, "invalid_request"), response.text
    return [(each["field"], each["message"]) for each in response.json()["errors"]]


OTHER_LIST = ("after", "must be the `next_cursor` of a page of this list with the same sort and filters, or 0")
OTHER_ORDER = ("after", "must be 0, or the `next_cursor` of a page with the same `sort`")


def test_a_cursor_belongs_to_its_list_its_order_and_its_filters(api: Client, other: Client) -> None:
    for number in range(3):
        api.create("/participants", {"last_name": f"Name {number}"})
        other.create("/participants", {"last_name": f"Name {number}"})
    cursor = first_cursor(api, sort="last_name")
    assert api.get("/participants", after=cursor, sort="last_name", limit=1000).status_code == 200
    for params in ({"sort": "-last_name"}, {"sort": "updated_at"}, {"sort": "last_name", "status": "Active"}):
        assert after_errors(api, after=cursor, **params) == [OTHER_LIST]
    assert after_errors(other, after=cursor, sort="last_name") == [OTHER_LIST]
    assert after_errors(api, "/providers", after=first_cursor(api, sort="-id"), sort="-id") == [OTHER_LIST]
    assert after_errors(api, after=cursor) == after_errors(api, after=cursor, sort="id") == [OTHER_ORDER]
    an_id = api.get("/participants").json()["data"][0]["id"]
    assert after_errors(api, after=an_id, sort="last_name") == [OTHER_ORDER]


def test_a_changed_cursor_is_rejected(api: Client) -> None:
    for number in range(2):
        api.create("/participants", {"last_name": f"Name {number}"})
    cursor = first_cursor(api, sort="last_name")
    for position in (*range(2, len(cursor), 7), len(cursor) - 1):
        changed = cursor[:position] + ("A" if cursor[position] != "A" else "B") + cursor[position + 1 :]
        assert after_errors(api, after=changed, sort="last_name") == [OTHER_LIST]
    for wrong in (f"{cursor}AAAA", cursor[:-4]):
        assert after_errors(api, after=wrong, sort="last_name") == [OTHER_LIST]
    [(field, message)] = after_errors(api, after=cursor + "=", sort="last_name")
    assert (field, message) == ("after", "must be 0, a UUID with hyphens or, with `sort`, a `next_cursor`")


def test_a_cursor_does_not_show_the_value(api: Client) -> None:
    for _ in range(2):
        api.create("/participants", {"last_name": "Whitlock-Secret"})
    cursor = first_cursor(api, sort="last_name")
    content = base64.urlsafe_b64decode(cursor.removeprefix("s.") + "==")
    assert b"whitlock" not in content.lower()
    assert first_cursor(api, sort="last_name") != cursor


@pytest.mark.parametrize(
    "params",
    [
        {"sort": "last_name"},
        {"sort": "-id", "status": "Active"},
        {"account_manager": "017a5f00-0000-7000-8000-00000000da7a"},
    ],
)
def test_the_largest_offset_is_an_empty_page(api: Client, params: dict[str, str]) -> None:
    api.create("/participants", {"last_name": "Lee"})
    assert api.get("/participants", offset=2**63 - 1, limit=1000, **params).json()["data"] == []


def test_a_walk_returns_each_row_once_while_others_write(server: RunningServer, api: Client) -> None:
    kept = {api.create("/participants", {"last_name": f"Kept {number % 7}"})["id"] for number in range(40)}
    done = threading.Event()

    def write() -> None:
        client = Client(server.url, api.key, api.plan_manager_id)
        with closing(client.http):
            for number in range(10_000):
                made = client.create("/participants", {"last_name": f"Kept {number % 7}"})["id"]
                assert client.put(f"/participants/{made}", {"last_name": f"A {number}"}).status_code == 200
                assert client.delete(f"/participants/{made}").status_code == 200
                if done.is_set():
                    return

    with ThreadPoolExecutor(1) as pool:
        writing = pool.submit(write)
        try:
            for sort in ("last_name", "-last_name", "plan_end_date", "-id"):
                found = [id_ for _, id_ in walk_values(api, "/participants", "last_name", sort=sort, limit=3)]
                assert sorted(each for each in found if each in kept) == sorted(kept)
        finally:
            done.set()
        writing.result()
