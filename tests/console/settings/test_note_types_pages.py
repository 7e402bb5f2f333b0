"""Note types and account managers."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest
from msgspec import Struct

from plankeeper.console.components.labels import parse_color
from plankeeper.resources.note_types import store
from plankeeper.resources.note_types.schemas import NoteType, NoteTypeListQuery
from support.console import Account, Browser
from support.server import RunningServer

NOTE_TYPES = "/console/note-types"
SCRIPT = "<script>alert(1)</script>"


class EventRow(Struct):
    """An event as it is stored."""

    type: str
    actor_kind: str
    actor_name: str | None


@pytest.fixture
def recorded_events(server: RunningServer, plan_manager_id: UUID) -> Callable[[str], list[EventRow]]:
    """The events of a kind of resource."""
    statement = """
        select type, actor_kind, actor_name from events where plan_manager_id = $1 and resource_kind = $2 order by id
    """
    return lambda kind: server.run(server.db.rows(EventRow, statement, plan_manager_id, kind))


@pytest.fixture
def stored_note_types(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[NoteType]]:
    return lambda: server.run(store.list_page(server.db, plan_manager_id, NoteTypeListQuery(limit=1000)))


@pytest.fixture
def note_type(owner: Browser, stored_note_types: Callable[[], list[NoteType]]) -> NoteType:
    form = {"note_type": "Call", "badge_color": "teal", "highlight_color": "#0b7285"}
    assert owner.submit(NOTE_TYPES, form).status_code == 303
    return stored_note_types()[0]


def version_token(browser: Browser, path: str) -> str:
    match = re.search(r'name="was" value="([^"]+)"', browser.get(path).text)
    assert match, path
    return match[1]


@pytest.mark.parametrize(
    "text, expected",
    [
        ("#0b7285", "#0b7285"), ("#ABC", "#aabbcc"), ("#abcd", "#aabbccdd"), ("#11223344", "#11223344"),
        (" Teal ", "#008080"), ("RebeccaPurple", "#663399"), ("rgb(1, 2, 3)", "#010203"), ("transparent", "#00000000"),
        ("rgb(1 2 3 / 50%)", "#01020380"), ("rgba(100%, 0%, 0%, 0.5)", "#ff000080"), ("rgb(300,-5,0)", "#ff0000"),
        ("hsl(120, 100%, 25%)", "#008000"), ("hsl(-240deg 100% 25%)", "#008000"), ("hsla(0,0%,100%,1)", "#ffffff"),
        ("rgb(1e9,1,1)", "#ff0101"), ("rgb(99999999,1,1)", "#ff0101"), ("hwb(120 10% 20%)", "#1acc1a"),
    ],
)  # fmt: skip
def test_a_colour_is_rendered_with_a_normalized_value(text: str, expected: str) -> None:
    assert parse_color(text) == expected


@pytest.mark.parametrize(
    "text",
    [
        None, "", "#12", "#12345", "#1234567", "#ggg", "rgb()", "rgb(1,2)", "rgb(1,2,3,4,5)", "rgb(1,2,x)", "url(#a)",
        "rgb(var(--a),2,3)", "red;background:url(//evil.example)", '"/><script>alert(1)</script>', "currentcolor",
        "lab(50% 40 59)", "color()", "hsl(1%,1%,1%)", "inherit", "ｒｅｄ", "rgb(١,٢,٣)", "#" + "a" * 254, "rgb(1/2/3)",
        "color(display-p3 1 0 0)", "notacolour",
    ],
)  # fmt: skip
def test_an_invalid_colour_is_not_rendered(text: str | None) -> None:
    assert parse_color(text) is None


def test_note_types_are_created_shown_with_their_colours_and_deleted(
    owner: Browser, stored_note_types: Callable[[], list[NoteType]], recorded_events: Callable[[str], list[EventRow]]
) -> None:
    assert "There are no note types yet." in owner.get(NOTE_TYPES).text
    colors = {"badge_color": "RGB(1,2,3)", "highlight_color": '"/><script>alert(2)</script>'}
    response = owner.submit(NOTE_TYPES, {"note_type": SCRIPT} | colors)
    assert response.headers["location"] == NOTE_TYPES
    (made,) = stored_note_types()
    assert (made.note_type, made.badge_color, made.highlight_color) == (SCRIPT, *colors.values())
    paths = (NOTE_TYPES, f"{NOTE_TYPES}/{made.id}/edit", f"{NOTE_TYPES}/{made.id}/delete")
    for path in paths:
        page = owner.get(path).text
        assert ("<script>alert" in page, "&lt;script&gt;alert(1)&lt;/script&gt;" in page) == (False, True), path
    listed = owner.get(NOTE_TYPES).text
    assert re.findall(r' fill="([^"]*)"', listed) == ["#010203", "none"]
    assert ("RGB(1,2,3)" in listed, "style=" in listed) == (True, False)
    assert len(stored_note_types()) == 1
    assert owner.submit(paths[2]).headers["location"] == NOTE_TYPES
    assert stored_note_types() == []
    assert {each.actor_kind for each in recorded_events("note_type")} == {"user"}
    assert [each.type for each in recorded_events("note_type")] == ["note_type.created", "note_type.deleted"]


def test_a_note_type_is_edited_only_from_its_current_version(
    owner: Browser,
    note_type: NoteType,
    stored_note_types: Callable[[], list[NoteType]],
    recorded_events: Callable[[str], list[EventRow]],
) -> None:
    path = f"{NOTE_TYPES}/{note_type.id}/edit"
    seen = version_token(owner, path)
    form = {"note_type": "Phone", "badge_color": "", "highlight_color": "red", "was": seen}
    assert owner.submit(path, form).headers["location"] == NOTE_TYPES
    (changed,) = stored_note_types()
    assert (changed.note_type, changed.badge_color, changed.highlight_color) == ("Phone", None, "red")
    late = owner.submit(path, form | {"note_type": "Late"})
    assert (late.status_code, "Someone else changed this" in late.text) == (409, True)
    assert ('value="Late"' in late.text, "<li>Note type: Phone" in late.text) == (True, True)
    assert owner.submit(path, form | {"was": ""}).status_code == 409
    assert stored_note_types() == [changed]
    assert owner.submit(path, form | {"note_type": "Late", "was": version_token(owner, path)}).status_code == 303
    assert [each.type for each in recorded_events("note_type")] == [
        "note_type.created",
        "note_type.updated",
        "note_type.updated",
    ]


@pytest.mark.parametrize(
    "wrong, label",
    [
        ({"note_type": ""}, "Note type must"),
        ({"note_type": "x" * 256}, "Note type must"),
        ({"badge_color": "x" * 256}, "Badge colour must"),
        ({"highlight_color": "x" * 256}, "Highlight colour must"),
    ],
)
def test_an_invalid_note_type_shows_the_form_again(
    owner: Browser,
    note_type: NoteType,
    stored_note_types: Callable[[], list[NoteType]],
    wrong: dict[str, str],
    label: str,
) -> None:
    form = {"note_type": "Visit", "badge_color": "tan", "highlight_color": "red"} | wrong
    path = f"{NOTE_TYPES}/{note_type.id}/edit"
    for to, more in ((NOTE_TYPES, {}), (path, {"was": version_token(owner, path)})):
        response = owner.submit(to, form | more)
        assert (response.status_code, label in response.text) == (422, True)
        assert 'aria-invalid="true"' in response.text
    assert stored_note_types() == [note_type]


@pytest.mark.usefixtures("note_type")
def test_a_viewer_sees_no_links_to_changes(
    new_browser: Callable[..., Browser], new_account: Callable[..., Account]
) -> None:
    page = new_browser(new_account("viewer")).get(NOTE_TYPES).text
    assert ("Call" in page, "/edit" in page, "/delete" in page, "/new" in page) == (True, False, False, False)


def test_an_unknown_note_type_is_not_found(
    owner: Browser, note_type: NoteType, stored_note_types: Callable[[], list[NoteType]]
) -> None:
    for number in ("0", "x", "9" * 18, "9" * 19, "-1", "²"):
        for step in ("edit", "delete"):
            assert owner.get(f"{NOTE_TYPES}/{number}/{step}").status_code == 404
            assert owner.submit(f"{NOTE_TYPES}/{number}/{step}", {"note_type": "Mine"}).status_code == 404
    assert stored_note_types() == [note_type]


def test_note_types_are_paginated(server: RunningServer, owner: Browser, plan_manager_id: UUID) -> None:
    async def fill() -> None:
        async with server.db.transaction() as tx:
            ids = await store.next_ids(tx, 60)
            rows: list[Any] = [f'{{"id": {each}, "note_type": "Kind {at:02}"}}' for at, each in enumerate(ids)]
            await store.upsert(tx, plan_manager_id, f"[{','.join(rows)}]")

    server.run(fill())
    first = owner.get(NOTE_TYPES).text
    following = re.search(r'href="([^"]+)" rel="next"', first)
    assert following
    second = owner.get(unescape(following[1])).text
    assert [re.findall(r">(Kind \d\d)<", page) for page in (first, second)] == [
        [f"Kind {each:02}" for each in range(50)],
        [f"Kind {each:02}" for each in range(50, 60)],
    ]
    assert "First page" in second
    assert owner.get(f"{NOTE_TYPES}?after=x").status_code == 404
