"""Documents that become invoices: many in one form without JavaScript, one by one with it, and files that don't."""

import re
from collections.abc import Callable
from html import unescape
from typing import Any
from uuid import UUID

import pytest

from plankeeper.resources.documents.storage import DocumentStorage, StorageError
from support.client import Client
from support.console import Account, Browser, main_text
from support.webhooks import wait_for_events

PAGE = "/console/invoices/upload"
MIB = 1024**2


def pdf(number: int) -> bytes:
    return b"%PDF-1.7 number " + str(number).encode()


def upload(browser: Browser, files: list[tuple[str, bytes]], **form: str) -> Any:
    return browser.http.post(
        PAGE,
        data={"csrf": browser.csrf(PAGE)} | form,
        files=[("files", each) for each in files],
        headers={"Origin": browser.url},
    )


def listed(client: Client) -> list[dict[str, Any]]:
    return client.get("/invoices", limit=100).json()["data"]


def test_each_document_becomes_an_invoice_and_others_say_why_not(owner: Browser, client: Client) -> None:
    files = [(f"{number}.pdf", pdf(number)) for number in range(11)]
    response = upload(owner, [*files[:5], ("<b>letter.docx", b"PK\x03\x04 word"), *files[5:], ("empty.pdf", b"")])
    assert response.status_code == 200
    text = main_text(response.text)
    assert "&lt;b&gt;letter.docx" in response.text
    assert "The file must be a PDF, PNG or JPEG. Its name doesn" in text
    assert "empty.pdf The file is empty. It must be a PDF, PNG or JPEG." in text
    invoices = listed(client)
    assert sorted(each["document"]["file_name"] for each in invoices) == sorted(name for name, _ in files)
    assert all(each["invoice_number"] is None and each["claim_status"] == "new" for each in invoices)
    wait_for_events(client, "invoice.created", len(files))
    wait_for_events(client, "invoice.document_added", len(files))
    first = re.search(r'data-first href="([^"]+)"', response.text)
    assert first
    form = owner.get(unescape(first[1])).text
    assert ("0.pdf" in main_text(form), 'name="next"' in form) == (True, True)


def test_the_script_sends_one_file_and_takes_json(owner: Browser, client: Client) -> None:
    added = upload(owner, [("a.pdf", pdf(1))], response="json").json()
    [invoice] = listed(client)
    assert (added["name"], added["error"], added["other_url"]) == ("a.pdf", None, None)
    assert added["url"].startswith(f"/console/invoices/{invoice['id']}?list=")
    assert (owner.get(added["url"]).status_code, owner.get(added["edit_url"]).status_code) == (200, 200)
    again = upload(owner, [("b.pdf", pdf(1))], response="json").json()
    assert again["other_url"] == f"/console/invoices/{invoice['id']}"
    refused = upload(owner, [("c.txt", b"text")], response="json").json()
    assert (refused["url"], refused["error"]) == (None, "The file must be a PDF, PNG or JPEG. Its name doesn't matter.")


def test_requests_that_are_too_large_or_without_a_file_add_nothing(owner: Browser, client: Client) -> None:
    for files, status, message in (
        ([], 422, "must be a PDF, PNG or JPEG file"),
        ([("large.pdf", b"%PDF-" + bytes(21 * MIB))], 413, "larger than 20 MiB together"),
        ([(f"{number}.pdf", pdf(number)) for number in range(51)], 422, "must be at most 50 files"),
    ):
        response = upload(owner, files) if files else owner.submit(PAGE)
        assert (response.status_code, message in response.text) == (status, True), main_text(response.text)
    assert listed(client) == []


def test_nobody_else_adds_invoices(
    owner: Browser, client: Client, new_browser: Callable[..., Browser], new_account: Callable[..., Account],
    plan_manager_id: UUID,
) -> None:  # fmt: skip
    viewer = new_browser(new_account("viewer", plan_manager_id))
    assert viewer.get(PAGE).status_code == 403
    files = [("files", ("a.pdf", pdf(1)))]
    for browser, token in ((viewer, viewer.csrf()), (owner, "wrong")):
        response = browser.http.post(PAGE, data={"csrf": token}, files=files, headers={"Origin": browser.url})
        assert response.status_code == 403
    assert listed(client) == []


def test_a_storage_that_fails_adds_nothing(owner: Browser, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    async def fail(*_: object) -> None:
        raise StorageError

    monkeypatch.setattr(DocumentStorage, "put", fail)
    added = upload(owner, [("a.pdf", pdf(1))], response="json").json()
    assert added["error"] == "The storage of documents failed. Nothing was stored."
    assert listed(client) == []
