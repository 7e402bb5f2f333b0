"""Import: the check, what it shows, the import itself."""

import asyncio
import codecs
import io
import re
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from html import unescape
from typing import Any
from uuid import UUID

import httpx
import pytest
from msgspec import Struct
from uuid_utils.compat import uuid7

from console.people import Browser, Person
from plankeeper.console.pages import import_preview
from plankeeper.console.pages.imports import IMPORT_KINDS
from plankeeper.import_export.csv_templates import csv_template
from plankeeper.import_export.reader import RowError, read_rows
from plankeeper.import_export.registry import RESOURCES
from plankeeper.import_files import store as files
from support.server import RunningServer, wait_until

HERE = "/console/import"
HEAD = "id,first_name,last_name,state\n"
ADA, BEN, CY = (str(uuid7()) for _ in range(3))
PEOPLE = f"{HEAD}{ADA},Ada,Lindqvist,NSW\n{BEN},Ben,Okafor,VIC\n".encode()
SCRIPT = "<script>alert(1)</script>"


class Told(Struct):
    """An event, as it is kept."""

    type: str
    actor_kind: str
    resource_id: str
    notify: bool


@pytest.fixture
def told(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[Told]]:
    """All events but those of accounts."""
    statement = """
        select type, actor_kind, resource_id, notify from events
        where plan_manager_id = $1 and resource_kind not like '%account' and resource_kind <> 'session' order by id
    """

    def work() -> list[Told]:
        found = server.run(server.db.rows(Told, statement, plan_manager_id))
        return [each for each in found if each.type.partition(".")[0] in ("participant", "note_type", "exit_reason")]

    return work


@pytest.fixture
def waiting(server: RunningServer, plan_manager_id: UUID) -> Callable[[], list[str]]:
    """The names of the files that wait."""
    statement = "select name from import_files where plan_manager_id = $1 order by id"
    return lambda: server.run(server.db.rows(str, statement, plan_manager_id))


def check(browser: Browser, content: bytes, resource: str = "participants", name: str = "people.csv") -> httpx.Response:
    return browser.http.post(
        HERE, data={"csrf": browser.csrf(), "resource": resource}, files={"file": (name, content)},
        headers={"Origin": browser.url},
    )  # fmt: skip


def onward(answer: httpx.Response) -> str:
    """Where the button "Import" leads."""
    assert answer.status_code == 200, answer.text
    found = re.search(rf'action="({HERE}/files/[0-9a-f-]+)"', answer.text)
    assert found, answer.text
    return found[1]


def figures(answer: httpx.Response) -> list[str]:
    return re.findall(r"<dd>([\d,]+)", answer.text)


def cells(answer: httpx.Response) -> list[tuple[str, ...]]:
    """The rows of the tables, as they are read."""
    rows = re.findall(r"<tr>(.*?)</tr>", answer.text.partition("<tbody>")[2], re.DOTALL)
    return [
        tuple(unescape(re.sub(r"<[^>]+>", "", each)) for each in re.findall(r"<td.*?</td>", row))
        for row in rows
        if "<td" in row
    ]


def test_a_file_with_faults_and_then_without(
    owner: Browser, told: Callable[[], list[Told]], waiting: Callable[[], list[str]]
) -> None:
    faulty = f"first_name,state,date_of_birth\nAda,XX,1990-13-01\nBen\n{SCRIPT},NSW,\n".encode()
    answer = check(owner, faulty)
    assert answer.status_code == 200
    assert "2 lines have faults. Nothing was written." in answer.text
    assert cells(answer) == [
        ("Line 2", "Date of birth", "must be a date, YYYY-MM-DD"),
        ("Line 2", "State", "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA"),
        ("Line 3", "the whole line", "has 1 cells, and the header 3"),
    ]
    assert (f"{HERE}/files/" in answer.text, waiting(), told()) == (False, [], [])

    answer = check(owner, PEOPLE)
    assert figures(answer)[-3:] == ["2", "0", "0"]
    assert (waiting(), told()) == (["people.csv"], [])
    path = onward(answer)
    assert "Import people.csv?" in owner.get(path).text
    done = owner.send(path)
    assert (done.status_code, "people.csv is imported" in done.text, figures(done)) == (200, True, ["2", "0", "0"])
    assert waiting() == []
    assert told() == [Told("participant.created", "user", each, notify=False) for each in (ADA, BEN)]
    assert owner.send(path).status_code == 404
    assert owner.get(path).status_code == 404
    assert len(told()) == 2


