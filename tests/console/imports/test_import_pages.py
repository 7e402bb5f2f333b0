"""Imports: the check, what it shows, the import itself."""

import asyncio
import codecs
import io
import re
import threading
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html import unescape
from typing import Any
from uuid import UUID

import httpx
import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from plankeeper.console.imports import runs
from plankeeper.console.imports.columns import IMPORT_KINDS
from plankeeper.imports import file_store as files
from plankeeper.imports.reader import read_rows
from plankeeper.imports.writer import csv_template
from plankeeper.resources.registry import RESOURCES
from plankeeper.resources.upsert import RowError
from support.client import Client
from support.console import Account, Browser
from support.imports import confirm, counts, import_path, rows, upload
from support.server import RunningServer, wait_until

PAGE = "/console/imports"
HEAD = "id,first_name,last_name,state\n"
ADA, BEN, CY = (str(uuid7()) for _ in range(3))
PARTICIPANTS = f"{HEAD}{ADA},Ada,Lindqvist,NSW\n{BEN},Ben,Okafor,VIC\n".encode()
SCRIPT = "<script>alert(1)</script>"


class EventRow(Struct):
    """An event as it is stored."""

    type: str
    actor_kind: str
    resource_id: str
    notify: bool


@pytest.fixture
def recorded_events(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[EventRow]]:
    """All events but those of accounts."""
    statement = """
        select type, actor_kind, resource_id, notify from events
        where plan_manager_id = $1 and resource_kind not like '%account' and resource_kind <> 'session' order by id
    """

    def fetch() -> list[EventRow]:
        rows = server.run(server.db.rows(EventRow, statement, plan_manager_id))
        return [each for each in rows if each.type.partition(".")[0] in ("participant", "note_type", "exit_reason")]

    return fetch


@pytest.fixture
def stored_files(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[str]]:
    """The names of the files that wait."""
    statement = "select name from import_files where plan_manager_id = $1 order by id"
    return lambda: server.run(server.db.rows(str, statement, plan_manager_id))


def test_rows_with_errors_are_skipped(
    owner: Browser, recorded_events: Callable[[], list[EventRow]], stored_files: Callable[[], list[str]]
) -> None:
    content = f"first_name,state,date_of_birth\nAda,XX,31/2/1990\nBen,NSW\n{SCRIPT},NSW,1,2\n".encode()
    response = upload(owner, content)
    assert counts(response) == {"Rows": 3, "New": 1, "Errors": 2}
    assert rows(response) == [
        (
            "Line 2 Ada Error Date of birth “31/2/1990”: 31 Feb 1990 doesn’t exist"
            " State “XX”: must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA"
        ),
        "Line 3 Ben New First name Ben State NSW Status Active",
        f"Line 4 {SCRIPT} Error has 4 cells, but the header has 3",
    ]
    assert (stored_files(), recorded_events()) == (["people.csv"], [])
    assert "Import 1 row, skip 2" in response.text
    done = confirm(owner, import_path(response))
    assert counts(done) == {"Rows": 3, "New": 1, "Errors": 2}
    assert [each.type for each in recorded_events()] == ["participant.created"]


def test_a_file_is_imported_once(
    owner: Browser, recorded_events: Callable[[], list[EventRow]], stored_files: Callable[[], list[str]]
) -> None:
    response = upload(owner, PARTICIPANTS)
    path = import_path(response)
    assert (counts(response), stored_files(), recorded_events()) == ({"Rows": 2, "New": 2}, ["people.csv"], [])
    done = confirm(owner, path)
    assert (done.status_code, "2 rows imported." in done.text, counts(done)) == (200, True, {"Rows": 2, "New": 2})
    assert stored_files() == []
    assert recorded_events() == [EventRow("participant.created", "user", each, notify=False) for each in (ADA, BEN)]
    assert owner.submit(path).status_code == 404
    assert owner.get(path).status_code == 200
    assert len(recorded_events()) == 2


