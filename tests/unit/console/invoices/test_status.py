"""The sentences that say where an invoice stands and what comes next."""

from datetime import UTC, date, datetime
from decimal import Decimal
from typing import Any
from uuid import UUID
from zoneinfo import ZoneInfo

from plankeeper.console.invoices.status import describe_standard, describe_status
from plankeeper.resources.invoices.schemas import Invoice, LineItem, StateManagement
from plankeeper.resources.office_settings.service_standard import ServiceStandard

ZONE = ZoneInfo("Australia/Sydney")
TODAY = date(2026, 11, 24)
MORNING = datetime(2026, 11, 2, 22, 30, tzinfo=UTC)  # 3 Nov in Sydney
ID = UUID(int=1)


def make(struct_type: type[Any], **values: Any) -> Any:
    """A struct with these values, and with null in the fields that are left out."""
    return struct_type(**{name: values.get(name) for name in struct_type.__struct_fields__})


def sentences(*warnings: str, decided_by: str = "", **values: Any) -> tuple[str, str]:
    defaults = {
        "id": ID, "claim_status": "new", "approval_status": "not_required", "payee": "provider", "is_deleted": False,
        "wont_claim": False, "received_at": MORNING, "total": Decimal(1), "line_items": [],
        "state_management": StateManagement([], []),
    }  # fmt: skip
    return describe_status(make(Invoice, **(defaults | values)), warnings, TODAY, ZONE, decided_by)


def test_a_held_invoice_names_the_day_the_person_the_reason_and_what_to_do() -> None:
    held = {"claim_status": "on_hold", "held_at": MORNING, "held_by": "Alex", "hold_reason": "price above\nlimit"}
    assert sentences(**held) == ("Held since 3 Nov by Alex: price above limit.", "Next: release it.")
    assert sentences("No provider", "Check the date", **held)[1] == (
        "Next: settle 2 open warnings (No provider, Check the date), then release it."
    )
    assert sentences(**held | {"held_at": datetime(2025, 1, 1, tzinfo=UTC), "hold_reason": "Why?"})[0] == (
        "Held since 1 Jan 2025 by Alex: Why?"
    )
    assert sentences(claim_status="on_hold") == ("Held.", "Next: release it.")


def test_what_keeps_a_new_invoice_from_being_claimed_is_named() -> None:
    assert sentences() == ("Received 3 Nov. Nothing is left to check.", "Next: claim it.")
    assert sentences("A", "B", "C", "D", "E", approval_status="pending") == (
        "Received 3 Nov, with 5 open warnings: A, B, C and 2 more.",
        "Next: correct the invoice, or ignore the warning with a reason.",
    )
    assert sentences(approval_status="pending")[1] == "Next: the participant or a nominee approves it."
    assert sentences(approval_status="rejected")[0] == "Received 3 Nov, and not approved."
    assert sentences(claim_status="flagged")[0] == (
        "Received 3 Nov, and left out of the last claim. Nothing is left to check."
    )


def test_a_rejected_approval_names_the_person_the_day_and_the_reason() -> None:
    rejected = {"approval_status": "rejected", "approval_decided_at": MORNING, "approval_reason": "Not delivered"}
    assert sentences(decided_by="Ann Lee", **rejected) == (
        "Received 3 Nov, and rejected by Ann Lee on 3 Nov: Not delivered.",
        "Next: correct it and ask again, or cancel it.",
    )
    assert sentences("No provider", **rejected)[0] == (
        "Received 3 Nov, and rejected on 3 Nov: Not delivered. It also has 1 open warning: No provider."
    )


def test_closed_invoices_say_why_and_that_they_can_be_reopened() -> None:
    reopen = "Next: nothing, unless you reopen it."
    cancelled = {"claim_status": "cancelled", "cancelled_at": MORNING, "closing_reason": "Billed twice"}
    assert sentences(**cancelled) == ("Cancelled since 3 Nov: Billed twice.", reopen)
    assert sentences(claim_status="cancelled") == ("Cancelled.", reopen)
    assert sentences(wont_claim=True, closing_reason="Too small.") == ("Won’t be claimed: Too small.", reopen)
    assert sentences(is_deleted=True) == ("Deleted.", "It is neither claimed nor paid.")