def test_what_changes_is_shown_before_and_after(owner: Browser, told: Callable[[], list[Told]]) -> None:
    assert owner.send(onward(check(owner, PEOPLE))).status_code == 200
    formula = '=HYPERLINK(""http://evil.example"")'
    content = f'{HEAD}{ADA},Ada,"{formula}",QLD\n{BEN},Ben,Okafor,VIC\n{CY},{SCRIPT},,\n'.encode()
    answer = check(owner, content)
    assert figures(answer)[-3:] == ["1", "1", "1"]
    name = formula.replace('""', '"')
    assert cells(answer) == [
        ("Last name", "Lindqvist", name),
        ("State", "NSW", "QLD"),
    ]
    assert '<span class="what">Ada Lindqvist</span>' in answer.text
    assert SCRIPT not in answer.text
    assert len(told()) == 2
    done = owner.send(onward(answer), {"notify": "yes"})
    assert figures(done) == ["1", "1", "1"]
    assert sorted((each.type, each.notify) for each in told()[2:]) == [
        ("participant.created", True), ("participant.updated", True),
    ]  # fmt: skip
    again = check(owner, content)
    assert ("all of it is there already" in again.text, f"{HERE}/files/" in again.text) == (True, False)


def test_stored_scripts_are_shown_as_text(owner: Browser) -> None:
    content = f"{HEAD}{ADA},{SCRIPT},x,NSW\n".encode()
    assert owner.send(onward(check(owner, content, name=f"{SCRIPT}.csv"))).status_code == 200
    answer = check(owner, f"{HEAD}{ADA},{SCRIPT},{SCRIPT},NSW\n".encode(), name=f'..\\a/"{SCRIPT}.csv')
    assert (SCRIPT in answer.text, "&lt;script&gt;alert(1)&lt;/script&gt;" in answer.text) == (False, True)
    assert "all of" not in answer.text
    doubtful = check(owner, f"participant_number\n{SCRIPT}\n".encode())
    assert (SCRIPT in doubtful.text, "has not the 9 digits" in doubtful.text) == (False, True)
    wrong = check(owner, f"{SCRIPT}\n1\n".encode())
    assert (wrong.status_code, SCRIPT in wrong.text, "no such field" in wrong.text) == (422, False, True)
    json = check(owner, b'{"%s": 1, "state": "%s"}\n' % (SCRIPT.encode(), SCRIPT.encode()))
    assert (json.status_code, SCRIPT in json.text, "is not known" in json.text) == (200, False, True)


@pytest.mark.parametrize(
    "content",
    [
        codecs.BOM_UTF8 + PEOPLE,
        PEOPLE.replace(b"\n", b"\r\n"),
        codecs.BOM_UTF8 + PEOPLE.replace(b"\n", b"\r\n").rstrip(),
        PEOPLE.replace(b"\n", b"\r"),
        f'{{"id": "{ADA}", "first_name": "Ada"}}\n{{"id": "{BEN}"}}\n'.encode(),
    ],
    ids=["BOM", "CRLF", "BOM and CRLF", "CR", "JSON Lines"],
)
def test_files_are_taken_as_they_are_written_elsewhere(owner: Browser, content: bytes) -> None:
    answer = check(owner, content)
    assert figures(answer)[-3:] == ["2", "0", "0"]
    assert figures(owner.send(onward(answer))) == ["2", "0", "0"]


@pytest.mark.parametrize(
    "content, fault",
    [
        (b"", "File: is empty"),
        (codecs.BOM_UTF8 + b" \r\n\r\n", "File: is empty"),
        (PEOPLE.decode().encode("utf-16"), "File: is UTF-16; save it as CSV UTF-8"),
        (b"PK\x03\x04rest", "File: is a workbook; save it as CSV UTF-8"),
        (b"nothing\n1\n", "File: line 1: no such field: 'nothing'; fields are "),
        (b"state,state\nNSW,NSW\n", "File: line 1: a field stands twice in the header: state"),
        (b"first_name\n" + b"x\n" * 30_000, "File: has more than 30,000 lines; use plankeeper import for it"),
        (b"first_name\r" + b"\xff\r" * 30_000, "File: has more than 30,000 lines"),
    ],
)  # fmt: skip
def test_what_is_no_import_file_shows_the_form_again(
    owner: Browser, waiting: Callable[[], list[str]], content: bytes, fault: str
) -> None:
    answer = check(owner, content)
    assert (answer.status_code, fault in unescape(answer.text)) == (422, True), answer.text
    assert '<option value="participants" selected>' in answer.text
    assert waiting() == []


