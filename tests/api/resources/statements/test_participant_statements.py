"""Statements over the API: which plan, what can't be made, and what is read again."""

import hashlib
from collections.abc import Callable
from dataclasses import replace
from typing import Any
from uuid import UUID

import pypdfium2
import pytest

from plankeeper.core.context import ReadContext
from plankeeper.core.errors import DomainError
from plankeeper.resources.statements import service, store
from support.claims import set_office
from support.client import Client
from support.list_parameters import check_list
from support.server import RunningServer
from support.statements import send_statement
from support.webhooks import wait_for_events


@pytest.fixture
def participant(api: Client) -> str:
    """The path of a participant with a plan, without an email."""
    id_ = api.create("/participants", {"first_name": "Robin", "last_name": "Hale", "participant_number": "430000001"})[
        "id"
    ]
    create_plan(api, f"/participants/{id_}", "2026-01-01", "2026-12-31")
    return f"/participants/{id_}"


def create_plan(api: Client, participant: str, start: str, end: str) -> str:
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 2400}
    body = {"start_date": start, "end_date": end, "components": [component]}
    return api.create(f"{participant}/plans", body)["id"]


def make(api: Client, participant: str, **body: Any) -> dict[str, Any]:
    return api.create(f"{participant}/statements", {"month": "2026-02"} | body)


def error_of(response: Any) -> tuple[int, str, str]:
    [error] = response.json()["errors"]
    return response.status_code, error["field"], error["code"]


def read(api: Client, participant: str, statement: dict[str, Any], accept: str = "application/json") -> Any:
    return api.request("GET", f"{participant}/statements/{statement['id']}", headers={"Accept": accept})


def read_text(pdf: bytes) -> str:
    document = pypdfium2.PdfDocument(pdf)
    return " ".join(" ".join(page.get_textpage().get_text_range().split()) for page in document)


def test_a_month_without_services_has_the_budget(api: Client, participant: str) -> None:
    statement = make(api, participant)
    assert statement["participant"] == {"name": "Robin Hale", "ndis_number": "430000001"}
    [component] = statement["components"]
    assert {name: component[name] for name in ("amount", "spent_before", "spent", "waiting", "available")} == {
        "amount": 2400, "spent_before": 0, "spent": 0, "waiting": 0, "available": 2400,
    }  # fmt: skip
    assert (statement["lines"], statement["earlier_changes"], statement["sent"]) == ([], [], [])


def test_a_line_of_the_office_is_its_fee_however_its_abn_is_written(
    server: RunningServer, api: Client, participant: str
) -> None:
    set_office(server, api, abn="51824753556")
    line = {"service_item_number": "15_056_0128_1_3", "service_date_from": "2026-02-03", "total_price": 10}
    for abn in ("51824753556", "51 824 753 556", "89 000 000 019"):
        provider = api.create("/providers", {"entity_name": abn, "abn": abn})["id"]
        values = {"participant_id": participant.rpartition("/")[2], "pm_provider_id": provider, "line_items": [line]}
        api.create("/invoices", values)
    kinds = {each["provider"]: each["kind"] for each in make(api, participant)["lines"]}
    assert kinds == {"51824753556": "fee", "51 824 753 556": "fee", "89 000 000 019": "service"}


def test_what_cannot_be_made(api: Client, participant: str) -> None:
    def post(**body: Any) -> tuple[int, str, str]:
        return error_of(api.post(f"{participant}/statements", body))

    other = api.create("/participants", {})["id"]
    foreign = create_plan(api, f"/participants/{other}", "2026-01-01", "2026-12-31")
    later = create_plan(api, participant, "2027-01-01", "2027-12-31")
    assert post(month="2025-12") == (400, "month", "inconsistent")
    assert post(month="2099-01") == (400, "month", "too_large")
    for month in ("2026-13", "0000-10"):
        assert post(month=month) == (400, "month", "invalid_format")
    assert post(month="2026-02", plan_id=foreign) == (400, "plan_id", "not_found")
    assert post(month="2026-02", plan_id=later) == (400, "plan_id", "inconsistent")
    without = api.create("/participants", {})["id"]
    response = api.post(f"/participants/{without}/statements", {"month": "2026-02"})
    assert error_of(response) == (400, "month", "inconsistent")
    assert response.json()["errors"][0]["message"] == "has no plan of the participant: they have none"
    unknown = "00000000-0000-4000-8000-000000000000"
    assert api.post(f"/participants/{unknown}/statements", {"month": "2026-02"}).status_code == 404
    assert api.get(f"/participants/{unknown}/statements").status_code == 404
    assert api.get(f"{participant}/statements/{unknown}").status_code == 404
    assert api.get(f"{participant}/statements").json()["data"] == []


def test_with_two_plans_in_a_month_the_last_one_is_the_default(api: Client, participant: str) -> None:
    [first] = api.get(f"{participant}/plans").json()["data"]
    api.put(f"{participant}/plans/{first['id']}", {"end_date": "2026-02-10"}).raise_for_status()
    second = create_plan(api, participant, "2026-02-11", "2026-12-31")
    assert make(api, participant)["plan_id"] == second
    assert make(api, participant, plan_id=first["id"])["plan_end_date"] == "2026-02-10"
    assert make(api, participant, month="2026-01")["plan_id"] == first["id"]


def test_after_a_death_a_statement_needs_a_choice(api: Client, participant: str) -> None:
    api.put(participant, {"deceased_on": "2026-02-20"}).raise_for_status()
    response = api.post(f"{participant}/statements", {"month": "2026-02"})
    assert error_of(response) == (400, "after_death", "required")
    assert "the participant has died" in response.json()["errors"][0]["message"]
    assert make(api, participant, after_death=True)["month"] == "2026-02"


