"""A provider's statement that it needn't quote an ABN: record, download, replace, revoke."""

import hashlib
import re
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from support.client import Client
from support.console import Browser, main_text
from support.form_helpers import event_summaries
from support.server import RunningServer, wait_until

PDF = b"%PDF-1.7 signed"


@pytest.fixture
def provider_id(client: Client) -> str:
    return client.create("/providers", {"entity_name": "Small supplier"})["id"]


def send(browser: Browser, provider_id: str, day: str, *files: bytes) -> Any:
    """The response to the form of a statement."""
    uploads = [("files", (f"signed {number}.pdf", each)) for number, each in enumerate(files)]
    return browser.http.post(
        f"/console/providers/{provider_id}/abn-statement",
        data={"csrf": browser.csrf(), "statement_date": day},
        files=uploads or [("files", ("", b""))],
        headers={"Origin": browser.url},
    )


def exemption(client: Client, provider_id: str) -> tuple[bool, str | None]:
    found = client.get(f"/providers/{provider_id}").json()
    return found["abn_exempt"], found["abn_statement_date"]


def test_a_statement_is_recorded_and_revoked(
    server: RunningServer, manager: Callable[..., Browser], client: Client, provider_id: str
) -> None:
    browser, page = manager("override_blocks"), f"/console/providers/{provider_id}"
    assert f'href="{page}/abn-statement"' in browser.get(page).text
    response = send(browser, provider_id, "22/6/2026", PDF)
    assert response.status_code == 303, response.text
    assert "Statement of 22 Jun 2026 recorded." in browser.get(page).text
    assert exemption(client, provider_id) == (True, "2026-06-22")
    shown = browser.get(f"{page}/abn-statement").text
    assert (hashlib.sha256(PDF).hexdigest() in shown, "signed 0.pdf" in shown) == (True, True)
    assert browser.get(f"{page}/abn-statement/file").content == PDF
    assert send(browser, provider_id, "23 Jun 2026", PDF + b" again").status_code == 303
    assert browser.get(f"{page}/abn-statement/file").content == PDF + b" again"
    assert browser.submit(f"{page}/abn-statement/revoke").status_code == 303
    assert exemption(client, provider_id) == (False, None)
    assert browser.get(f"{page}/abn-statement/file").status_code == 404
    assert browser.submit(f"{page}/abn-statement/revoke").status_code == 409
    by = "provider.updated by user"
    assert [each.startswith(by) for each in event_summaries(server, provider_id)[1:]] == [True] * 3
    stored = server.run(
        server.db.rows(int, "select count(*) from documents where plan_manager_id::text = $1", client.plan_manager_id)
    )
    assert stored == [2]  # the files of claims that were made without an ABN


def test_a_statement_needs_a_day_and_a_file(manager: Callable[..., Browser], client: Client, provider_id: str) -> None:
    browser, tomorrow = manager("override_blocks"), (datetime.now(UTC) + timedelta(days=2)).date().isoformat()
    for day, files, message in (
        ("", [PDF], "Statement date is required"),
        ("31/2/2026", [PDF], "doesn’t exist"),
        (tomorrow, [PDF], "must be today or earlier"),
        ("1/1/2026", [], "must be a PDF, PNG or JPEG file"),
        ("1/1/2026", [b"words"], "must be a PDF, PNG or JPEG"),
    ):
        response = send(browser, provider_id, day, *files)
        assert response.status_code in (415, 422), response.text
        assert message in response.text, message
    assert exemption(client, provider_id) == (False, None)


def test_only_people_with_the_permission_see_the_statement(manager: Callable[..., Browser], provider_id: str) -> None:
    other, page = manager("make_claims", "make_payments"), f"/console/providers/{provider_id}"
    assert f'href="{page}/abn-statement"' not in other.get(page).text
    assert send(other, provider_id, "1/1/2026", PDF).status_code == 403
    for path in ("", "/file"):
        assert other.get(f"{page}/abn-statement{path}").status_code == 403


def test_a_download_is_in_the_access_log(
    server: RunningServer, owner: Browser, client: Client, provider_id: str
) -> None:
    assert send(owner, provider_id, "1/1/2026", PDF).status_code == 303
    assert owner.get(f"/console/providers/{provider_id}/abn-statement/file").content == PDF
    wait_until(lambda: "Provider Small supplier" in main_text(owner.get("/console/settings/access").text))


def test_a_restored_provider_keeps_its_statement(owner: Browser, client: Client, provider_id: str) -> None:
    assert send(owner, provider_id, "1/1/2026", PDF).status_code == 303
    page = f"/console/providers/{provider_id}"
    entry = re.findall(
        r'<a href="(/console/trash/[0-9a-f-]{36})">Undo</a>',
        owner.get(owner.submit(f"{page}/delete").headers["location"]).text,
    )
    assert owner.submit(f"{entry[0]}/restore").status_code == 303
    assert exemption(client, provider_id) == (True, "2026-01-01")
    assert owner.get(f"{page}/abn-statement/file").content == PDF