def test_changes_are_shown_before_and_after(owner: Browser, recorded_events: Callable[[], list[EventRow]]) -> None:
    assert confirm(owner, import_path(upload(owner, PARTICIPANTS))).status_code == 200
    formula = '=HYPERLINK(""http://evil.example"")'
    content = f'{HEAD}{ADA},Ada,"{formula}",QLD\n{BEN},Ben,Okafor,VIC\n{CY},{SCRIPT},,\n'.encode()
    response = upload(owner, content)
    assert counts(response) == {"Rows": 3, "New": 1, "Changed": 1, "Unchanged": 1}
    name = formula.replace('""', '"')
    assert rows(response)[:2] == [
        f"Line 2 Ada Lindqvist Changed Last name Lindqvist → {name} State NSW → QLD",
        "Line 3 Ben Okafor Unchanged",
    ]
    assert SCRIPT not in response.text
    assert len(recorded_events()) == 2
    done = confirm(owner, import_path(response), {"notify": "yes"})
    assert counts(done) == {"Rows": 3, "New": 1, "Changed": 1, "Unchanged": 1}
    assert sorted((each.type, each.notify) for each in recorded_events()[2:]) == [
        ("participant.created", True), ("participant.updated", True),
    ]  # fmt: skip
    again = upload(owner, content)
    assert ("all records are up to date" in again.text, "<button>Import" in again.text) == (True, False)


def test_stored_scripts_are_shown_as_text(owner: Browser) -> None:
    content = f"{HEAD}{ADA},{SCRIPT},x,NSW\n".encode()
    assert confirm(owner, import_path(upload(owner, content, name=f"{SCRIPT}.csv"))).status_code == 200
    response = upload(owner, f"{HEAD}{ADA},{SCRIPT},{SCRIPT},NSW\n".encode(), name=f'..\\a/"{SCRIPT}.csv')
    assert (SCRIPT in response.text, "&lt;script&gt;alert(1)&lt;/script&gt;" in response.text) == (False, True)
    doubtful = upload(owner, f"participant_number\n{SCRIPT}\n".encode())
    assert (SCRIPT in doubtful.text, "should have 9 digits" in doubtful.text) == (False, True)
    wrong = upload(owner, f"{SCRIPT}\n{SCRIPT}\n".encode())
    assert (wrong.status_code, SCRIPT in wrong.text, "Don’t import" in wrong.text) == (200, False, True)
    json = b'{"%s": 1, "state": "%s"}\n' % (SCRIPT.encode(), SCRIPT.encode())
    response = upload(owner, json, "participants")
    assert (response.status_code, SCRIPT in response.text, "is unknown" in response.text) == (200, False, True)


@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF8 + PARTICIPANTS,
        PARTICIPANTS.replace(b"\n", b"\r\n"),
        codecs.BOM_UTF8 + PARTICIPANTS.replace(b"\n", b"\r\n").rstrip(),
        PARTICIPANTS.replace(b"\n", b"\r"),
        f'{{"id": "{ADA}", "first_name": "Ada"}}\n{{"id": "{BEN}", "first_name": "Ben"}}\n'.encode(),
    ],
    ids=["BOM", "CRLF", "BOM and CRLF", "CR", "JSON Lines"],
)
def test_files_from_other_programs_are_accepted(owner: Browser, content: bytes) -> None:
    response = upload(owner, content, "participants")
    assert counts(response) == {"Rows": 2, "New": 2}
    assert counts(confirm(owner, import_path(response))) == {"Rows": 2, "New": 2}


@pytest.mark.parametrize(
    "content, message",
    [
        (b"", "File is empty"),
        (codecs.BOM_UTF8 + b" \r\n\r\n", "File is empty"),
        (PARTICIPANTS.decode().encode("utf-16"), "File is encoded in UTF-16: save it as CSV UTF-8"),
        (b"PK\x03\x04rest", "File is a spreadsheet: save it as CSV UTF-8"),
        (b'"first_name\n1\n', "line 1: not valid CSV"),
        (b"a," * 200 + b"a\n1\n", "has 201 columns; up to 200 are possible"),
        (b"first_name\n" + b"x\n" * 60_000, "has more than 60,000 lines: split it, or ask your IT administrator"),
        (b"first_name\r" + b"\xff\r" * 60_000, "has more than 60,000 lines"),
    ],
)  # fmt: skip
def test_an_unreadable_file_shows_the_form_again(
    owner: Browser, stored_files: Callable[[], list[str]], content: bytes, message: str
) -> None:
    response = upload(owner, content, "participants")
    assert (response.status_code, message in unescape(response.text)) == (422, True), response.text
    assert '<option value="participants" selected>' in response.text
    assert stored_files() == []


