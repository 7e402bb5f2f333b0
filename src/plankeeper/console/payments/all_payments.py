"""The list of the payments of all runs, which month ends group."""

from collections.abc import Mapping, Sequence
from typing import Any
from zoneinfo import ZoneInfo

from plankeeper.console.bank_details.section import payee_url
from plankeeper.console.components.labels import humanize
from plankeeper.console.components.record_picker import load_record_names
from plankeeper.console.lists.dates import PAST_PRESETS
from plankeeper.console.lists.definition import Column, GroupAmount, Grouping, Link, ListDefinition, Names
from plankeeper.console.lists.filters import choice_filter, date_range_filter, record_filter
from plankeeper.console.lists.groups import fixed_labels, month_params, one_param
from plankeeper.console.lists.registration import add_list
from plankeeper.console.payments.list import PAYMENTS_URL
from plankeeper.console.payments.pages import PERMISSION
from plankeeper.console.payments.run import payment_url
from plankeeper.console.shell.routing import PageRequest, Pages
from plankeeper.core.ids import parse_uuid
from plankeeper.core.validation import allowed_values
from plankeeper.resources.bank_details.accounts import Payee
from plankeeper.resources.payments import queries
from plankeeper.resources.payments.queries import ListedPayment
from plankeeper.resources.payments.schemas import PaymentState

pages = Pages()

STATES = {each: humanize(each) for each in allowed_values(PaymentState)}


def _reference(payment: ListedPayment, _names: Names) -> Link:
    return Link(payment.reference, payment_url(payment.run_id, payment.id))


def _payee(payment: ListedPayment, _names: Names) -> Link:
    return Link(payment.payee_name, payee_url(Payee(payment.payee_kind, payment.payee_id)))


def _run(payment: ListedPayment, _names: Names) -> Link:
    return Link(payment.run_number, f"{PAYMENTS_URL}/{payment.run_id}")


def _participants(rows: Sequence[Any]) -> Sequence[Any]:
    return [*dict.fromkeys(each.payee_id for each in rows if each.payee_kind == "participant")]


async def payee_labels(request: PageRequest, keys: Sequence[str]) -> Mapping[str, str]:
    """The present names of payees, by kind and id. Participants are recorded in the access log."""
    pairs = [(kind, found) for each in keys for kind, _, text in [each.partition(" ")] if (found := parse_uuid(text))]
    participants = [id_ for kind, id_ in pairs if kind == "participant"]
    providers = [id_ for kind, id_ in pairs if kind == "provider"]
    request.record_list("participant", participants, {"list": "all-payments", "group": "payee"})
    names = await load_record_names(request, participants, providers)
    return {f"{kind} {id_}": names.get(id_, "Deleted payee") for kind, id_ in pairs}


def payee_params(key: str | None, _values: Mapping[str, Any], _zone: ZoneInfo) -> Mapping[str, str] | None:
    """The filter by the payee of a key."""
    kind, _, payee_id = (key or "").partition(" ")
    return {kind: payee_id} if payee_id else None


ALL_PAYMENTS = ListDefinition(
    kind="all-payments",
    title="All payments",
    one="payment",
    many="payments",
    rows=queries.ALL_PAYMENTS,
    get_rows=queries.list_payments,
    columns=(
        Column("reference", "Reference", "link", _reference),
        Column("payee", "Payee", "link", _payee),
        Column("amount", "Amount", "money"),
        Column("state", "State", "claim_status"),
        Column("run", "Run", "link", _run),
        Column("day", "Payment date", "date"),
        Column("returned_on", "Returned", "date"),
    ),
    filters=(
        choice_filter(queries.ALL_PAYMENTS, "state", STATES),
        record_filter(queries.ALL_PAYMENTS, "provider_id", "provider"),
        record_filter(queries.ALL_PAYMENTS, "participant_id", "participant"),
        date_range_filter(queries.ALL_PAYMENTS, ("day_from", "day_to"), ("date", "from", "to"), PAST_PRESETS),
    ),
    sort="-id",
    empty="There are no payments yet.",
    groupings=(
        Grouping(
            "month", "Month", month_params(("day_from", "day_to"), ("from", "to")), fixed_labels({}), "No date", True
        ),
        Grouping("state", "State", one_param("state"), fixed_labels(STATES), "No state"),
        Grouping("payee", "Payee", payee_params, payee_labels, "No payee"),
    ),
    group_amounts=(
        GroupAmount("amount", "Amount"),
        GroupAmount("paid", "Paid", "good"),
        GroupAmount("draft", "In drafts", "muted"),
        GroupAmount("returned", "Returned", "bad"),
    ),
    is_past=lambda row: row.state == "cancelled",
    past_label="cancelled",
    list_disclosed=lambda rows: {"participant": _participants(rows)},
    page_path=f"{PAYMENTS_URL}/all",
    section="payments",
    role="manager",
    download_role="manager",
)


add_list(pages, ALL_PAYMENTS, permission=PERMISSION)
