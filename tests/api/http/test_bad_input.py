"""Invalid requests of every kind: each error names the field, and nothing is written."""

import gzip
import re
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.errors import CODES
from plankeeper.server.app import operations
from support.client import PREFIX, Client
from support.server import RunningServer
from support.sweeps import sweep

JSON = {"Content-Type": "application/json"}
MIB = 1024 * 1024


@pytest.fixture
def unchanged(server: RunningServer, api: Client) -> Callable[[], Any]:
    """Makes a context in which nothing may be written for the plan manager."""

    async def read_contents() -> tuple[int, list[str]]:
        own = UUID(api.plan_manager_id)
        events = await server.db.one(int, "select count(*) from events where plan_manager_id = $1", own)
        rows = "select to_json(each)::text from participants each where plan_manager_id = $1 order by id"
        return events, await server.db.rows(str, rows, own)

    @contextmanager
    def assert_unchanged() -> Iterator[None]:
        before = server.run(read_contents())
        yield
        assert server.run(read_contents()) == before

    return assert_unchanged


def send_raw(
    api: Client, body: bytes | Iterator[bytes], path: str = "/participants", method: str = "POST"
) -> httpx.Response:
    """An unchanged body."""
    return api.request(method, path, content=body, headers=JSON)


def field_errors(response: httpx.Response) -> list[tuple[str, str]]:
    """The message for each field; the response's detail repeats them."""
    body = response.json()
    assert (response.status_code, body["error"]) == (400, "invalid_request"), response.text
    errors = [(each["field"], each["message"]) for each in body["errors"]]
    assert body["detail"].startswith("; ".join(f"{field}: {message}" for field, message in errors[:3]))
    return errors


NOT_JSON = {
    "no body": (b"", "The body is empty; it must be a JSON object."),
    "white space": (b" \n", "Not valid JSON: "),
    "cut short": (b'{"first_name": "Ann"', "Not valid JSON: "),
    "single quotes": (b"{'first_name': 'Ann'}", "Not valid JSON: "),
    "a trailing comma": (b'{"first_name": "Ann",}', "Not valid JSON: "),
    "something behind it": (b'{"first_name": "Ann"} {}', "Not valid JSON: "),
    "not a number": (b'{"first_name": NaN}', "Not valid JSON: "),
    "two byte order marks": (b'\xef\xbb\xbf\xef\xbb\xbf{"first_name": "Ann"}', "Not valid JSON: "),
    "not UTF-8": (b'{"first_name": "Ann\xff"}', "Not valid JSON: it is not UTF-8."),
    "UTF-16": ('{"first_name": "Ann"}'.encode("utf-16"), "Not valid JSON: "),
    "a raw NUL": (b'{"first_name": "A\x00n"}', "Not valid JSON: "),
    "a raw line feed": (b'{"first_name": "A\nn"}', "Not valid JSON: "),
    "a lone high surrogate": (b'{"first_name": "A\\ud800n"}', "Not valid JSON: "),
    "a lone low surrogate": (b'{"first_name": "A\\udc00n"}', "Not valid JSON: "),
    "a lone surrogate's bytes": (b'{"first_name": "A\xed\xa0\x80n"}', "Not valid JSON: it is not UTF-8."),
    "a lone surrogate in a name": (b'{"first_name\\ud800": "Ann"}', "Not valid JSON: "),
    "a list": (b'[{"first_name": "Ann"}]', "The body must be a JSON object."),
    "a number": (b"5", "The body must be a JSON object."),
    "a string": (b'"Ann"', "The body must be a JSON object."),
    "null": (b"null", "The body must be a JSON object."),
    "33 levels": (b'{"first_name": %s}' % (b"[" * 32 + b"]" * 32), "The body is nested more than 32 levels deep."),
    "20,000 lists": (b"[" * 20_000 + b"]" * 20_000, "The body is nested more than 32 levels deep."),
    "20,000 objects": (b'{"a":' * 20_000 + b"1" + b"}" * 20_000, "The body is nested more than 32 levels deep."),
    "20,000 open lists": (b'{"first_name": ' + b"[" * 20_000, "The body is nested more than 32 levels deep."),
}


@sweep("kind", NOT_JSON)
def test_a_body_that_is_not_a_json_object_is_rejected(api: Client, unchanged: Callable[[], Any], kind: str) -> None:
    made = api.create("/participants", {"first_name": "Ann"})
    body, says = NOT_JSON[kind]
    with unchanged():
        for response in (send_raw(api, body), send_raw(api, body, f"/participants/{made['id']}", "PUT")):
            reported = response.json()
            assert (response.status_code, reported["error"]) == (400, "invalid_json")
            assert set(reported) == {"success", "error", "detail", "request_id", "documentation_url"}
            assert reported["detail"].startswith(says)


