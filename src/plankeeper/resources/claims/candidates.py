"""The lines that a request wants to claim, with all that decides whether they can be claimed."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from decimal import Decimal
from typing import Any, Literal, NamedTuple
from uuid import UUID

from plankeeper.core.fields import unset_to_none
from plankeeper.database.client import Executor
from plankeeper.resources.claims import candidate_store
from plankeeper.resources.claims.candidate_store import Party
from plankeeper.resources.claims.eligibility import (
    UNFLAGGED_REASONS,
    WARNED_CODES,
    Candidate,
    CandidateState,
    LeftOut,
    LineKey,
    Office,
    WarnedCode,
    find_state_reason,
)
from plankeeper.resources.invoices import check_store
from plankeeper.resources.invoices import store as invoice_store
from plankeeper.resources.invoices.changes import find_settled_status, line_price
from plankeeper.resources.invoices.check_results import find_facts_of, levels_of, to_result
from plankeeper.resources.invoices.check_store import InvoiceToCheck
from plankeeper.resources.invoices.checks import Facts
from plankeeper.resources.invoices.facts import SplitService
from plankeeper.resources.invoices.schemas import Invoice, LineItem
from plankeeper.resources.invoices.warnings import level_of

CHECKED_AT_ONCE = 500  # invoices


class Choice(NamedTuple):
    """The lines that their states and those of their invoices don't keep out, and the others with their reasons.

    `to_flag` are new ones among the others. Each part is in the order of the candidates.
    """

    claimable: Sequence[CandidateState]
    to_flag: Sequence[CandidateState]
    left_out: Mapping[LineKey, LeftOut]


def choose(lines: Sequence[CandidateState], limit: int) -> Choice:
    """What the states of lines and of their invoices decide. At most `limit` lines are to be flagged."""
    claimable, to_flag, left_out = list[CandidateState](), list[CandidateState](), dict[LineKey, LeftOut]()
    for line in lines:
        reason = find_state_reason(line)
        if reason is None:
            claimable.append(line)
        elif is_to_flag(line, reason) and len(to_flag) < limit:
            to_flag.append(line)
        else:
            left_out[line.key] = reason
    return Choice(claimable, to_flag, left_out)


def is_to_flag(line: CandidateState, reason: LeftOut) -> bool:
    """Whether a line that is left out is flagged."""
    return line.claim_status == "new" and reason.reason not in UNFLAGGED_REASONS


async def read_and_examine(
    db: Executor, plan_manager_id: UUID, lines: Iterable[LineKey], office: Office
) -> dict[LineKey, Candidate]:
    """The lines of the invoices of these lines as `examine` returns them. Nothing is locked."""
    ids = sorted({invoice_id for invoice_id, _ in lines})
    invoices = {each.id: each for each in await invoice_store.get_many(db, plan_manager_id, ids)}
    return await examine(db, plan_manager_id, invoices, office)


async def examine(
    db: Executor, plan_manager_id: UUID, invoices: Mapping[UUID, Invoice], office: Office
) -> dict[LineKey, Candidate]:
    """The lines of invoices that aren't deleted, by their keys, with the warnings that the checks find now."""
    found = dict[LineKey, Candidate]()
    # Those of a participant together, whose budget is computed from all of its lines.
    in_order = sorted(invoices.values(), key=lambda each: (str(each.participant_id), each.id))
    for start in range(0, len(in_order), CHECKED_AT_ONCE):
        some = in_order[start : start + CHECKED_AT_ONCE]
        participants = await candidate_store.list_participants(db, plan_manager_id, _ids(some, "participant_id"))
        providers = await candidate_store.list_providers(db, plan_manager_id, _ids(some, "pm_provider_id"))
        parties = {each.id: each for each in (*participants, *providers)}
        checked = await check_store.get_many(db, plan_manager_id, [each.id for each in some])
        facts = await find_facts_of(db, plan_manager_id, checked, office.today)
        for each in checked:
            lines = _build_candidates(invoices[each.id], _find(each, facts[each.id]), parties)
            found |= {line.key: line for line in lines}
    return found


async def read_amounts(db: Executor, plan_manager_id: UUID, lines: Iterable[LineKey]) -> dict[LineKey, Decimal]:
    """The amounts of lines, in dollars with tax, of which nothing else is read. Those without a price are missing."""
    wanted = {*lines}
    found = await candidate_store.list_amounts(db, plan_manager_id, sorted({key[0] for key in wanted}))
    return {key: each.amount for each in found if (key := (each.invoice_id, each.id)) in wanted}


def _ids(invoices: Sequence[Invoice], name: str) -> list[UUID]:
    return sorted({id_ for each in invoices if (id_ := getattr(each, name))})


class _Findings(NamedTuple):
    """What the checks of an invoice have found; lines are named by their numbers."""

    blocking: list[str]
    warned: Mapping[WarnedCode, set[int | None]]
    split: Mapping[int | None, Literal["plan", "funding period"]]


def _find(checked: InvoiceToCheck, facts: Facts) -> _Findings:
    result, levels = to_result(checked, facts), levels_of(checked)
    open_codes = [code for code in result.error_codes if code not in result.ignored_error_codes]
    return _Findings(
        blocking=[code for code in open_codes if level_of(code, levels) == "block"],
        warned={code: {fact.line for fact in facts[code]} for code in WARNED_CODES if code in result.warning_codes},
        split={
            each.line: each.unit for each in facts.get("check_funding_period", ()) if isinstance(each, SplitService)
        },
    )


def _build_candidates(invoice: Invoice, found: _Findings, parties: Mapping[UUID, Party]) -> Iterator[Candidate]:
    lines = unset_to_none(invoice.line_items) or []
    settled = find_settled_status(invoice)
    participant = parties.get(invoice.participant_id) if invoice.participant_id else None
    provider = parties.get(invoice.pm_provider_id) if invoice.pm_provider_id else None
    has_siblings = sum(not each.is_deleted for each in lines) > 1
    for number, line in enumerate(lines, start=1):
        if not line.is_deleted:
            yield Candidate(
                invoice_id=invoice.id,
                line_id=line.id,
                number=number,
                claim_status=line.claim_status,
                is_rest_waiting=line.is_rest_waiting,
                open_batch=line.open_claim_batch,
                is_invoice_deleted=invoice.is_deleted,
                settled_status=settled,
                wont_claim=invoice.wont_claim,
                is_held=invoice.held_at is not None,
                approval_status=invoice.approval_status,
                blocking_codes=found.blocking,
                invoice_number=invoice.invoice_number,
                has_siblings=has_siblings,
                warned_codes=[code for code in found.warned if number in found.warned[code]],
                ndis_number=participant.number if participant else None,
                crosses=found.split.get(number),
                net=line_price(line),
                amount=line.amount,
                is_reimbursement=invoice.is_reimbursement,
                provider_abn=provider.number if provider else None,
                is_abn_exempt=provider.is_exempt if provider else False,
                **_values(line),
            )


def _values(line: LineItem) -> dict[str, Any]:
    """What the file has of a line."""
    return {
        "item": line.service_item_number,
        "first_day": line.service_date_from or line.service_date_to,
        "last_day": line.service_date_to or line.service_date_from,
        "quantity": line.quantity,
        "unit_price": line.unit_price,
        "paid": line.paid_amount,
        "gst_code": line.gst_code,
        "claim_type": line.claim_type,
        "cancellation_reason": line.cancellation_reason,
    }