def test_encoding_errors_name_their_line(owner: Browser) -> None:
    latin = upload(owner, "first_name,last_name\nAda,x\nZo\xeb,y\n".encode("latin-1"))
    assert rows(latin)[1] == "Line 3 Zo\ufffd y Error First name “Zo\ufffd”: is not UTF-8"
    nul = upload(owner, b"first_name\na\0b\n")
    assert rows(nul) == ["Line 2 a\ufffdb Error First name “a\ufffdb”: must not contain the character U+0000"]
    header = upload(owner, HEAD.encode())
    assert ("no lines after the header" in header.text, header.status_code) == (True, 200)


def test_many_rows_are_shown_on_several_pages(owner: Browser) -> None:
    response = upload(owner, b"state\n" + b"XX\n" * 1234, "participants")
    assert counts(response) == {"Rows": 1234, "Errors": 1234}
    assert len(rows(response)) == 50
    assert len(response.content) < 80_000
    path = import_path(response)
    second = owner.get(path, params={"after": "51", "show": "rejected"})
    assert rows(second)[0].startswith("Line 52 ")
    assert 'rel="next"' in second.text
    last = owner.get(path, params={"after": "1234"})
    assert ([each[:10] for each in rows(last)], 'rel="next"' in last.text) == (["Line 1,235"], False)


def test_long_values_make_a_page_shorter(owner: Browser) -> None:
    ids = [str(uuid7()) for _ in range(70)]
    before = "".join(f"{each},A{at:02},{'x' * 255},NSW\n" for at, each in enumerate(ids))
    assert confirm(owner, import_path(upload(owner, (HEAD + before).encode()))).status_code == 200
    response = upload(owner, (HEAD + before.replace("xxx", "&&&")).encode())
    assert counts(response) == {"Rows": 70, "Changed": 70}
    assert 20 < len(rows(response)) < 50
    assert len(response.content) < 80_000


@pytest.mark.parametrize("resource", IMPORT_KINDS)
def test_each_resource_has_a_template_file(owner: Browser, resource: str) -> None:
    assert f'href="{PAGE}/templates/{resource}.csv"' in owner.get(f"{PAGE}/new").text
    response = owner.get(f"{PAGE}/templates/{resource}.csv")
    assert response.headers["content-type"] == "text/csv; charset=utf-8"
    assert response.headers["content-disposition"] == f'attachment; filename="{resource}.csv"'
    assert response.content == csv_template(resource).encode()
    lines = list(read_rows(io.BytesIO(response.content), RESOURCES[resource].import_schema))
    assert (len(lines), [each for each in lines if isinstance(each, RowError)]) == (1, [])
    if resource in ("plans", "team-members", "notes"):  # which belong to somebody
        participant = upload(owner, b"participant_number\n430000001\n", "participants")
        assert confirm(owner, import_path(participant)).status_code == 200
    if resource == "notes":
        assert confirm(owner, import_path(upload(owner, b"note_type\nPhone call\n", "note-types"))).status_code == 200
    check = upload(owner, response.content)  # the kind is guessed
    done = counts(confirm(owner, import_path(check)))
    assert (done["Rows"], done["New"]) == (1, 1)


def test_resources_without_import_have_no_template_file(owner: Browser) -> None:
    for name in ("invoice-view-sessions.csv", "participants", "participants.txt", ".csv", "x.csv", "%2e%2e.csv"):
        assert owner.get(f"{PAGE}/templates/{name}").status_code == 404
    for resource in ("invoice-view-sessions", "x"):
        response = upload(owner, PARTICIPANTS, resource)
        assert (response.status_code, "Record type must be one of the options" in response.text) == (422, True)
    form = {"csrf": owner.csrf(), "resource": "participants"}
    for files_ in ({"file": ("", b"")}, {"other": (None, b"x")}):
        response = owner.http.post(PAGE, data=form, files=files_, headers={"Origin": owner.url})
        assert (response.status_code, "File is required" in response.text) == (422, True)
    assert owner.submit(PAGE, form).status_code == 422


def test_note_types_can_be_imported_only_with_existing_ids(server: RunningServer, owner: Browser) -> None:
    last = "select last_value from note_type_ids"
    before = server.run(server.db.one(int, last))
    response = upload(owner, f"id,note_type\n{2**52},Call\n,Visit\n".encode(), "note-types")
    assert rows(response) == [
        f"Line 2 Call Error ID “{2**52}”: must be the id of a note type, or empty for a new one",
        "Line 3 Visit New Note type Visit",
    ]
    assert server.run(server.db.one(int, last)) < before + 1000
    done = confirm(owner, import_path(upload(owner, b"note_type\nCall\n")))
    assert counts(done) == {"Rows": 1, "New": 1}
    listed = re.search(r"/console/note-types/(\d+)/edit", owner.get("/console/note-types").text)
    assert listed
    content = f"id,note_type,badge_color\n{listed[1]},Call,red\n".encode()
    assert rows(upload(owner, content)) == ["Line 2 Call Changed Badge colour — → red"]


