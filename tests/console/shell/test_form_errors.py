"""The errors of every form: a summary with links to the fields, the same message beside each, and the values kept."""

import re
from collections.abc import Iterator
from html import unescape
from typing import Any

import pytest

from plankeeper.console.shell.routing import PageRoute
from support.console import Browser
from support.factories import FORMS, SeededPlanManager, route_name, seed_plan_manager
from support.form_helpers import require_linked_errors
from support.server import RunningServer
from support.sweeps import sweep

INVOICE_ACTIONS = ("hold", "release", "cancel", "wont-claim", "reopen", "assign")
# Forms whose errors are about no field that a person fills in, with the reason.
WITHOUT_FIELD_ERRORS = {
    "POST /console/settings/webhooks/{endpoint_id}/test": "a button",
    "POST /console/settings/webhooks/{endpoint_id}/deliveries/{delivery_id}/retry": "a button",
    "POST /console/settings/people/{account_id}/remove": "a button, with a choice",
    "POST /console/settings/people/two-factor": "a button",
    "POST /console/settings/people/single-sign-on": "a button",
    "POST /console/plan-managers": "buttons",
    "POST /console/participants/{participant_id}/hold/release": "a button",
    "POST /console/settings/people/invitations/{invitation_id}/again": "a button",
    "POST /console/trash/{entry_id}/restore": "a button",
    "POST /console/checks": "a button",
    "POST /console/participants/{participant_id}/plans/{plan_id}/delete": "a button",
    "POST /console/notes/{note_id}/delete": "a button",
    "POST /console/note-types/{note_type_id}/delete": "a button",
    "POST /console/imports/{import_id}": "a button, with tick boxes",
    "POST /console/imports/{import_id}/included": "tick boxes",
    "POST /console/imports/{import_id}/undo": "a button",
    "POST /console/activity/{event_id}/request": "a button",
    "POST /console/activity/{event_id}/undo": "a button, with the choice of values that have changed since",
    "POST /console/participants/selected/account-manager": "the page needs selected records: its test looks at errors",
    "POST /console/payments/unconfirmed": "likewise, with tick boxes",
    "POST /console/invoices/selected/ignore-warning": "likewise",
    **{f"POST /console/invoices/selected/{each}": "likewise" for each in INVOICE_ACTIONS},
    **{
        f"POST /console/invoices/{{invoice_id}}/lines/{{line_id}}/{each}": "on the invoice's page: likewise"
        for each in ("cancel", "reopen", "retry", "split")
    },
    **{f"POST /console/invoices/{{invoice_id}}/{each}": "on the invoice's page: likewise" for each in INVOICE_ACTIONS},
    "POST /console/invoices/{invoice_id}/request-approval": "on the invoice's page: likewise",
    **{f"POST /console/invoices/{{invoice_id}}/approval/{each}": "likewise" for each in ("send", "revoke", "record")},
    "POST /console/approvals/{approval_token}/approve": "a button",
    "POST /console/claims/new": "a button",
    "POST /console/claims/{claim_batch_id}/file": "a button",
    "POST /console/claims/{claim_batch_id}/submit": "a button",
    "POST /console/claims/{claim_batch_id}/results/{results_file_id}": "a button",
    "POST /console/invoices/{invoice_id}/lines/{line_id}/claim-rest": "a button",
    "POST /console/invoices/{invoice_id}/lines/{line_id}/confirm-result": "a button",
    **{
        f"POST /console/review/{{invoice_id}}/{each}": "on the page of the queue, whose tests look at errors"
        for each in (
            *("hold", "release", "cancel", "wont-claim", "request-approval", "assign", "warnings/{code}/ignore"),
            *("lines/{line_id}/retry", "lines/{line_id}/cancel", "approval/record", "document"),
        )
    },
    **{
        f"POST /console/payments/{{payment_run_id}}/{each}": "on the page of a draft, whose tests look at errors"
        for each in ("file", "mark-paid", "cancel")
    },
    "POST /console/statements/{statement_run_id}/retry": "a button",
    "POST /console/statements/{statement_run_id}/posted": "a button",
    "POST /console/payments/fees": "a list of months",
    "POST /console/payments/fees/take": "shown if fees can be taken: its test looks at errors",
    "POST /console/payments": "hidden fields: its test looks at errors",
    "POST /console/imports/{file_id}/columns": "the error is about all columns",
    # The tests of these pages look at their errors.
    "POST /console/settings/after-restore": "a restored database shows it",
    "POST /console/single-sign-on": "a server with single sign-on shows it",
    "POST /console/forgot-password": "a server that sends mails shows it",
    "POST /console/account/two-factor/off": "an account with two-factor authentication shows it",
    "POST /console/account/recovery-codes": "likewise",
}
FORMS_WITH_ERRORS = [each for each in FORMS if each.on_error and route_name(each) not in WITHOUT_FIELD_ERRORS]
# A text that no field accepts: too long, on two lines, no email, no date, no option.
INVALID = "31 Feb 2026\n" + "x" * 600
LONG_FIELDS = ("note", "text", "reason", "reason_for_leaving", "event_types", "url")
TOO_LONG = "x" * 10_001


