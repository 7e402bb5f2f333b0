"""The document of an invoice in the console: images of its pages, the file, and who may see them."""

from collections.abc import Callable
from pathlib import Path
from uuid import UUID

import httpx
import pytest
from uuid_utils.compat import uuid7

from plankeeper.access.access_log import store
from plankeeper.access.access_log.schemas import AccessRecordFilter
from support import factories
from support.client import PREFIX, Client
from support.console import Account, Browser
from support.pdf_files import text_pdf
from support.server import RunningServer, wait_until

PDF = text_pdf(pages=2)


@pytest.fixture
def invoice_id(server: RunningServer, client: Client) -> str:
    return factories.import_invoice(server, client, {"participant": None, "provider": None})


def upload(client: Client, invoice_id: str, content: bytes) -> None:
    headers = client.headers() | {"Content-Disposition": "attachment; filename*=UTF-8''B%C3%BCro%20%227%22.pdf"}
    url = f"{PREFIX}/invoices/{invoice_id}/document"
    client.http.put(url, content=content, headers=headers).raise_for_status()


def view(browser: Browser, invoice_id: str, path: str = "") -> httpx.Response:
    return browser.get(f"/console/invoices/{invoice_id}/document{path}")


def test_pages_are_images_and_the_file_is_a_download(
    server: RunningServer, owner: Browser, client: Client, invoice_id: str
) -> None:
    upload(client, invoice_id, PDF)
    page = view(owner, invoice_id, "/pages/2")
    assert (page.status_code, page.headers["content-type"], page.content[:3]) == (200, "image/jpeg", b"\xff\xd8\xff")
    assert page.headers["cache-control"] == "no-store"
    missing = [view(owner, invoice_id, f"/pages/{each}").status_code for each in ("0", "3", "-1", "x", "1" * 30)]
    assert missing == [404] * 5
    file = view(owner, invoice_id)
    assert (file.status_code, file.content) == (200, PDF)
    expected = {
        "content-type": "application/pdf",
        "content-length": str(len(PDF)),
        "content-disposition": "attachment; filename=\"B_ro _7_.pdf\"; filename*=UTF-8''B%C3%BCro%20%227%22.pdf",
        "content-security-policy": "sandbox; default-src 'none'",
        "x-content-type-options": "nosniff",
    }
    assert {name: file.headers[name] for name in expected} == expected
    listed = lambda: server.run(  # noqa: E731
        store.list_newest(server.db, UUID(client.plan_manager_id), AccessRecordFilter(), 10)
    )
    wait_until(lambda: len(listed()) == 2)
    records = [(each.action, each.resource_kind, str(each.resource_id)) for each in listed()]
    assert sorted(records) == [("exported", "invoice", invoice_id), ("viewed", "invoice", invoice_id)]


def test_a_damaged_document_has_a_placeholder_and_a_lost_one_an_error_page(
    server: RunningServer, owner: Browser, client: Client, invoice_id: str
) -> None:
    upload(client, invoice_id, b"%PDF-1.7 and nothing else")
    page = view(owner, invoice_id, "/pages/1")
    assert (page.status_code, page.headers["content-type"]) == (200, "image/svg+xml")
    assert "The document is damaged." in page.text
    folder = Path((server.settings.documents_url or "").removeprefix("file://"))
    (folder / client.get(f"/invoices/{invoice_id}").json()["s3_key"]).unlink()
    assert [view(owner, invoice_id, path).status_code for path in ("", "/pages/1")] == [503, 503]


def test_only_the_people_of_the_plan_manager_see_a_document(
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
    new_plan_manager: Callable[[], UUID],
    owner: Browser,
    client: Client,
    invoice_id: str,
) -> None:
    assert view(owner, invoice_id, "/pages/1").status_code == 404  # without a document
    upload(client, invoice_id, PDF)
    stranger = new_browser(new_account(owner=new_plan_manager()))
    assert [view(stranger, invoice_id, path).status_code for path in ("", "/pages/1")] == [404, 404]
    assert [view(new_browser(), invoice_id, path).status_code for path in ("", "/pages/1")] == [303, 303]


def test_the_document_of_an_erased_person_is_restricted_to_people_who_make_payments(
    server: RunningServer,
    owner: Browser,
    client: Client,
    new_browser: Callable[..., Browser],
    new_account: Callable[..., Account],
) -> None:
    ids = {"participant": str(uuid7()), "provider": None}
    invoice_id = factories.import_invoice(server, client, ids)
    upload(client, invoice_id, PDF)
    manager = new_browser(new_account("manager"))
    assert view(manager, invoice_id).status_code == 200
    statement = "insert into kept_financial_records (plan_manager_id, participant_id) values ($1, $2)"
    server.run(server.db.execute(statement, UUID(client.plan_manager_id), UUID(ids["participant"])))
    paths = ("", "/pages/1")
    assert [view(manager, invoice_id, each).status_code for each in paths] == [404, 404]
    assert [view(owner, invoice_id, each).status_code for each in paths] == [200, 200]
    for page in (f"/console/review/{invoice_id}", f"/console/invoices/{invoice_id}"):
        hidden, shown = manager.get(page).text, owner.get(page).text
        assert ("kept as a financial record" in hidden, f"{invoice_id}/document" in hidden) == (True, False)
        assert ("kept as a financial record" in shown, f"{invoice_id}/document" in shown) == (False, True)
    assert manager.submit(f"/console/review/{invoice_id}/prepare").status_code == 404