def test_json_nested_32_levels_deep_is_parsed_and_fails_validation(api: Client, unchanged: Callable[[], Any]) -> None:
    with unchanged():
        response = send_raw(api, b'{"first_name": %s}' % (b"[" * 31 + b"]" * 31))
        assert field_errors(response) == [("first_name", "must be a string or null, not a list")]


TYPES = ["text/plain", "application/x-www-form-urlencoded", "application/merge-patch+json", "application/jsonx"]


@sweep("kind", [*TYPES, "application/json; charset=latin-1", "application/json, application/json", "", None], repr)
def test_a_body_of_another_media_type_is_rejected(api: Client, unchanged: Callable[[], Any], kind: str | None) -> None:
    with unchanged():
        response = api.request(
            "POST", "/participants", content=b'{"first_name": "Ann"}', headers={"Content-Type": kind}
        )
        reported = response.json()
        assert (response.status_code, reported.pop("error")) == (415, "unsupported_media_type")
        assert reported == {
            "success": False, "detail": CODES["unsupported_media_type"].description,
            "documentation_url": "/docs/api/errors#unsupported_media_type",
            "request_id": response.headers["x-request-id"],
        }  # fmt: skip


@pytest.mark.parametrize(
    "kind", ["application/json", "application/json; charset=utf-8", 'APPLICATION/JSON;charset="UTF-8"']
)
def test_json_is_accepted_with_and_without_a_charset(api: Client, kind: str) -> None:
    response = api.request("POST", "/participants", content=b'{"first_name": "Ann"}', headers={"Content-Type": kind})
    assert (response.status_code, response.json()["first_name"]) == (200, "Ann")


# Actions without fields. They check the body first, and then look for the resource.
ACTIONS = [each for each in operations() if each.method == "POST" and not (each.body or each.receive_file)]


@sweep("path", [each.path.removeprefix(PREFIX) for each in ACTIONS])
def test_the_body_of_an_action_without_fields_is_empty_or_an_empty_object(api: Client, path: str) -> None:
    place = re.sub("{.*?}", str(uuid7()), path)
    for valid in ({}, {"json": {}}):
        assert api.request("POST", place, **valid).status_code == 404
    assert field_errors(api.post(place, {"reason": "x"})) == [("reason", "is unknown; no fields are supported")]
    assert send_raw(api, b"[]", place).json()["error"] == "invalid_json"
    response = api.request("POST", place, content=b"{}", headers={"Content-Type": "text/plain"})
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")


def padded_body(size: int) -> bytes:
    return b'{"first_name": "Ann"}' + b" " * (size - 21)


def in_chunks(body: bytes) -> Iterator[bytes]:
    """So that httpx states no length."""
    yield from (body[at : at + 65_536] for at in range(0, len(body), 65_536))


@pytest.mark.parametrize(
    "body", [padded_body(MIB + 1), padded_body(2 * MIB), b'{"first_name": "%s"}' % (b"a" * MIB)], ids=len
)
def test_a_body_over_1_mib_is_rejected(api: Client, unchanged: Callable[[], Any], body: bytes) -> None:
    with unchanged():
        for response in (send_raw(api, body), send_raw(api, in_chunks(body))):
            reported = response.json()
            assert (response.status_code, reported.pop("error")) == (413, "body_too_large")
            assert reported == {
                "success": False, "detail": "The body is larger than 1 MiB.",
                "documentation_url": "/docs/api/errors#body_too_large",
                "request_id": response.headers["x-request-id"],
            }  # fmt: skip


def test_a_body_of_1_mib_is_accepted(api: Client) -> None:
    for body in (padded_body(MIB), in_chunks(padded_body(MIB))):
        assert send_raw(api, body).status_code == 200


def test_a_name_of_a_million_characters_is_too_long(api: Client, unchanged: Callable[[], Any]) -> None:
    with unchanged():
        response = api.post("/participants", {"first_name": "a" * 1_000_000})
        assert field_errors(response) == [("first_name", "must be at most 255 characters long")]


