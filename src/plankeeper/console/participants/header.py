"""The context of all pages of a participant: the record, and the numbers of their header."""

from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.components.labels import display_name
from plankeeper.console.components.money import PlanProgress, age_on, describe_exit, plan_progress
from plankeeper.console.lists.definition import MAX_COUNTED
from plankeeper.console.lists.reading import ListPlace, list_position
from plankeeper.console.participants.list import PARTICIPANTS
from plankeeper.console.shell.routing import PREFIX, PageRequest
from plankeeper.core.context import or_404
from plankeeper.core.formatting import format_money
from plankeeper.resources.invoices import queries
from plankeeper.resources.invoices.queries import ParticipantNumbers, PrimaryContact
from plankeeper.resources.participants import store
from plankeeper.resources.participants.rules import is_ndis_number
from plankeeper.resources.participants.schemas import Participant


class ParticipantHeader(NamedTuple):
    """The header of a participant's pages.

    `age` is in years, today or at death; `exit_text` is null unless they left.
    """

    participant: Participant
    name: str
    page_url: str
    has_scheme_number: bool
    age: int | None
    progress: PlanProgress
    exit_text: str | None
    contact: PrimaryContact | None
    contact_name: str | None
    numbers: ParticipantNumbers
    place: ListPlace | None

    @property
    def suffix(self) -> str:
        """The query that keeps the position in the list of participants in the addresses of the tabs."""
        return self.place.suffix if self.place else ""

    @property
    def tabs(self) -> list[tuple[str, str, int | None]]:
        """The address, the name and the count of each tab."""
        return [
            (self.page_url + self.suffix, "Overview", None),
            (f"{self.page_url}/invoices{self.suffix}", "Invoices", self.numbers.invoices),
            (f"{self.page_url}/plans{self.suffix}", "Plans", None),
            (f"{self.page_url}/statements{self.suffix}", "Statements", None),
            (f"{self.page_url}/team{self.suffix}", "Team", self.numbers.team_members),
            (f"{self.page_url}/timeline{self.suffix}", "Timeline", None),
        ]


async def participant_context(request: PageRequest, participant_id: UUID, tab: str) -> dict[str, Any]:
    """The context of `participants/page.html`, from two statements; raises NotFound.

    `tab` is the suffix of the tab's path, such as `/team`; the overview adds nothing.
    """
    db, plan_manager_id = request.db, request.plan_manager_id
    participant = or_404(await store.get(db, plan_manager_id, participant_id))
    plan = (participant.plan_start_date, participant.plan_end_date)
    numbers = await queries.get_participant_numbers(db, plan_manager_id, participant_id, *plan)
    today = request.today
    has_left, exit_date = participant.status == "Inactive", participant.date_ceased
    header = ParticipantHeader(
        participant,
        display_name(participant),
        f"{PREFIX}/participants/{participant_id}",
        is_ndis_number(participant.participant_number or ""),
        age_on(participant.date_of_birth, participant.deceased_on or today) if participant.date_of_birth else None,
        plan_progress(*plan, min(today, exit_date) if has_left and exit_date else today),
        describe_exit(exit_date, today) if has_left else None,
        numbers.contact or None,
        display_name(numbers.contact, numbers.contact.email) if numbers.contact else None,
        numbers,
        await list_position(request, PARTICIPANTS, participant_id),
    )
    context = {"header": header, "participant": participant, "name": header.name, "page_url": header.page_url}
    return context | {"tab_url": header.page_url + tab, "today": today}


async def describe_open_invoices(request: PageRequest, participant_id: UUID) -> str:
    """Such as `2 open invoices, $1,164.95`, of the list's filter "All unpaid"; empty without any."""
    place, filters = (request.db, request.plan_manager_id), {"participant_id": participant_id, "unpaid": True}
    found = await queries.LIST.summary(*place, filters, MAX_COUNTED + 1)
    if found.count > MAX_COUNTED:
        return f"More than {MAX_COUNTED:,} open invoices"
    text = f"{found.count:,} open {'invoice' if found.count == 1 else 'invoices'}, {format_money(found.amount or 0)}"
    return text if found.count else ""
