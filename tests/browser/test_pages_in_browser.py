"""The pages with the most parts in Chromium, in both themes and widths. The system tests visit every page."""

from collections.abc import Iterator
from typing import Any
from uuid import UUID

import pytest

from support.client import Client
from support.console import add_session, create_account
from support.factories import INVOICE_LINE, create_client
from support.server import RunningServer
from support.watched_page import EVERY_VIEW, XSS_POLYGLOT, Watched, check, submit, visit, watched_page


@pytest.fixture(scope="module")
def client(server: RunningServer) -> Iterator[Client]:
    made = server.run(create_client(server))
    yield made
    made.http.close()


@pytest.fixture(scope="module")
def invoice(client: Client) -> str:
    """The id of an invoice with warnings, whose records have a text that attacks."""
    person = {"first_name": XSS_POLYGLOT, "last_name": XSS_POLYGLOT, "status": "Active", "plan_end_date": "2026-12-31"}
    participant = client.create("/participants", person)["id"]
    provider = client.create("/providers", {"entity_name": XSS_POLYGLOT, "abn": "51824753556"})["id"]
    body = {
        "invoice_number": "INV-1", "invoice_date": "2026-01-15", "total": 100, "participant_id": participant,
        "pm_provider_id": provider, "line_items": [INVOICE_LINE | {"description": XSS_POLYGLOT}],
    }  # fmt: skip
    return client.create("/invoices", body)["id"]


@pytest.fixture(scope="module")
def watched(chromium: Any, server: RunningServer, client: Client) -> Iterator[Watched]:
    owner = server.run(create_account(server, UUID(client.plan_manager_id), "owner"))
    with watched_page(chromium, server.url) as found:
        add_session(found.page.context, server, owner)
        yield found


@pytest.mark.parametrize("path", ["/console", "/console/invoices", "/console/invoices/{}", "/console/invoices/{}/edit"])
def test_a_page_is_accessible_light_safe_and_fits_a_phone(watched: Watched, invoice: str, path: str) -> None:
    visit(watched, path.format(invoice), EVERY_VIEW)


def test_a_form_with_errors_is_accessible_and_fits_a_phone(watched: Watched) -> None:
    watched.page.goto("/console/participants/new")
    watched.page.get_by_label("First name").fill(XSS_POLYGLOT)
    watched.page.get_by_label("Email").fill("nobody@example")
    watched.page.get_by_label("Postcode").fill("1")
    submit(watched.page, "Add participant")
    watched.page.get_by_role("heading", name="Check these values").wait_for()
    check(watched, EVERY_VIEW)


def test_sign_in_is_accessible_and_fits_a_phone(chromium: Any, server: RunningServer) -> None:
    with watched_page(chromium, server.url) as found:
        visit(found, "/console/sign-in", EVERY_VIEW)
