"""Who gets the office's own fee of a month, for which day and at which price, without input or output."""

from collections.abc import Iterable, Mapping, Sequence
from datetime import date
from decimal import Decimal
from typing import NamedTuple
from uuid import UUID

from plankeeper.core.dates import Month
from plankeeper.resources.fees.schemas import MAX_FEES, Candidate, FeeReason, LeftOutParticipant, NewFee
from plankeeper.resources.support_items.rules import price_limit
from plankeeper.resources.support_items.schemas import SupportItem

SENTENCES: Mapping[FeeReason, str] = {
    "already_made": "The fee of the month was made before.",
    "no_plan": "No plan was in force on a day of the month.",
    "deceased": "The participant died before the days of the month on which a plan was in force.",
    "not_managed": "The office didn’t manage the plan on a day of the month.",
    "inactive": "The participant is inactive, and the record doesn’t say until when the office managed the plan.",
    "not_in_catalogue": "The support catalogue doesn’t have the fee’s item on the day of the service.",
    "no_price": "The support catalogue has no price of the fee’s item for the participant.",
    "batch_full": f"A request makes at most {MAX_FEES} fees. Repeat it for the others.",
}


class FeePlan(NamedTuple):
    """The fees of a month, and who is left out."""

    fees: Sequence[NewFee]
    left_out: Sequence[LeftOutParticipant]

    @property
    def total(self) -> Decimal:
        return sum((each.amount for each in self.fees), Decimal(0))


def last_managed_day(participant: Candidate, month: Month) -> date | FeeReason:
    """The last day of a month on which a plan was in force and managed by the office, or why there is none."""
    if participant.has_fee:
        return "already_made"
    spans = [(max(each.start, month.first), min(each.end, month.last)) for each in participant.plans]
    if not _keep_days(spans):
        return "no_plan"
    alive = _keep_days(spans, until=participant.deceased_on)
    if not alive:
        return "deceased"
    until = min((each for each in (participant.managed_until, participant.date_ceased) if each), default=None)
    managed = _keep_days(alive, since=participant.managed_from, until=until)
    if not managed or participant.status == "Lead":
        return "not_managed"
    if participant.status == "Inactive" and not (until or participant.deceased_on):
        return "inactive"
    return max(end for _, end in managed)


def _keep_days(
    spans: Iterable[tuple[date, date]], *, since: date | None = None, until: date | None = None
) -> list[tuple[date, date]]:
    """The parts of the spans between two days."""
    cut = ((max(start, since) if since else start, min(end, until) if until else end) for start, end in spans)
    return [(start, end) for start, end in cut if start <= end]


def plan_fees(
    participants: Iterable[Candidate], month: Month, items: Mapping[date, SupportItem], limit: int = MAX_FEES
) -> FeePlan:
    """The fees of a month. `items` has the fee's item as it is in the catalogue, by day."""
    fees, left_out = list[NewFee](), list[LeftOutParticipant]()
    for each in participants:
        fee = _price(each, last_managed_day(each, month), items)
        if isinstance(fee, NewFee) and len(fees) == limit:
            fee = "batch_full"
        if isinstance(fee, NewFee):
            fees.append(fee)
        else:
            left_out.append(_left_out(each.id, fee))
    return FeePlan(fees, left_out)


def _price(participant: Candidate, day: date | FeeReason, items: Mapping[date, SupportItem]) -> NewFee | FeeReason:
    if not isinstance(day, date):
        return day
    item = items.get(day)
    if item is None:
        return "not_in_catalogue"
    price = price_limit(item, participant.state, participant.remoteness)
    if not price or price < 0:
        return "no_price"
    return NewFee(id=None, participant_id=participant.id, service_date=day, amount=round(price, 2))


def _left_out(participant_id: UUID, reason: FeeReason) -> LeftOutParticipant:
    return LeftOutParticipant(participant_id=participant_id, reason=reason, message=SENTENCES[reason])


def invoice_number(month: Month, participant_id: UUID) -> str:
    """The number of a fee's invoice: the same each time, and nothing that identifies a person."""
    return f"FEE-{month.text}-{participant_id.hex[-10:].upper()}"