def test_an_unknown_reference_is_an_error_of_its_line(
    owner: Browser, recorded_events: Callable[[], list[EventRow]]
) -> None:
    content = f"name,parent_id\nMoved,\nAbroad,{uuid7()}\n".encode()
    response = upload(owner, content, "exit-reasons")
    assert [each.partition("must")[2] for each in rows(response)] == [
        "", " be the id of an exit reason of this file or of this plan manager",
    ]  # fmt: skip
    assert recorded_events() == []


def test_a_file_that_became_invalid_is_not_imported(
    server: RunningServer, owner: Browser, recorded_events: Callable[[], list[EventRow]], plan_manager_id: UUID
) -> None:
    reason = str(uuid7())
    reasons = upload(owner, f"id,name\n{reason},Moved\n".encode(), "exit-reasons")
    assert confirm(owner, import_path(reasons)).status_code == 200
    path = import_path(upload(owner, f"first_name,exit_reason_category_id\nAda,\nBen,{reason}\n".encode()))
    remove = "delete from exit_reasons where plan_manager_id = $1"
    server.execute_as_owner(remove, plan_manager_id)
    response = confirm(owner, path)
    assert "Nothing was imported, because other data has changed" in response.text
    assert counts(response) == {"Rows": 2, "New": 1, "Errors": 1}
    assert [each.type for each in recorded_events()] == ["exit_reason.created"]
    assert counts(confirm(owner, path)) == {"Rows": 2, "New": 1, "Errors": 1}


def test_a_change_that_the_check_did_not_show_is_not_imported(owner: Browser, client: Client) -> None:
    ada = client.create(
        "/participants", {"first_name": "Ada", "email": "ada@example.com", "phone_number": "0491570006"}
    )
    content = f"id,email,phone_number\n{ada['id']},ada@example.com,0491570156\n,bo@example.com,\n".encode()
    check = upload(owner, content, "participants")
    assert rows(check)[0] == "Line 2 Ada Changed Phone 0491570006 → 0491570156"
    path = f"/participants/{ada['id']}"
    client.put(path, {"email": "new@example.com"}).raise_for_status()
    response = confirm(owner, import_path(check))
    assert "Nothing was imported, because other data has changed" in response.text
    assert "new@example.com → ada@example.com" in rows(response)[0]
    after = client.get(path).json()
    assert (after["email"], after["phone_number"]) == ("new@example.com", "0491570006")
    client.put(path, {"city": "Perth"}).raise_for_status()  # which the file doesn't have
    assert confirm(owner, import_path(check)).status_code == 200
    assert client.get(path).json()["email"] == "ada@example.com"


def test_a_new_record_of_another_parent_is_not_imported(owner: Browser, client: Client) -> None:
    ada, ben = (client.create("/participants", {"first_name": each})["id"] for each in ("Ada", "Ben"))
    client.put(f"/participants/{ada}", {"participant_number": "430205409"}).raise_for_status()
    plans = b"participant_number,start_date,end_date\n430205409,2026-07-01,2027-06-30\n"
    path = import_path(upload(owner, plans, "plans"))
    for id_, number in ((ada, None), (ben, "430205409")):
        client.put(f"/participants/{id_}", {"participant_number": number}).raise_for_status()
    assert "Nothing was imported" in confirm(owner, path).text
    assert client.get(f"/participants/{ben}/plans").json()["data"] == []
    assert counts(confirm(owner, path)) == {"Rows": 1, "New": 1}
    assert len(client.get(f"/participants/{ben}/plans").json()["data"]) == 1


