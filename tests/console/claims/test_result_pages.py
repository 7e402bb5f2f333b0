"""Results files and receipts of claim batches in the console."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

from support.claims import Office
from support.console import Browser, main_text
from support.form_helpers import form_fields, submit_form
from support.results import SubmittedBatch, results_csv


@pytest.fixture
def batch(office: Office) -> SubmittedBatch:
    """A submitted batch with four claims of 290.99."""
    days = ("2026-01-12", "2026-01-13", "2026-01-14", "2026-01-15")
    lines = [office.line(service_date_from=day, service_date_to=day) for day in days]
    return SubmittedBatch(office, office.invoice("A1", *lines))


def upload(browser: Browser, batch: SubmittedBatch, content: bytes) -> str:
    """The path of the preview."""
    response = send(browser, batch, content)
    assert response.status_code == 303, response.text
    return response.headers["location"]


def send(browser: Browser, batch: SubmittedBatch, content: bytes):  # noqa: ANN201 - as Browser.submit
    path = f"/console/claims/{batch.id}/results"
    return browser.submit(path, files={"file": ("results.csv", content, "text/csv")})


def test_a_file_is_previewed_and_then_applied(office: Office, owner: Browser, batch: SubmittedBatch) -> None:
    rows = [batch.paid(0), batch.paid(1, 200), batch.rejected(2), batch.row(3, "PENDING", "")]
    path = upload(owner, batch, results_csv(rows))
    page = main_text(owner.get(path).text)
    assert "Paid by the agency $490.99 Paid in full 1 Paid in part 1 Rejected 1 Not recorded 1" in page
    assert "A1_2 $290.99 $200.00 $90.99 —" in page
    assert "Nothing is recorded yet. 3 results are new." in page
    assert "C11: not in the plan" in page
    assert "5 A1 line 4 The status 'PENDING' is neither SUCCESSFUL nor ERROR." in page
    assert batch.state() == "submitted"
    assert owner.submit(path).headers["location"] == path
    page = main_text(owner.get(path).text)
    assert "Results recorded: 1 paid, 1 paid in part, 1 rejected." in page
    assert "The results of this file are recorded. 1 of its rows isn’t: see below." in page
    assert "Show rejected lines" in page
    assert f'action="{path}"' not in page
    text = main_text(owner.get(f"/console/claims/{batch.id}").text)
    assert "Partly processed" in text
    assert "Paid by the agency $490.99 Pending $290.99 Not paid $381.98" in text
    assert "correct the rejected lines" in text
    assert "Results recorded: 1 paid, 1 paid in part, 1 rejected; 1 row changed nothing" in text
    rejected = main_text(owner.get(f"/console/claims/{batch.id}?state=rejected").text)
    assert "C11: not in the plan" in rejected
    assert "A1_3" in rejected
    assert "A1_2" not in rejected


def test_the_same_file_again_has_nothing_new(owner: Browser, batch: SubmittedBatch) -> None:
    rows = [batch.paid(each) for each in range(4)]
    batch.apply(*rows)
    page = owner.get(upload(owner, batch, results_csv(rows))).text
    assert "The results of this file are recorded. Back to the batch" in main_text(page)
    assert "Record these results" not in page


def test_a_file_of_another_batch_changes_nothing(office: Office, owner: Browser, batch: SubmittedBatch) -> None:
    other = SubmittedBatch(office, office.invoice("B1", office.line(service_date_from="2026-01-10")))
    page = main_text(owner.get(upload(owner, batch, results_csv([other.paid(0)]))).text)
    assert "No row of this file is a result of this batch" in page
    assert f"is in claim batch {other.number}, and not in this one." in page


@pytest.mark.parametrize("content", [b"", b"a,b\n1,2\n", b"\xff\xfe", b"PK\x03\x04"])
def test_a_file_without_results_is_rejected_and_the_field_named(
    owner: Browser, batch: SubmittedBatch, content: bytes
) -> None:
    response = send(owner, batch, content)
    assert response.status_code == 422
    assert 'href="#file"' in response.text
    assert owner.submit(f"/console/claims/{batch.id}/results").status_code == 422


def test_only_the_account_that_uploaded_a_file_sees_it(
    owner: Browser, batch: SubmittedBatch, manager: Callable[..., Browser]
) -> None:
    path = upload(owner, batch, results_csv([batch.paid(0)]))
    other = manager("make_claims")
    assert other.get(path).status_code == 404
    assert other.submit(path).status_code == 404
    assert manager("make_payments").get(path).status_code == 403
    assert batch.state() == "submitted"


def test_a_draft_has_no_results(office: Office, owner: Browser) -> None:
    batch = office.batch(office.invoice("A1"))
    assert "This batch is a draft" in main_text(owner.get(f"/console/claims/{batch['id']}/results").text)
    assert "This batch is a draft" in main_text(owner.get(f"/console/claims/{batch['id']}/receipts").text)


def test_a_double_click_records_money_once(owner: Browser, batch: SubmittedBatch) -> None:
    path = f"/console/claims/{batch.id}/receipts"
    values = {"date": "15/1/2026", "amount": "290.99", "reference": "NDIA 40500"}
    form = form_fields(owner, path) | values
    with ThreadPoolExecutor(2) as threads:
        saved, late = sorted(
            threads.map(lambda _: owner.submit(path, form), range(2)), key=lambda each: each.status_code
        )
    assert (saved.status_code, late.status_code) == (303, 409)
    text = main_text(late.text)
    assert "Somebody has just recorded money for this batch. It now has: $290.99. Record yours only if" in text
    assert "Recorded $290.99" in text
    assert ('value="290.99"' in late.text, 'value="NDIA 40500"' in late.text) == (True, True)
    assert submit_form(owner, path, values).status_code == 303  # the agency has paid the same amount again
    assert "Recorded $581.98" in main_text(owner.get(path).text)


def test_money_that_arrives_is_recorded(owner: Browser, batch: SubmittedBatch) -> None:
    path = f"/console/claims/{batch.id}/receipts"
    form = {"date": "15/1/2026", "amount": "$1,163.96", "reference": "NDIA 40500"}
    assert submit_form(owner, path, form).status_code == 303
    text = main_text(owner.get(path).text)
    assert "Recorded $1,163.96" in text
    assert "NDIA 40500" in text
    assert "Money received $1,163.96" in main_text(owner.get(f"/console/claims/{batch.id}").text)
    wrong = submit_form(owner, path, {"date": "31 Feb 2026", "amount": "lots", "reference": "x" * 300})
    assert wrong.status_code == 422
    for name in ("date", "amount", "reference"):
        assert f'href="#{name}"' in wrong.text
    assert submit_form(owner, path, {"date": "1/1/2999", "amount": "1"}).status_code == 422
    too_much = submit_form(owner, path, {"date": "15/1/2026", "amount": "-2000"})
    assert "must not correct more than has been received" in too_much.text


def test_money_of_a_cancelled_batch_is_corrected(owner: Browser, batch: SubmittedBatch) -> None:
    page = f"/console/claims/{batch.id}"
    submit_form(owner, f"{page}/receipts", {"date": "15/1/2026", "amount": "500"})
    batch.client.post(f"/claim-batches/{batch.id}/cancel", {"uploaded": False, "reason": "Wrong"}).raise_for_status()
    assert f'href="{page}/receipts"' in owner.get(page).text
    assert "you can only correct money that was recorded by mistake" in main_text(owner.get(f"{page}/receipts").text)
    assert submit_form(owner, f"{page}/receipts", {"date": "15/1/2026", "amount": "-500"}).status_code == 303
    assert "so no money is expected for it" in main_text(owner.get(f"{page}/receipts").text)
    assert f'href="{page}/receipts"' not in owner.get(page).text
