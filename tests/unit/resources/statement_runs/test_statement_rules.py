"""When a run of statements is due, who gets a statement, and the state of an item."""

from datetime import UTC, date, datetime

import pytest
from uuid_utils.compat import uuid7

from plankeeper.core.dates import Month
from plankeeper.resources.statement_runs.rules import (
    due_month,
    next_due_day,
    plan_recipients,
    skip_reason,
    sum_up,
)
from plankeeper.resources.statement_runs.schemas import DueOffice, Member, Person, RecipientRow, RecipientState

MARCH = date(2026, 3, 1)


def office(day: int, set_on: date | None = None, last_month: date | None = None) -> DueOffice:
    return DueOffice(plan_manager_id=uuid7(), day=day, set_on=set_on, last_month=last_month)


def person(**values: object) -> Person:
    usual = {
        "id": uuid7(), "status": "Active", "email": None, "receives_mail": False, "receives_post": False,
        "has_postal_address": False, "managed_from": None, "managed_until": None, "date_ceased": None,
        "deceased_on": None, "members": [],
    }  # fmt: skip
    return Person(**(usual | values))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "found, today, expected",
    [
        (office(3), date(2026, 4, 2), None),
        (office(3), date(2026, 4, 3), MARCH),
        (office(3), date(2026, 4, 20), MARCH),  # the server was down on the day
        (office(3, last_month=MARCH), date(2026, 4, 20), None),
        (office(3, last_month=date(2026, 2, 1)), date(2026, 4, 3), MARCH),
        (office(3, set_on=date(2026, 4, 20)), date(2026, 4, 20), None),  # nobody gets a mail because it was set
        (office(3, set_on=date(2026, 4, 20)), date(2026, 5, 3), date(2026, 4, 1)),
        (office(3, set_on=date(2026, 4, 3)), date(2026, 4, 3), MARCH),
        (office(28), date(2026, 1, 28), date(2025, 12, 1)),
    ],
)
def test_the_month_that_is_due(found: DueOffice, today: date, expected: date | None) -> None:
    assert due_month(found, today) == expected


def test_the_next_day_is_the_first_on_which_a_run_is_due() -> None:
    for day in (1, 3, 28):
        for set_on in (None, date(2026, 4, 3), date(2026, 4, 20)):
            for last_month in (None, date(2026, 2, 1), MARCH):
                for today in (date(2026, 4, 2), date(2026, 4, 3), date(2026, 12, 31)):
                    found = next_due_day(day, set_on, last_month, today)
                    assert found >= today
                    assert due_month(office(day, set_on, last_month), found) == Month.of(found).previous.first


def test_one_mail_for_each_mailbox() -> None:
    kim, lee = (Member(id=uuid7(), email=each) for each in ("Kim@example.com", "kim@example.com "))
    found = plan_recipients(person(members=[kim, lee]), sends_mail=True)
    assert [(each.kind, each.id, each.state) for each in found] == [("team_member", kim.id, "waiting")]
    robin = person(email="kim@example.com", receives_mail=True, members=[kim, lee])
    assert [each.kind for each in plan_recipients(robin, sends_mail=True)] == ["participant"]


def test_no_statement_after_a_death_and_outside_the_days_of_the_office() -> None:
    assert skip_reason(person(), MARCH) is None
    assert skip_reason(person(deceased_on=date(2026, 4, 1)), MARCH) == "deceased"
    assert skip_reason(person(managed_until=date(2026, 2, 28)), MARCH) == "not_managed"
    assert skip_reason(person(managed_until=MARCH), MARCH) is None
    assert skip_reason(person(managed_from=date(2026, 3, 31)), MARCH) is None
    assert skip_reason(person(managed_from=date(2026, 4, 1)), MARCH) == "not_managed"
    assert skip_reason(person(status="Inactive", date_ceased=date(2026, 2, 1)), MARCH) == "not_managed"
    assert skip_reason(person(status="Inactive"), MARCH) is None
    assert skip_reason(person(status="Lead"), MARCH) == "not_managed"


@pytest.mark.parametrize(
    "states, expected",
    [
        (("sent", "failed", "waiting"), "failed"),
        (("sent", "waiting", "to_print"), "made"),
        (("sent", "to_print"), "to_print"),
        (("sent", "cancelled"), "sent"),
        (("cancelled",), "skipped"),
    ],
)
def test_the_state_of_an_item(states: tuple[RecipientState, ...], expected: str) -> None:
    rows = [recipient(each) for each in states]
    assert sum_up(rows).state == expected


def recipient(state: RecipientState) -> RecipientRow:
    id_ = uuid7()
    values = {"way": "mail", "recipient_kind": "participant", "reason": None, "message": None}
    return RecipientRow(id=id_, item_id=id_, recipient_id=id_, state=state, queued_at=datetime.now(UTC), **values)  # type: ignore[arg-type]