def test_only_a_manager_imports(
    owner: Browser, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    stored_files: Callable[[], list[str]], recorded_events: Callable[[], list[EventRow]],
) -> None:  # fmt: skip
    path = import_path(upload(owner, PARTICIPANTS))
    viewer, nobody = new_browser(new_account("viewer")), new_browser()
    assert PAGE not in viewer.get("/console/activity").text
    assert {
        viewer.get(each).status_code for each in (PAGE, f"{PAGE}/new", f"{PAGE}/templates/participants.csv", path)
    } == {403}
    assert (upload(viewer, PARTICIPANTS).status_code, viewer.submit(path).status_code) == (403, 403)
    sent = {"data": {"csrf": nobody.csrf("/console/sign-in")}, "headers": {"Origin": nobody.url}}
    response = nobody.http.post(PAGE, files={"file": ("a.csv", PARTICIPANTS)}, **sent)
    assert (response.status_code, response.headers["location"].partition("?")[0]) == (303, "/console/sign-in")
    # What they send is not even read.
    assert upload(viewer, b"x" * (11 * 2**20)).status_code == 403
    assert (stored_files(), recorded_events()) == (["people.csv"], [])


def test_a_file_belongs_to_its_sender_and_plan_manager(
    owner: Browser, new_plan_manager: Callable[[], UUID], new_browser: Callable[..., Browser],
    new_account: Callable[..., Account], recorded_events: Callable[[], list[EventRow]],
) -> None:  # fmt: skip
    path = import_path(upload(owner, PARTICIPANTS))
    colleague, other = new_browser(new_account("owner")), new_browser(new_account("owner", new_plan_manager()))
    for browser in (colleague, other):
        assert (browser.get(path).status_code, browser.submit(path).status_code) == (404, 404)
    assert recorded_events() == []
    assert counts(confirm(owner, path)) == {"Rows": 2, "New": 2}


def test_a_file_is_kept_for_an_hour_and_only_a_few_per_account(
    server: RunningServer, owner: Browser, stored_files: Callable[[], list[str]], plan_manager_id: UUID
) -> None:
    paths = [import_path(upload(owner, PARTICIPANTS, name=f"{at}.csv")) for at in range(6)]
    assert stored_files() == ["2.csv", "3.csv", "4.csv", "5.csv"]
    assert owner.submit(paths[0]).status_code == 404
    age = (
        "update import_files set created_at = created_at - interval '61 minutes' where plan_manager_id = $1 and id = $2"
    )
    for statement in (age, age.replace("import_files", "imports")):
        server.execute_as_owner(statement, plan_manager_id, UUID(paths[5].rpartition("/")[2]))
    assert (owner.get(paths[5]).status_code, owner.submit(paths[5]).status_code) == (404, 404)
    wait_until(lambda: stored_files() == ["2.csv", "3.csv", "4.csv"])  # a chore removes it
    assert confirm(owner, paths[4]).status_code == 200


def test_concurrent_imports_of_a_file_run_once(owner: Browser, recorded_events: Callable[[], list[EventRow]]) -> None:
    content = HEAD + "".join(f"{uuid7()},Ada,x,NSW\n" for _ in range(500))
    path, form = import_path(upload(owner, content.encode())), {"csrf": owner.csrf()}
    headers = {"Origin": owner.url, "Cookie": "; ".join(f"{k}={v}" for k, v in owner.http.cookies.items())}

    def send(_number: int) -> int:
        return httpx.post(owner.url + path, data=form, headers=headers, timeout=30, trust_env=False).status_code

    with closing(owner.http), ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(send, range(4)))
    assert found[0] == 303
    assert set(found[1:]) <= {404, 409}
    assert len(recorded_events()) == 500


def test_a_blocked_import_is_reported_and_can_be_retried(
    server: RunningServer, owner: Browser, plan_manager_id: UUID
) -> None:
    path = import_path(upload(owner, PARTICIPANTS))
    free, taken = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        async with server.db.transaction() as tx:
            assert await files.try_lock_import(tx, plan_manager_id)
            taken.set()
            await free.wait()

    async def begin() -> "asyncio.Task[None]":
        task = asyncio.create_task(hold())
        await taken.wait()
        return task

    async def end(task: "asyncio.Task[None]") -> None:
        free.set()
        await task

    task = server.run(begin())
    for response in (owner.submit(path), upload(owner, PARTICIPANTS)):
        assert (response.status_code, "Another import" in response.text) == (409, True)
    assert "Another import is running" in owner.submit(path).text
    server.run(end(task))
    assert counts(confirm(owner, path)) == {"Rows": 2, "New": 2}