@pytest.fixture(scope="module")
def seeded(server: RunningServer) -> Iterator[SeededPlanManager]:
    found = seed_plan_manager(server)
    yield found
    found.client.http.close()


@pytest.fixture(scope="module")
def signed_in(seeded: SeededPlanManager) -> Iterator[Browser]:
    browser = seeded.browser()
    yield browser
    browser.http.close()


def form_of(browser: Browser, path: str, page: str) -> dict[str, Any]:
    """Every field of the form that posts to `path`, with an invalid value; hidden fields stay as they are."""
    forms = re.findall(rf'<form method="post" action="{re.escape(path)}"[^>]*>(.*?)</form>', page, re.DOTALL)
    assert forms, page
    fields: dict[str, Any] = {}
    for tag in re.findall(r"<(?:input|select|textarea) [^>]*>", forms[0]):
        name = unescape(re.search(r' name="([^"]+)"', tag)[1])  # type: ignore[index]
        value = re.search(r' value="([^"]*)"', tag)
        if 'type="hidden"' in tag:
            fields[name] = unescape(value[1]) if value else ""
        elif 'type="file"' not in tag:
            fields[name] = TOO_LONG if name in LONG_FIELDS else INVALID
    del fields["csrf"]
    return fields


def page_of(entry: PageRoute, seeded: SeededPlanManager) -> str:
    """The path of the page with the form: the form's own, or that of the list's page for new records."""
    path = seeded.path(entry)
    pages = {
        "/console/participants": "/console/participants/new",
        "/console/providers": "/console/providers/new",
        "/console/note-types": "/console/note-types/new",
        "/console/imports": "/console/imports/new",
        "/console/account-managers": "/console/account-managers/new",
        "/console/settings/keys": "/console/settings/keys/new",
        "/console/settings/webhooks": "/console/settings/webhooks/new",
        "/console/settings/people": "/console/settings/people/invite",
        "/console/views": "/console/views/new",
        "/console/checks/levels": "/console/checks",
    }
    if path.endswith(("/replay", "/return")):
        return path.removesuffix("/replay").removesuffix("/return")
    if entry.path.startswith(("/console/approvals/", "/console/bank-details/")):
        return path.removesuffix("/reject").removesuffix("/approve")
    return (
        f"{path}/new"
        if path.endswith(("/team-members", "/plans", "/notes", "/bank-details"))
        else pages.get(path, path)
    )


@sweep("entry", FORMS_WITH_ERRORS, ids=route_name)
def test_each_error_is_linked_to_its_field(seeded: SeededPlanManager, signed_in: Browser, entry: PageRoute) -> None:
    path = seeded.path(entry)
    form = form_of(signed_in, path, signed_in.get(page_of(entry, seeded)).text)
    response = signed_in.submit(path, form)
    assert response.status_code in (401, 422)
    assert require_linked_errors(response.text)
