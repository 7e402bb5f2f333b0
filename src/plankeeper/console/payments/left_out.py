"""The lines that a payment run leaves out, by reason, with the records that they are about."""

from collections.abc import Mapping, Sequence
from typing import cast

from plankeeper.console.bank_details.section import BANK_DETAILS_URL
from plankeeper.console.claims.line_groups import GroupedLine, GroupPlace, GroupWords, LineGroup, load_groups
from plankeeper.console.shell.routing import PageRequest
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.payments import store
from plankeeper.resources.payments.rules import SENTENCES
from plankeeper.resources.payments.schemas import UnpaidLine, UnpaidReason

OF_APPROVAL = ("bank_details_waiting", "bank_details_need_approval")
OF_PAYEES = ("no_bank_details", *OF_APPROVAL)


async def left_out_groups(
    request: PageRequest, lines: Sequence[UnpaidLine], page_url: str, params: Mapping[str, str]
) -> list[LineGroup]:
    """The reasons with the most lines first, or the one that the address of the page names.

    Amounts are what the agency has paid. The records that the page names are in the access log.
    """
    ids = sorted({each.invoice_id for each in lines})
    found = await store.list_left_out(request.executor, request.plan_manager_id, ids) if ids else []
    stored = {(each.invoice_id, each.line_id): each for each in found}

    def group(unpaid: UnpaidLine) -> GroupedLine:
        key = unpaid.invoice_id, unpaid.line_id
        line = stored.get(key)
        payee = Payee(line.payee_kind, line.payee_id) if line and line.payee_id else None
        return GroupedLine(unpaid.reason, key, line.paid_amount if line else None, payee=payee)

    place = GroupPlace(page_url, params, {"page": "payments"})
    groups = await load_groups(request, map(group, lines), _words, place)
    return sorted(groups.values(), key=lambda each: -each.line_count)


def _words(name: str) -> GroupWords:
    link = (BANK_DETAILS_URL, "Bank details that wait for approval") if name in OF_APPROVAL else None
    return GroupWords(SENTENCES[cast("UnpaidReason", name)], "", link, is_of_payees=name in OF_PAYEES)
