"""Who gets the statement of a plan, what the state of an item is, and when a run is due."""

from collections.abc import Sequence
from datetime import date
from typing import NamedTuple
from uuid import UUID

from plankeeper.core.dates import Month
from plankeeper.resources.statement_runs.schemas import (
    DueOffice,
    ItemReason,
    ItemState,
    Person,
    RecipientKind,
    RecipientRow,
    RecipientState,
)
from plankeeper.resources.statements.schemas import SendWay

MESSAGES: dict[ItemReason, str] = {
    "deceased": "The participant has died, so no statements are made.",
    "not_managed": "The office didn't manage the participant's plan in this month.",
    "opted_out": "Nobody receives it: statements to the participant are turned off, and no team member has turned them"
    " on.",
    "no_recipient": "Nobody receives it: the participant has no email, and neither post nor a team member is set.",
    "no_postal_address": "It is to be sent by post, and the participant has no postal address.",
    "no_mail_server": "This server sends no mail. Its operator must set PLANKEEPER_SMTP_URL.",
    "mail_failed": "The mail couldn't be sent.",
    "error": "It couldn't be made because of an error, which the log of the server describes.",
}


def due_month(office: DueOffice, today: date) -> date | None:
    """The month whose run is due, or None. A run is caught up if the server was down on its day.

    A day that was set after this month's day takes effect next month: nobody gets a mail just because it was set.
    """
    day = today.replace(day=office.day)
    if day > today or (office.set_on and office.set_on > day):
        return None
    month = Month.of(today).previous.first
    return None if office.last_month and office.last_month >= month else month


def next_due_day(day: int, set_on: date | None, last_month: date | None, today: date) -> date:
    """The day on which the next run starts by itself."""
    due = today.replace(day=day)
    month = Month.of(today)
    is_over = due < today or bool(set_on and set_on > due) or bool(last_month and last_month >= month.previous.first)
    return month.next.first.replace(day=day) if is_over else due


class PlannedRecipient(NamedTuple):
    """Somebody who is to get a statement, or the reason why that fails."""

    kind: RecipientKind
    id: UUID
    way: SendWay
    state: RecipientState
    reason: ItemReason | None


def skip_reason(person: Person, month: date) -> ItemReason | None:
    """Why no statement is made at all, or None."""
    if person.deceased_on:
        return "deceased"
    until = person.managed_until or (person.date_ceased if person.status == "Inactive" else None)
    last = Month.of(month).last
    is_managed = not (until and until < month) and not (person.managed_from and person.managed_from > last)
    return None if is_managed and person.status != "Lead" else "not_managed"


def plan_recipients(person: Person, *, sends_mail: bool) -> list[PlannedRecipient]:
    """Who gets the statement. Two people with one mailbox get one mail."""
    emails = dict[str, tuple[RecipientKind, UUID]]()
    if person.receives_mail and person.email:
        emails[person.email.strip().lower()] = ("participant", person.id)
    for each in person.members:
        emails.setdefault(each.email.strip().lower(), ("team_member", each.id))
    waiting: tuple[RecipientState, ItemReason | None] = (
        ("waiting", None) if sends_mail else ("failed", "no_mail_server")
    )
    planned = [PlannedRecipient(*recipient, "mail", *waiting) for recipient in emails.values()]
    if person.receives_post:
        printed: tuple[RecipientState, ItemReason | None] = (
            ("to_print", None) if person.has_postal_address else ("failed", "no_postal_address")
        )
        planned.append(PlannedRecipient("participant", person.id, "post", *printed))
    return planned


def nobody_reason(person: Person) -> ItemReason:
    """Why a statement has no recipients."""
    return "no_recipient" if person.receives_mail else "opted_out"


class Outcome(NamedTuple):
    """The state of an item, and why it was skipped or has failed."""

    state: ItemState
    reason: ItemReason | None
    message: str | None


def sum_up(recipients: Sequence[RecipientRow]) -> Outcome:
    """The state of an item with recipients: the first that holds of failed, made, to print, sent and skipped."""
    if failed := next((each for each in recipients if each.state == "failed"), None):
        return Outcome("failed", failed.reason, failed.message)
    states = {each.state for each in recipients}
    if "waiting" in states:
        return Outcome("made", None, None)
    if "to_print" in states:
        return Outcome("to_print", None, None)
    return Outcome("sent", None, None) if "sent" in states else skipped("opted_out")


def skipped(reason: ItemReason) -> Outcome:
    """The outcome of an item that nobody gets."""
    return Outcome("skipped", reason, MESSAGES[reason])
