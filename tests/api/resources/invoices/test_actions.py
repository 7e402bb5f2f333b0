"""The actions on invoices and their lines over HTTP."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from random import Random
from typing import Any

import pytest
from uuid_utils.compat import uuid7

from plankeeper.resources.invoices.states import InvoiceState, LineState, roll_up
from support.client import Client
from support.webhooks import wait_for_events

Invoice = dict[str, Any]
LINES = [
    {
        "description": "Gardening", "service_date_from": "2026-01-01", "service_date_to": "2026-01-10", "quantity": 3,
        "unit_price": 33.35, "total_price": 100.05,
    },
    {"description": "Cleaning", "quantity": 1, "unit_price": 50, "total_price": 50},
]  # fmt: skip


@pytest.fixture
def invoice(api: Client) -> Invoice:
    return api.create("/invoices", {"invoice_number": "A1", "line_items": LINES})


@pytest.fixture
def act(api: Client, invoice: Invoice) -> Callable[..., Any]:
    """Sends an action on the invoice, or on one of its lines."""

    def send(action: str, line: int | None = None, **body: Any) -> Any:
        path = f"/invoices/{invoice['id']}" + ("" if line is None else f"/lines/{invoice['line_items'][line]['id']}")
        return api.post(f"{path}/{action}", body)

    return send


def states(invoice: Invoice) -> list[str]:
    return [invoice["claim_status"], *(each["claim_status"] for each in invoice["line_items"])]


def test_an_invoice_is_held_with_a_reason_and_released(api: Client, invoice: Invoice, act: Callable[..., Any]) -> None:
    held = act("hold", reason="Price above limit").json()
    assert states(held) == ["on_hold", "new", "new"]
    assert (held["hold_reason"], held["held_by"], held["held_at"] is not None) == ("Price above limit", "test", True)
    again = act("hold", reason="Again")
    assert (again.status_code, again.json()["error"]) == (409, "invalid_transition")
    assert again.json()["detail"] == "The invoice is on hold, so it can't be held."
    released = act("release").json()
    assert states(released) == ["new", "new", "new"]
    assert (released["hold_reason"], released["held_by"], released["held_at"]) == (None, None, None)
    assert act("release").status_code == 409
    types = [each["type"] for each in wait_for_events(api, "invoice.*", 3)]
    assert types == ["invoice.created", "invoice.held", "invoice.released"]


def test_an_invoice_is_cancelled_with_its_lines_and_reopened(act: Callable[..., Any]) -> None:
    act("hold", reason="Wait")
    cancelled = act("cancel", reason="Not ours").json()
    assert states(cancelled) == ["cancelled"] * 3
    assert (cancelled["closing_reason"], cancelled["cancelled_at"] is not None) == ("Not ours", True)
    assert act("cancel", reason="Again").json()["error"] == "invalid_transition"
    reopened = act("reopen").json()
    assert states(reopened) == ["on_hold", "new", "new"]
    assert (reopened["closing_reason"], reopened["cancelled_at"]) == (None, None)


def test_an_invoice_that_is_not_claimed_keeps_its_state(act: Callable[..., Any]) -> None:
    excluded = act("wont-claim", reason="Paid privately").json()
    assert (states(excluded), excluded["wont_claim"]) == (["new"] * 3, True)
    reopened = act("reopen").json()
    assert (reopened["wont_claim"], reopened["closing_reason"]) == (False, None)


def test_a_line_is_cancelled_beside_others(act: Callable[..., Any]) -> None:
    cancelled = act("cancel", 0, reason="Wrong day").json()
    assert states(cancelled) == ["new", "cancelled", "new"]
    assert cancelled["line_items"][0]["closing_reason"] == "Wrong day"
    assert states(act("cancel", 1, reason="Too").json()) == ["cancelled"] * 3
    assert states(act("reopen", 1).json()) == ["new", "cancelled", "new"]
    assert act("retry", 1).json()["detail"] == "Line 2 is new, so it can't be retried."


def test_a_line_is_split_at_a_date(act: Callable[..., Any], invoice: Invoice) -> None:
    split = act("split", 0, date="2026-01-05", quantities=[1, 2]).json()
    first, _, second = split["line_items"]
    assert first["id"] == invoice["line_items"][0]["id"]
    shown = [(each["service_date_from"], each["service_date_to"], each["quantity"]) for each in (first, second)]
    assert shown == [("2026-01-01", "2026-01-04", 1), ("2026-01-05", "2026-01-10", 2)]
    assert [first["total_price"], second["total_price"]] == [33.35, 66.70]
    errors = {
        field: act("split", 1, **body).json()["errors"][0]
        for field, body in {
            "date": {"date": "2026-01-05", "quantities": [0.5, 0.5]},
        }.items()
    }
    assert {field: each["code"] for field, each in errors.items()} == {"date": "inconsistent"}
    wrong = act("split", 0, date="2026-01-02", quantities=[1, 1]).json()["errors"]
    assert [(each["field"], each["code"]) for each in wrong] == [("quantities", "inconsistent")]
    # In 28 digits, the sum of the two is the line's quantity.
    wrong = act("split", 0, date="2026-01-02", quantities=[1, 1e-30]).json()["errors"]
    assert [(each["field"], each["code"]) for each in wrong] == [("quantities[1]", "invalid_format")]


def test_an_approved_invoice_whose_line_is_split_is_pending_again(act: Callable[..., Any]) -> None:
    act("request-approval")
    assert act("approve", reason="By phone").json()["approval_status"] == "approved"
    split = act("split", 0, date="2026-01-05", quantities=[1, 2]).json()
    fields = ("approval_status", "approval_decided_at", "approval_decided_by", "approval_reason")
    assert [split[each] for each in fields] == ["pending", None, None, None]


def test_a_warning_is_ignored_and_restored(act: Callable[..., Any]) -> None:
    ignored = act("ignore-warning", code="check_dates", reason="Known").json()
    assert ignored["state_management"]["ignored_errors"] == ["check_dates"]
    assert act("ignore-warning", code="check_dates", reason="Known").status_code == 409
    assert act("ignore-warning", code="inactive_participant", reason="Known").status_code == 409
    assert act("restore-warning", code="check_dates").json()["state_management"]["ignored_errors"] == []
    assert act("restore-warning", code="check_dates").status_code == 409


def test_a_program_cannot_ignore_a_warning_that_blocks_claims(act: Callable[..., Any]) -> None:
    response = act("ignore-warning", code="missing_provider", reason="Known")
    assert (response.status_code, response.json()["error"]) == (403, "insufficient_scope")
    assert response.json()["detail"] == (
        "The warning blocks claims. Only people with the permission to ignore blocking warnings can ignore it, in the"
        " console."
    )


def test_a_reason_is_required(act: Callable[..., Any]) -> None:
    for body in ({}, {"reason": ""}, {"reason": "x" * 10_001}, {"reason": None}):
        response = act("hold", **body)
        assert (response.status_code, [each["field"] for each in response.json()["errors"]]) == (400, ["reason"]), body
    assert act("hold", reason="x" * 10_000).json()["hold_reason"] == "x" * 10_000


def test_only_a_member_who_may_approve_decides(act: Callable[..., Any]) -> None:
    act("request-approval").raise_for_status()
    response = act("approve", team_member_id=str(uuid7()))
    assert response.status_code == 400
    assert [(each["field"], each["code"]) for each in response.json()["errors"]] == [("team_member_id", "not_found")]


def test_a_line_of_another_invoice_is_not_found(api: Client, invoice: Invoice) -> None:
    other = api.create("/invoices", {"line_items": LINES})
    for ident in (other["line_items"][0]["id"], str(uuid7())):
        response = api.post(f"/invoices/{invoice['id']}/lines/{ident}/cancel", {"reason": "x"})
        assert (response.status_code, response.json()["resource"]["id"]) == (404, ident)


def test_of_two_people_who_act_at_once_one_succeeds(act: Callable[..., Any]) -> None:
    for action, body in (("hold", {"reason": "x"}), ("release", {}), ("cancel", {"reason": "x"}), ("reopen", {})):
        with ThreadPoolExecutor(4) as pool:
            responses = list(pool.map(lambda _, name=action, more=body: act(name, **more), range(4)))
        assert sorted(each.status_code for each in responses) == [200, 409, 409, 409], action


def test_the_state_of_an_invoice_is_the_roll_up_after_any_actions(act: Callable[..., Any]) -> None:
    random = Random(7)
    actions: list[tuple[str, dict[str, Any]]] = [
        ("hold", {"reason": "x"}), ("release", {}), ("cancel", {"reason": "x"}), ("reopen", {}),
        ("wont-claim", {"reason": "x"}),
    ]  # fmt: skip
    of_lines: list[tuple[str, dict[str, Any]]] = [("cancel", {"reason": "x"}), ("reopen", {}), ("retry", {})]
    succeeded = 0
    for _ in range(60):
        line = random.choice([None, 0, 1])
        action, body = random.choice(actions if line is None else of_lines)
        response = act(action, line, **body)
        if response.status_code != 200:
            assert response.json()["error"] == "invalid_transition"
            continue
        succeeded += 1
        shown = response.json()
        lines = tuple(
            LineState(invoice_id=uuid7(), id=uuid7(), number=1, claim_status=each["claim_status"])
            for each in shown["line_items"]
        )
        state = InvoiceState(
            id=uuid7(),
            lines=lines,
            is_held=shown["held_at"] is not None,
            is_cancelled=shown["cancelled_at"] is not None,
        )
        assert shown["claim_status"] == roll_up(state)
    assert succeeded > 10