def test_a_statement_is_read_again_as_it_was_made(server: RunningServer, api: Client, participant: str) -> None:
    statement = make(api, participant)
    before = {each: read(api, participant, statement, each).content for each in ("application/json", "text/html")}
    assert read(api, participant, statement).json() == statement
    pdf = read(api, participant, statement, "application/pdf")
    assert (pdf.status_code, pdf.headers["content-type"]) == (200, "application/pdf")
    assert pdf.headers["content-disposition"] == 'attachment; filename="statement-2026-02.pdf"'
    row = server.run(store.get(server.db, UUID(api.plan_manager_id), UUID(statement["id"])))
    assert row
    assert (row.pdf_sha256, row.pdf_size) == (hashlib.sha256(pdf.content).hexdigest(), len(pdf.content))
    api.put(participant, {"first_name": "Another", "last_name": "Name"}).raise_for_status()
    [plan] = api.get(f"{participant}/plans").json()["data"]
    api.put(f"{participant}/plans/{plan['id']}", {"components": []}).raise_for_status()
    assert {each: read(api, participant, statement, each).content for each in before} == before
    assert read(api, participant, statement, "application/pdf").content == pdf.content
    assert make(api, participant)["participant"]["name"] == "Another Name"


def test_the_page_and_the_pdf_say_the_same(api: Client, participant: str) -> None:
    statement = make(api, participant)
    page = read(api, participant, statement, "text/html").text
    document = read_text(read(api, participant, statement, "application/pdf").content)
    for text in (
        "Statement for February 2026",
        "Robin Hale",
        "430 000 001",
        "$2,400.00 is left",
        "Is something wrong?",
    ):
        assert text in document
        assert text.replace("$2,400.00 is", "$2,400.00</strong> is") in page


def test_a_name_without_glyphs_has_a_page_and_no_pdf(api: Client, participant: str) -> None:
    api.put(participant, {"first_name": "𓀀"}).raise_for_status()
    statement = make(api, participant)
    response = read(api, participant, statement, "application/pdf")
    assert (response.status_code, response.json()["error"]) == (409, "invalid_transition")
    assert "PLANKEEPER_FONTS_FOLDER" in response.json()["detail"]
    assert "𓀀 Hale" in read(api, participant, statement, "text/html").text


def test_markup_in_names_is_text(api: Client, participant: str) -> None:
    api.put(participant, {"first_name": "<script>alert(1)</script>", "last_name": "*b* #x $y$ @z"}).raise_for_status()
    statement = make(api, participant)
    assert "<script>" not in read(api, participant, statement, "text/html").text
    document = read_text(read(api, participant, statement, "application/pdf").content)
    assert "*b* #x $y$ @z" in document


def test_sending_is_recorded(server: RunningServer, api: Client, participant: str) -> None:
    statement = make(api, participant)
    send_statement(server, api, statement["id"])
    send_statement(server, api, statement["id"], "post", "Robin Hale")
    found = read(api, participant, statement).json()
    assert [(each["way"], each["recipient"]) for each in found["sent"]] == [
        ("mail", "robin@example.com"), ("post", "Robin Hale"),
    ]  # fmt: skip
    assert found["updated_at"] > statement["updated_at"]
    sending = {"sent", "updated_at"}
    assert {name: value for name, value in found.items() if name not in sending} == {
        name: value for name, value in statement.items() if name not in sending
    }
    events = wait_for_events(api, "statement.*", 3)
    assert [each["type"] for each in events] == ["statement.created", "statement.sent", "statement.sent"]
    [listed] = api.get(f"{participant}/statements").json()["data"]
    assert listed == events[-1]["data"]
    assert "lines" not in listed


def test_only_a_statement_that_was_sent_is_built_on(server: RunningServer, api: Client, participant: str) -> None:
    january = make(api, participant, month="2026-01")
    assert make(api, participant)["previous_id"] is None
    send_statement(server, api, january["id"])
    assert make(api, participant)["previous_id"] == january["id"]
    assert make(api, participant, month="2026-01")["previous_id"] is None


def test_without_storage_there_is_no_pdf(server: RunningServer, api: Client, participant: str) -> None:
    statement = make(api, participant)
    bare = replace(server.settings, documents_url=None, database_url="postgresql://")
    ctx = ReadContext(server.db, UUID(api.plan_manager_id), bare)
    with pytest.raises(DomainError) as raised:
        server.run(service.statement_pdf(ctx, UUID(statement["id"])))
    assert (raised.value.code, raised.value.retry_after) == ("service_unavailable", 60)
    assert "PLANKEEPER_DOCUMENTS_URL" in raised.value.detail


def test_lists_are_paged(new_client: Callable[..., Client]) -> None:
    api = new_client()
    id_ = api.create("/participants", {})["id"]
    create_plan(api, f"/participants/{id_}", "2026-01-01", "2026-12-31")
    made = [make(api, f"/participants/{id_}", month=f"2026-0{number}")["id"] for number in (1, 2, 3)]
    first = api.get(f"/participants/{id_}/statements", limit=2, after="0").json()
    assert [each["id"] for each in first["data"]] == made[:2]
    rest = api.get(f"/participants/{id_}/statements", after=first["pagination"]["next_cursor"]).json()
    assert [each["id"] for each in rest["data"]] == made[2:]
    check_list(api, f"/participants/{id_}/statements")