def test_each_status_has_its_sentences() -> None:
    expected = {
        "pending": ("Claimed, and not decided yet.", "Next: the agency’s decision."),
        "rejected": ("The agency has rejected it.", "Next: correct it, claim it again, or cancel it."),
        "payment_ready": ("The agency has paid for it.", "Next: pay the provider."),
        "partially_ready": (
            "The agency has paid for a part of it.", "Next: pay the provider that part, and follow up the rest.",
        ),
        "partially_paid": ("A part of it is paid.", "Next: follow up the rest."),
        "paid": ("Paid.", "Nothing is left to do."),
    }  # fmt: skip
    assert {status: sentences(claim_status=status) for status in expected} == expected
    assert sentences(claim_status="payment_ready", payee="participant")[1] == "Next: pay the participant."
    lines = [
        make(LineItem, is_deleted=deleted, rejection_reason=why) for deleted, why in ((True, "No"), (False, "Cap"))
    ]
    assert sentences(claim_status="rejected", line_items=lines)[0] == "The agency has rejected it: Cap."


def test_rejected_lines_are_named_with_the_words_of_the_agency_whatever_the_others_are() -> None:
    def lines(*states: str, why: str = "C11: not in the plan") -> list[Any]:
        reasons = {"rejected": why}
        return [
            make(LineItem, claim_status=each, is_deleted=False, rejection_reason=reasons.get(each)) for each in states
        ]

    one = {"line_items": lines("paid", "rejected")}
    line = "The agency has rejected line 2: C11: not in the plan."
    todo = "Next: correct line 2, claim it again, or cancel it."
    assert sentences(claim_status="partially_paid", **one) == (f"A part of it is paid. {line}", todo)
    assert sentences(claim_status="pending", **one)[0] == f"Claimed, and not decided yet. {line}"
    assert sentences(**one) == (line, todo)
    assert sentences("No provider", approval_status="pending", **one)[0] == (
        f"{line} It also waits for approval. It also has 1 open warning: No provider."
    )
    assert sentences(approval_status="rejected", approval_decided_at=MORNING, decided_by="Ann Lee", **one)[0] == (
        f"{line} It was rejected by Ann Lee on 3 Nov."
    )
    assert sentences(claim_status="on_hold", **one) == (f"Held. {line}", "Next: release it.")
    several = [*lines("rejected", "new", "rejected"), *lines("rejected", why="C12")]
    assert sentences(claim_status="new", line_items=several) == (
        "The agency has rejected lines 1 and 3: C11: not in the plan. The agency has rejected line 4: C12.",
        "Next: correct lines 1, 3 and 4, claim them again, or cancel them.",
    )
    many = lines(*["rejected"] * 8)
    assert sentences(claim_status="rejected", line_items=many)[0].startswith(
        "The agency has rejected lines 1, 2, 3, 4 and 4 more: C11"
    )


def test_lines_that_wait_beside_claimed_ones_are_named() -> None:
    def mixed(*states: str) -> list[Any]:
        return [make(LineItem, claim_status=each, is_deleted=False) for each in states]

    assert sentences(claim_status="partially_paid", line_items=mixed("paid", "new")) == (
        "A part of it is paid.", "Next: follow up the rest.",
    )  # fmt: skip
    assert sentences("No provider", claim_status="partially_paid", line_items=mixed("paid", "new"))[0] == (
        "A part of it is paid. Line 2 isn’t claimed yet. Received 3 Nov, with 1 open warning: No provider."
    )
    flagged = sentences(
        claim_status="pending", approval_status="pending", line_items=mixed("flagged", "new", "pending")
    )
    start = "Claimed, and not decided yet. Lines 1 and 2 aren’t claimed yet. Received 3 Nov, and left out of the last"
    assert flagged == (
        f"{start} claim, and waiting for approval.", "Next: the participant or a nominee approves it.",
    )  # fmt: skip


def test_the_service_standard_says_when_an_invoice_is_expected_to_be_paid() -> None:
    def standard(day: int, **values: Any) -> str:
        received = datetime(2026, 11, day, 1, tzinfo=UTC)
        defaults = {"id": ID, "claim_status": "new", "is_deleted": False, "wont_claim": False, "received_at": received}
        return describe_standard(make(Invoice, **(defaults | values)), ServiceStandard(), TODAY, ZONE)

    assert standard(17) == "Expected to be claimed by 24 Nov, and paid by 26 Nov."
    assert standard(16) == "Late: by the service standard, it should have been claimed by 23 Nov."
    assert standard(16, claim_status="on_hold").startswith("Late: ")
    assert standard(16, claim_status="pending") == "Expected to be paid by 25 Nov."
    assert standard(2, claim_status="payment_ready") == "Was expected to be paid by 11 Nov."
    for closed in ({"claim_status": "paid"}, {"claim_status": "cancelled"}, {"wont_claim": True}, {"is_deleted": True}):
        assert standard(2, **closed) == ""