def test_faults_in_the_writing_name_their_line(owner: Browser) -> None:
    latin = check(owner, "first_name,last_name\nAda,x\nZo\xeb,y\n".encode("latin-1"))
    assert cells(latin) == [("Line 3", "First name", "is not UTF-8")]
    nul = check(owner, b"first_name\na\0b\n")
    assert cells(nul) == [("Line 2", "First name", "must not contain the character U+0000")]
    header = check(owner, HEAD.encode())
    assert ("no lines below its header" in header.text, header.status_code) == (True, 200)


def test_of_many_faults_the_first_are_shown_and_the_others_counted(owner: Browser) -> None:
    answer = check(owner, b"state\n" + b"XX\n" * 1234)
    assert len(cells(answer)) == 100
    assert ("1,234 lines have faults" in answer.text, "And 1,134 more faults." in answer.text) == (True, True)
    assert len(answer.content) < 80_000


def test_of_many_changes_the_first_are_shown_and_the_others_counted(owner: Browser) -> None:
    ids = [str(uuid7()) for _ in range(70)]
    before = "".join(f"{each},A{at:02},{'x' * 255},NSW\n" for at, each in enumerate(ids))
    assert owner.send(onward(check(owner, (HEAD + before).encode()))).status_code == 200
    few = check(owner, (HEAD + before.replace("NSW", "VIC")).encode())
    assert (len(cells(few)), "And 20 more." in few.text) == (50, True)
    answer = check(owner, (HEAD + before.replace("xxx", "&&&")).encode())
    assert figures(answer)[-3:] == ["0", "70", "0"]
    assert 20 < len(cells(answer)) <= 50
    assert f"And {70 - len(cells(answer))} more." in answer.text
    assert len(answer.content) < 80_000


@pytest.mark.parametrize("resource", IMPORT_KINDS)
def test_each_has_a_file_to_begin_with(owner: Browser, resource: str) -> None:
    assert f'href="{HERE}/{resource}.csv"' in owner.get(HERE).text
    answer = owner.get(f"{HERE}/{resource}.csv")
    assert answer.headers["content-type"] == "text/csv; charset=utf-8"
    assert answer.headers["content-disposition"] == f'attachment; filename="{resource}.csv"'
    assert answer.content == csv_template(resource).encode()
    lines = list(read_rows(io.BytesIO(answer.content), RESOURCES[resource].import_schema))
    assert (len(lines), [each for each in lines if isinstance(each, RowError)]) == (1, [])
    if resource == "team-members":  # who belongs to somebody
        assert owner.send(onward(check(owner, b"participant_number\n430000001\n"))).status_code == 200
    assert figures(owner.send(onward(check(owner, answer.content, resource)))) == ["1", "0", "0"]


def test_what_cannot_be_imported_has_no_file(owner: Browser) -> None:
    for name in ("invoice-view-sessions.csv", "participants", "participants.txt", ".csv", "x.csv", "%2e%2e.csv"):
        assert owner.get(f"{HERE}/{name}").status_code == 404
    for resource in ("", "invoice-view-sessions", "x"):
        answer = check(owner, PEOPLE, resource)
        assert (answer.status_code, "What the file holds: must be one of the list" in answer.text) == (422, True)
    form = {"csrf": owner.csrf(), "resource": "participants"}
    for files_ in ({"file": ("", b"")}, {"other": (None, b"x")}):
        answer = owner.http.post(HERE, data=form, files=files_, headers={"Origin": owner.url})
        assert (answer.status_code, "File: must be chosen" in answer.text) == (422, True)
    assert owner.send(HERE, form).status_code == 422


