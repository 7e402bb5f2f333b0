"""The statements of a participant in the console: make one, read it, and its PDF."""

import pytest

from support.client import Client
from support.console import Browser
from support.server import RunningServer
from support.statements import send_statement


@pytest.fixture
def participant(client: Client) -> str:
    """The path of a participant with a plan."""
    id_ = client.create("/participants", {"first_name": "Robin", "last_name": "Hale"})["id"]
    component = {"name": "Therapy", "kind": "stated", "categories": [15], "amount": 2400}
    body = {"start_date": "2026-01-01", "end_date": "2026-12-31", "components": [component]}
    client.create(f"/participants/{id_}/plans", body)
    return f"/participants/{id_}"


def test_a_statement_is_made_and_read(server: RunningServer, client: Client, owner: Browser, participant: str) -> None:
    url = f"/console{participant}/statements"
    assert "There are no statements yet" in owner.get(url).text
    response = owner.submit(url, {"month": "2026-02"}, url)
    assert response.status_code == 303
    page = owner.get(response.headers["location"]).text
    for text in (
        "Statement for February 2026",
        "Robin Hale",
        "$2,400.00",
        "Is something wrong?",
        "It hasn’t been sent.",
    ):
        assert text in page
    [statement] = client.get(f"{participant}/statements").json()["data"]
    pdf = owner.get(f"{url}/{statement['id']}/pdf")
    assert (pdf.headers["content-type"], pdf.content[:5]) == ("application/pdf", b"%PDF-")
    send_statement(server, client, statement["id"])
    assert "robin@example.com" in owner.get(url).text
    timeline = owner.get(f"/console{participant}/timeline?kind=statements").text
    assert "Statement made: 2026-02" in timeline
    assert "Statement sent: 2026-02" in timeline


def test_what_cannot_be_made_is_said_beside_the_field(client: Client, owner: Browser, participant: str) -> None:
    url = f"/console{participant}/statements"
    page = owner.submit(url, {"month": "2025-12"}, url)
    assert (page.status_code, "has no plan of the participant" in page.text) == (422, True)
    client.put(participant, {"deceased_on": "2026-02-20"}).raise_for_status()
    page = owner.submit(url, {"month": "2026-02"}, url)
    assert (page.status_code, "the participant has died" in page.text) == (422, True)
    assert owner.submit(url, {"month": "2026-02", "after_death": "true"}, url).status_code == 303


def test_names_are_escaped(client: Client, owner: Browser, participant: str) -> None:
    client.put(participant, {"first_name": "<b>Robin</b>"}).raise_for_status()
    statement = client.create(f"{participant}/statements", {"month": "2026-02"})
    page = owner.get(f"/console{participant}/statements/{statement['id']}").text
    assert "&lt;b&gt;Robin&lt;/b&gt; Hale" in page
    assert "<b>Robin" not in page