def test_an_import_that_takes_too_long_is_cancelled(
    owner: Browser, recorded_events: Callable[[], list[EventRow]], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (HEAD + "".join(f"{uuid7()},Ada,x,NSW\n" for _ in range(3000))).encode()
    path = import_path(upload(owner, content))
    for seconds in (0.0, 0.0015, 0.05):  # a timer can end before the clock says so
        monkeypatch.setattr(runs, "MAX_SECONDS", seconds)
        for response in (owner.submit(path), upload(owner, content)):
            assert (response.status_code, "run plankeeper import" in response.text) == (422, True)
    assert recorded_events() == []
    monkeypatch.undo()
    assert counts(confirm(owner, path)) == {"Rows": 3000, "New": 3000}


def test_a_worker_limits_concurrent_imports(
    owner: Browser,
    new_plan_manager: Callable[[], UUID],
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    path = import_path(upload(owner, PARTICIPANTS))
    others = [new_browser(new_account("owner", new_plan_manager())) for _ in range(2)]
    started, resume, import_file = threading.Semaphore(0), threading.Event(), runs.import_mapped

    async def paused_import(*args: Any, **options: Any) -> AsyncIterator[Any]:
        started.release()
        await asyncio.to_thread(resume.wait, 20)
        async for each in import_file(*args, **options):
            yield each

    monkeypatch.setattr(runs, "import_mapped", paused_import)
    with ThreadPoolExecutor(2) as pool:
        running = [pool.submit(upload, each, PARTICIPANTS) for each in others]
        try:
            assert all(started.acquire(timeout=10) for _ in others)
            assert (upload(owner, PARTICIPANTS).status_code, owner.submit(path).status_code) == (503, 503)
        finally:
            resume.set()
        assert [each.result().status_code for each in running] == [200, 200]
    assert confirm(owner, path).status_code == 200


def test_a_file_has_at_most_ten_mebibytes(owner: Browser, stored_files: Callable[[], list[str]]) -> None:
    line = b"first_name,note\n"
    response = upload(owner, line + b"x" * (10 * 2**20 - len(line)))
    assert (response.status_code, "First name" in response.text) == (200, True)
    for size in (10 * 2**20 + 300_000, 30 * 2**20):
        response = upload(owner, b"x" * size)
        assert (response.status_code, "larger than 10 MiB" in response.text) == (413, True)
    assert stored_files() == ["people.csv"]


def multipart(*parts: bytes) -> bytes:
    return b"".join(b"--b\r\n" + each + b"\r\n" for each in parts) + b"--b--\r\n"


def part(name: bytes, content: bytes = b"x", more: bytes = b"") -> bytes:
    return b'Content-Disposition: form-data; name="' + name + b'"' + more + b"\r\n\r\n" + content


@pytest.mark.parametrize(
    "body, kind, status",
    [
        (multipart(part(b"a"))[:-4], b"multipart/form-data; boundary=b", 400),
        (multipart(part(b"a")), b"multipart/form-data", 400),
        (multipart(part(b"a")), b"multipart/form-data; boundary=" + b"b" * 300, 400),
        (b"--b\r\nrubbish", b"multipart/form-data; boundary=b", 400),
        (b"", b"multipart/form-data; boundary=b", 400),
        (multipart(part(b"a", b"\xff")), b"multipart/form-data; boundary=b", 403),
        (multipart(part(b"a", b"\0")), b"multipart/form-data; boundary=b", 400),
        (multipart(*[part(b"a")] * 51), b"multipart/form-data; boundary=b", 400),
        (multipart(b"X: " + b"x" * 5000 + b"\r\n\r\n"), b"multipart/form-data; boundary=b", 400),
        (multipart(part(b"a", b"x" * 300_000)), b"multipart/form-data; boundary=b", 413),
        (multipart(part(b"a")), b"multipart/form-data; boundary=b", 403),
    ],
)  # fmt: skip
def test_a_malformed_form_body_does_nothing(owner: Browser, body: bytes, kind: bytes, status: int) -> None:
    headers: Any = {"Origin": owner.url, "Content-Type": kind}
    assert owner.http.post(PAGE, content=body, headers=headers).status_code == status


def test_only_the_import_form_accepts_files(owner: Browser) -> None:
    form = {"csrf": owner.csrf(), "note_type": "Call"}
    headers = {"Origin": owner.url}
    response = owner.http.post("/console/note-types", data=form, files={"file": ("a", b"x")}, headers=headers)
    assert response.status_code == 415
    forged = owner.http.post(
        PAGE, data={"csrf": "wrong", "resource": "participants"}, files={"file": ("a", PARTICIPANTS)}, headers=headers
    )
    assert forged.status_code == 403