def test_note_types_are_imported_by_ids_that_there_are(server: RunningServer, owner: Browser) -> None:
    last = "select last_value from note_type_ids"
    before = server.run(server.db.one(int, last))
    answer = check(owner, f"id,note_type\n{2**52},Call\n,Visit\n".encode(), "note-types")
    assert cells(answer) == [("Line 2", "Id", "is no note type's; leave it empty for a new one")]
    assert server.run(server.db.one(int, last)) < before + 1000
    assert figures(owner.send(onward(check(owner, b"note_type\nCall\n", "note-types")))) == ["1", "0", "0"]
    listed = re.search(r"/console/note-types/(\d+)/edit", owner.get("/console/note-types").text)
    assert listed
    content = f"id,note_type,badge_color\n{listed[1]},Call,red\n".encode()
    assert cells(check(owner, content, "note-types")) == [("Badge color", "—", "red")]


def test_a_reference_that_is_none_is_a_fault_of_its_line(owner: Browser, told: Callable[[], list[Told]]) -> None:
    content = f"name,parent_id\nMoved,\nAbroad,{uuid7()}\n".encode()
    answer = check(owner, content, "exit-reasons")
    [(line, column, _)] = cells(answer)
    assert (line, column) == ("Line 3", "Parent id")
    assert told() == []


def test_a_file_that_is_faulty_by_now_is_not_imported(
    server: RunningServer, owner: Browser, told: Callable[[], list[Told]], plan_manager_id: UUID
) -> None:
    reason = str(uuid7())
    assert owner.send(onward(check(owner, f"id,name\n{reason},Moved\n".encode(), "exit-reasons"))).status_code == 200
    path = onward(check(owner, f"first_name,exit_reason_category_id\nAda,\nBen,{reason}\n".encode()))
    remove = "delete from exit_reasons where plan_manager_id = $1"
    server.run(server.db.execute(remove, plan_manager_id))
    answer = owner.send(path)
    assert (answer.status_code, "something else was changed" in answer.text) == (409, True)
    assert cells(answer)[0][0] == "Line 3"
    assert [each.type for each in told()] == ["exit_reason.created"]


def test_only_a_manager_imports(
    owner: Browser, new_browser: Callable[..., Browser], new_person: Callable[..., Person],
    waiting: Callable[[], list[str]], told: Callable[[], list[Told]],
) -> None:  # fmt: skip
    path = onward(check(owner, PEOPLE))
    viewer, nobody = new_browser(new_person("viewer")), new_browser()
    assert HERE not in viewer.get("/console/activity").text
    assert {viewer.get(each).status_code for each in (HERE, f"{HERE}/participants.csv", path)} == {403}
    assert (check(viewer, PEOPLE).status_code, viewer.send(path).status_code) == (403, 403)
    sent = {"data": {"csrf": nobody.csrf("/console/sign-in")}, "headers": {"Origin": nobody.url}}
    assert nobody.http.post(HERE, files={"file": ("a.csv", PEOPLE)}, **sent).status_code == 403
    # What they send is not even read.
    assert check(viewer, b"x" * (11 * 2**20)).status_code == 403
    assert (waiting(), told()) == (["people.csv"], [])


def test_a_file_is_its_senders_and_its_plan_managers(
    owner: Browser, new_plan_manager: Callable[[], UUID], new_browser: Callable[..., Browser],
    new_person: Callable[..., Person], told: Callable[[], list[Told]],
) -> None:  # fmt: skip
    path = onward(check(owner, PEOPLE))
    colleague, other = new_browser(new_person("owner")), new_browser(new_person("owner", new_plan_manager()))
    for browser in (colleague, other):
        assert (browser.get(path).status_code, browser.send(path).status_code) == (404, 404)
    assert told() == []
    assert figures(owner.send(path)) == ["2", "0", "0"]


def test_a_file_is_kept_for_an_hour_and_few_of_each(
    server: RunningServer, owner: Browser, waiting: Callable[[], list[str]], plan_manager_id: UUID
) -> None:
    paths = [onward(check(owner, PEOPLE, name=f"{at}.csv")) for at in range(6)]
    assert waiting() == ["2.csv", "3.csv", "4.csv", "5.csv"]
    assert owner.send(paths[0]).status_code == 404
    age = (
        "update import_files set created_at = created_at - interval '61 minutes' where plan_manager_id = $1 and id = $2"
    )
    server.run(server.db.execute(age, plan_manager_id, UUID(paths[5].rpartition("/")[2])))
    assert (owner.get(paths[5]).status_code, owner.send(paths[5]).status_code) == (404, 404)
    wait_until(lambda: waiting() == ["2.csv", "3.csv", "4.csv"])  # a chore removes it
    assert owner.send(paths[4]).status_code == 200


