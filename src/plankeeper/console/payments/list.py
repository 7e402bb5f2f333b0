"""The list of payment runs, the newest first."""

from plankeeper.console.components.labels import humanize
from plankeeper.console.lists.columns import MADE_AT, MADE_BY
from plankeeper.console.lists.definition import BuiltInView, Column, ListButton, ListDefinition, Names
from plankeeper.console.lists.filters import choice_filter
from plankeeper.console.shell.routing import PREFIX
from plankeeper.core.validation import allowed_values
from plankeeper.resources.payments import queries, store
from plankeeper.resources.payments.schemas import PaymentRun, RunState

PAYMENTS_URL = f"{PREFIX}/payments"

STATES = {each: humanize(each) for each in allowed_values(RunState)}


def _returned(run: PaymentRun, _names: Names) -> str | None:
    return f"{run.returned:,} returned" if run.returned else None


COLUMNS = (
    Column("number", "Number", "record"),
    Column("state", "State", "claim_status"),
    Column("process_date", "Process date", "date"),
    Column("payments", "Payments", "text"),
    Column("total", "Amount", "money"),
    Column("returned", "Returned", "text", _returned),
    MADE_BY,
    MADE_AT,
    Column("downloaded_at", "Downloaded", "datetime", is_default=False),
    Column("paid_on", "Paid on", "date", is_default=False),
    Column("paid_by", "Marked as paid by", "text", is_default=False),
)
PAYMENT_RUNS = ListDefinition(
    kind="payments",
    title="Payments",
    one="payment run",
    many="payment runs",
    rows=queries.LIST,
    get_rows=store.get_many,
    columns=COLUMNS,
    filters=(choice_filter(queries.LIST, "state", STATES),),
    sort="-id",
    empty=(
        "There are no payment runs yet. When the agency has paid claims, make a run: it pays every provider with one"
        " file for your bank."
    ),
    buttons=(
        ListButton("Make a payment run", f"{PAYMENTS_URL}/new", "manager"),
        ListButton("Fees", f"{PAYMENTS_URL}/fees", "manager"),
        ListButton("All payments", f"{PAYMENTS_URL}/all", "manager"),
        ListButton("Reconciliation", f"{PAYMENTS_URL}/reconciliation", "manager"),
        ListButton("To recover", f"{PREFIX}/recoveries", "manager"),
    ),
    views=(BuiltInView("Drafts", {"state": "draft"}), BuiltInView("Paid", {"state": "paid"})),
    role="manager",
    download_role="manager",
)