@pytest.mark.parametrize("coding", ["gzip", "br", "GZIP", "gzip, identity"])
def test_a_compressed_body_is_rejected(api: Client, unchanged: Callable[[], Any], coding: str) -> None:
    with unchanged():
        body = gzip.compress(b'{"last_name": "Ng"}')
        response = api.request("POST", "/participants", content=body, headers=JSON | {"Content-Encoding": coding})
    assert (response.status_code, response.json()["error"]) == (415, "unsupported_media_type")
    assert response.headers["accept-encoding"] == "identity"
    assert "without Content-Encoding" in response.json()["detail"]
    plain = api.request("POST", "/participants", json={}, headers={"Content-Encoding": "identity"})
    assert plain.status_code == 200


def test_a_byte_order_mark_is_ignored(api: Client) -> None:
    response = send_raw(api, b'\xef\xbb\xbf{"last_name": "Ng"}')
    assert (response.status_code, response.json()["last_name"]) == (200, "Ng")


def test_a_number_without_a_fraction_is_an_integer(api: Client) -> None:
    team = f"/participants/{api.create('/participants', {})['id']}/team-members"
    for number in (b"1.0", b"1e0", b"1.00", b"10e-1"):
        response = send_raw(api, b'{"first_name": "Bo", "contact_priority": ' + number + b"}", team)
        assert (response.status_code, response.json()["contact_priority"]) == (201, 1), response.text
        api.delete(f"{team}/{response.json()['id']}").raise_for_status()
    for number in (b"1.5", b"3.0", b"1e400", b"-1.0"):
        response = send_raw(api, b'{"first_name": "Bo", "contact_priority": ' + number + b"}", team)
        assert field_errors(response)[0][0] == "contact_priority"


@pytest.mark.parametrize("escape", ["\\ud800", "\\uDFFF", "\\udbff\\u0041", "\\\\\\ud800"])
def test_half_of_a_surrogate_pair_is_named(api: Client, unchanged: Callable[[], Any], escape: str) -> None:
    with unchanged():
        response = send_raw(api, b'{"last_name": "x' + escape.encode() + b'y"}')
    assert (response.status_code, response.json()["error"]) == (400, "invalid_json")
    assert "half of a surrogate pair" in response.json()["detail"]
    assert send_raw(api, rb'{"last_name": "\ud83d\ude00 \\ud800"}').json()["last_name"] == "\U0001f600 \\ud800"


def test_a_misspelt_field_is_corrected(api: Client, unchanged: Callable[[], Any]) -> None:
    with unchanged():
        response = api.post("/participants", {"firstname": "x"})
    assert field_errors(response) == [("firstname", "is unknown; did you mean first_name?")]
    query = api.get("/participants", participant_nummer="1")
    assert field_errors(query) == [("participant_nummer", "is unknown; did you mean participant_number?")]


def test_a_client_that_disconnects_during_its_body_writes_nothing(api: Client, unchanged: Callable[[], Any]) -> None:
    host, port = api.http.base_url.host, api.http.base_url.port or 0
    head = "".join(f"{name}: {value}\r\n" for name, value in (api.headers() | JSON | {"Content-Length": "99"}).items())
    with unchanged():
        with socket.create_connection((host, port)) as leaving:
            leaving.sendall(f"POST {PREFIX}/participants HTTP/1.1\r\nHost: {host}\r\n{head}\r\n".encode())
            leaving.sendall(b'{"first_name": "Ann"}')
        assert api.get("/participants").json()["data"] == []


NUL = "must not contain the character U+0000"


@pytest.mark.parametrize(
    "method, path, body",
    [
        ("POST", "/participants", {"first_name": "a\0b"}),
        ("POST", "/providers", {"entity_name": "\0"}),
        ("POST", "/note-types", {"note_type": "a\0"}),
        ("POST", "/participants/{participant_id}/team-members", {"first_name": "A", "note": "\0a"}),
        ("PUT", "/participants/{participant_id}", {"reason_for_leaving": "a\0b"}),
        ("POST", "/invoices/status", {"provider_email": "\0", "invoice_number": "1"}),
    ],
)
def test_nul_is_rejected_in_text(
    api: Client, unchanged: Callable[[], Any], method: str, path: str, body: dict[str, str]
) -> None:
    place = path.format(participant_id=api.create("/participants", {})["id"])
    with unchanged():
        wrong = [name for name, value in body.items() if "\0" in value]
        assert field_errors(api.request(method, place, json=body)) == [(name, NUL) for name in wrong]
        unknown = send_raw(api, b'{"a\\u0000b": "x"}', place, method)
        assert field_errors(unknown)[0][0] == "a\\x00b"