def test_two_imports_at_once_are_one(owner: Browser, told: Callable[[], list[Told]]) -> None:
    content = HEAD + "".join(f"{uuid7()},Ada,x,NSW\n" for _ in range(500))
    path, form = onward(check(owner, content.encode())), {"csrf": owner.csrf()}
    headers = {"Origin": owner.url, "Cookie": "; ".join(f"{k}={v}" for k, v in owner.http.cookies.items())}

    def send(_number: int) -> int:
        return httpx.post(owner.url + path, data=form, headers=headers, timeout=30, trust_env=False).status_code

    with closing(owner.http), ThreadPoolExecutor(4) as pool:
        found = sorted(pool.map(send, range(4)))
    assert found[0] == 200
    assert set(found[1:]) <= {404, 409}
    assert len(told()) == 500


def test_beside_another_import_it_says_so_and_can_be_sent_again(
    server: RunningServer, owner: Browser, plan_manager_id: UUID
) -> None:
    path = onward(check(owner, PEOPLE))
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
    for answer in (owner.send(path), check(owner, PEOPLE)):
        assert (answer.status_code, "Another import" in answer.text) == (409, True)
    assert f'action="{path}"' in owner.send(path).text
    server.run(end(task))
    assert figures(owner.send(path)) == ["2", "0", "0"]


def test_an_import_that_takes_too_long_is_given_up(
    owner: Browser, told: Callable[[], list[Told]], monkeypatch: pytest.MonkeyPatch
) -> None:
    content = (HEAD + "".join(f"{uuid7()},Ada,x,NSW\n" for _ in range(3000))).encode()
    path = onward(check(owner, content))
    for seconds in (0.0, 0.05):
        monkeypatch.setattr(import_preview, "MAX_SECONDS", seconds)
        for answer in (owner.send(path), check(owner, content)):
            assert (answer.status_code, "use plankeeper import" in answer.text) == (422, True)
    assert told() == []
    monkeypatch.undo()
    assert figures(owner.send(path)) == ["3,000", "0", "0"]


def test_a_worker_has_few_places_for_imports(owner: Browser) -> None:
    path = onward(check(owner, PEOPLE))
    with import_preview.IMPORT_LIMIT, import_preview.IMPORT_LIMIT:
        assert (check(owner, PEOPLE).status_code, owner.send(path).status_code) == (503, 503)
    assert owner.send(path).status_code == 200


def test_a_file_of_ten_mebibytes_is_the_largest(owner: Browser, waiting: Callable[[], list[str]]) -> None:
    line = b"first_name,note\n"
    answer = check(owner, line + b"x" * (10 * 2**20 - len(line)))
    assert (answer.status_code, "no such field" in answer.text) == (422, True)
    for size in (10 * 2**20 + 300_000, 30 * 2**20):
        answer = check(owner, b"x" * size)
        assert (answer.status_code, "larger than 10 MiB" in answer.text) == (413, True)
    assert waiting() == []


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
        (multipart(part(b"a", b"\xff")), b"multipart/form-data; boundary=b", 400),
        (multipart(part(b"a", b"\0")), b"multipart/form-data; boundary=b", 400),
        (multipart(*[part(b"a")] * 51), b"multipart/form-data; boundary=b", 400),
        (multipart(b"X: " + b"x" * 5000 + b"\r\n\r\n"), b"multipart/form-data; boundary=b", 400),
        (multipart(part(b"a", b"x" * 300_000)), b"multipart/form-data; boundary=b", 413),
        (multipart(part(b"a")), b"multipart/form-data; boundary=b", 403),
    ],
)  # fmt: skip
def test_a_body_that_is_no_form_does_nothing(owner: Browser, body: bytes, kind: bytes, status: int) -> None:
    headers: Any = {"Origin": owner.url, "Content-Type": kind}
    assert owner.http.post(HERE, content=body, headers=headers).status_code == status


def test_files_come_with_the_form_of_the_import_alone(owner: Browser) -> None:
    form = {"csrf": owner.csrf(), "note_type": "Call"}
    headers = {"Origin": owner.url}
    answer = owner.http.post("/console/note-types", data=form, files={"file": ("a", b"x")}, headers=headers)
    assert answer.status_code == 415
    forged = owner.http.post(
        HERE, data={"csrf": "wrong", "resource": "participants"}, files={"file": ("a", PEOPLE)}, headers=headers
    )
    assert forged.status_code == 403