def test_nul_and_invalid_utf8_are_rejected_in_a_query(api: Client, unchanged: Callable[[], Any]) -> None:
    with unchanged():
        assert field_errors(api.request("GET", "/participants?email=a%00b")) == [("email", NUL)]
        for query in ("email=%ff", "email=%ed%a0%80", "%ff=1", "&".join(["limit=1"] * 101)):
            response = api.request("GET", f"/participants?{query}")
            assert (response.status_code, response.json()["error"]) == (400, "invalid_request")
            assert response.json()["detail"] == "query: must be percent-encoded UTF-8 of at most 100 parameters."


def test_text_that_looks_like_an_escape_is_stored_unchanged(api: Client) -> None:
    texts = [
        "\\u0000",
        "\\",
        '"',
        "\u007f",
        "\u2028",
        "é\u0301",
        "😀",
        " two  spaces ",
        "'; drop table participants; --",
    ]
    for text in texts:
        assert api.create("/participants", {"first_name": text})["first_name"] == text
    assert send_raw(api, b'{"first_name": "\\ud83d\\ude00\\\\u0000"}').json()["first_name"] == "😀\\u0000"


def test_all_errors_of_a_body_are_reported_together(api: Client, unchanged: Callable[[], Any]) -> None:
    body = {
        "first_name": {"a": 1}, "last_name": ["x"], "participant_number": 430000001, "email": True, "state": "XX",
        "status": None, "is_pace_plan": "yes", "plan_start_date": "2026-02-30", "account_manager_id": "x",
        "zip": "2000", "email_adress": "a@example.com",
    }  # fmt: skip
    with unchanged():
        said = dict(field_errors(api.post("/participants", body)))
    assert said.pop("zip") == said.pop("email_adress")
    assert said == {
        "first_name": "must be a string or null, not an object",
        "last_name": "must be a string or null, not a list",
        "participant_number": "must be a string or null, not a whole number",
        "email": "must be a string or null, not true or false",
        "state": "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA",
        "status": "must be one of Active, Inactive, Lead, not null",
        "is_pace_plan": "must be true or false, not a string",
        "plan_start_date": "must be a date, YYYY-MM-DD",
        "account_manager_id": "must be a UUID with hyphens",
    }


def test_all_invalid_items_of_a_list_are_reported_together(api: Client, unchanged: Callable[[], Any]) -> None:
    place = f"/participants/{api.create('/participants', {})['id']}/team-members"
    slugs = "must be one of view_budget, view_invoices, approve_invoices, email_statements, view_documents, no_access"
    with unchanged():
        response = api.post(place, {"email": "a@example.com", "permissions": ["view_budget", "x", 5, "no_access", "y"]})
        assert field_errors(response) == [
            ("permissions[1]", slugs), ("permissions[2]", f"{slugs} or an object, not a whole number"),
            ("permissions[4]", slugs),
        ]  # fmt: skip
        response = api.request("GET", f"/participants?account_manager=a,{uuid7()},,b")
        assert field_errors(response) == [
            (f"account_manager[{at}]", "must be a UUID with hyphens, or none") for at in (0, 2, 3)
        ]


def test_an_unknown_field_is_reported_with_the_known_fields(api: Client, unchanged: Callable[[], Any]) -> None:
    with unchanged():
        response = api.post("/note-types", {"note_type": "Visit", "size": "red"})
        known = "note_type, badge_color, highlight_color"
        assert field_errors(response) == [("size", f"is unknown; expected one of {known}")]
    assert api.get("/note-types").json()["pagination"]["total"] == 0


EMAILS = [
    "", "ann", "@example.com", "ann@", "ann@localhost", "a b@example.com", "ann@example..com", "ann@-example.com",
    " ann@example.com", "ann@example.com\n", "Ann <ann@example.com>", "ann@example.com,bob@example.com",
]  # fmt: skip


@sweep("email", EMAILS)
def test_an_invalid_email_is_rejected(api: Client, unchanged: Callable[[], Any], email: str) -> None:
    made = api.create("/participants", {})
    with unchanged():
        says = [("email", "must be an email address, such as name@example.com")]
        for response in (
            api.post("/participants", {"email": email}),
            api.put(f"/participants/{made['id']}", {"email": email}),
            api.post("/providers", {"email": email}),
            api.post(f"/participants/{made['id']}/team-members", {"email": email}),
        ):
            assert field_errors(response) == says


def test_a_state_is_one_of_eight_codes(api: Client, unchanged: Callable[[], Any]) -> None:
    for state in ("ACT", "NSW", "NT", "QLD", "SA", "TAS", "VIC", "WA"):
        for sent_state in (state, state.lower()):
            assert api.create("/participants", {"state": sent_state})["state"] == state
    says = [("state", "must be one of ACT, NSW, NT, QLD, SA, TAS, VIC, WA")]
    with unchanged():
        for wrong in ("XX", "", " NSW", "New South Wales", "NſW"):
            assert field_errors(api.post("/participants", {"state": wrong})) == says
            assert field_errors(api.post("/providers", {"state": wrong})) == says


IDS = {"/participants/{}": "participant_id", "/providers/{}": "provider_id", "/invoices/{}": "invoice_id",
       "/events/{}": "event_id", "/participants/{}/team-members": "participant_id"}  # fmt: skip


@pytest.mark.parametrize("path", IDS)
def test_an_invalid_uuid_is_rejected_and_an_unknown_one_is_not_found(api: Client, path: str) -> None:
    for wrong in ("abc", "1", uuid7().hex, f"{uuid7()}0", "%00", "%7B" + str(uuid7()) + "%7D"):
        assert field_errors(api.get(path.format(wrong))) == [(IDS[path], "must be a UUID with hyphens")]
    for absent in (str(uuid7()), str(uuid7()).upper(), str(UUID(int=0))):
        response = api.get(path.format(absent))
        assert (response.status_code, response.json()["error"]) == (404, "not_found")


def test_a_note_type_id_is_an_integer(api: Client) -> None:
    for wrong in ("abc", "1.0", str(uuid7()), "%00", "+1", "1e3"):
        assert field_errors(api.get(f"/note-types/{wrong}")) == [("note_type_id", "must be a whole number")]
    for absent in ("0", "-1", "9223372036854775807", "9223372036854775808", "1" + "0" * 30):
        assert api.get(f"/note-types/{absent}").status_code == 404


@pytest.mark.parametrize(
    "path", ["/account-managers/{}", "/invoice-view-sessions/{}", "/participants/{own}/team-members/{}"]
)
def test_an_invalid_id_is_not_found_where_the_contract_types_it_as_a_string(api: Client, path: str) -> None:
    own = api.create("/participants", {})["id"]
    responses = [api.get(path.format(each, own=own)) for each in ("abc", "1", "None", uuid7().hex, "%00", str(uuid7()))]
    reported = [response.json() | {"request_id": None} for response in responses]
    sent = [
        "abc",
        "1",
        "None",
        responses[3].url.path.rpartition("/")[2],
        "\0",
        responses[5].url.path.rpartition("/")[2],
    ]
    assert [each.pop("resource")["id"] for each in reported] == sent
    assert reported == [reported[0]] * 6
    assert (reported[0]["error"], responses[0].status_code) == ("not_found", 404)
    assert reported[0]["detail"].startswith("The plan manager has no ")


def test_an_invalid_body_for_a_member_called_none_is_rejected(api: Client) -> None:
    own = api.create("/participants", {})["id"]
    response = api.put(f"/participants/{own}/team-members/None", {"colour": "red"})
    assert [field for field, _ in field_errors(response)] == ["colour"]


def test_an_id_in_upper_case_is_the_same_id(api: Client) -> None:
    made = api.create("/participants", {"first_name": "Ann"})
    assert api.get(f"/participants/{made['id'].upper()}").json() == made


@pytest.mark.parametrize("timestamp", ["0001-01-01T00:00:00%2B10:00", "9999-12-31T23:59:59-10:00"])
def test_a_timestamp_outside_the_calendar_is_rejected(api: Client, timestamp: str) -> None:
    for path in ("/participants", "/providers", "/invoices"):
        says = [("updated_since", "must be between the years 1 and 9999 in UTC")]
        assert field_errors(api.request("GET", f"{path}?updated_since={timestamp}")) == says


def test_errors_never_reveal_internals(api: Client) -> None:
    own = api.create("/participants", {})["id"]
    responses = [
        send_raw(api, b"{"), send_raw(api, b"[" * 20_000), api.post("/participants", {"x": "'; select 1"}),
        api.post("/participants", {"account_manager_id": str(uuid7())}), api.get(f"/participants/{uuid7()}"),
        api.put(f"/participants/{own}", {"exit_reason_category_id": str(uuid7())}), api.get("/participants", limit="x"),
    ]  # fmt: skip
    for response in responses:
        assert not re.search(r"Traceback|asyncpg|msgspec|constraint|_fkey|\.py|/src|Error\b", response.text), (
            response.text
        )
