"""The parts of the review queue: what their addresses say, and their tabs."""

from collections.abc import Mapping, Sequence
from typing import NamedTuple
from uuid import UUID

from plankeeper.console.components.labels import humanize
from plankeeper.console.components.pagination import with_query
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.invoices.review_store import MAX_COUNTED, Queue, QueueCounts, ReviewFilter, WarningCount
from plankeeper.resources.invoices.warnings import WARNINGS

REVIEW_URL = f"{PREFIX}/review"
QUEUES: Mapping[str, Queue] = {
    "held": "held",
    "approval": "approval",
    "rejected": "rejected",
}  # besides that of all that waits
ME, NOBODY = "me", "nobody"


class QueueTab(NamedTuple):
    """A part of the queue: its address, its name, and the number of its invoices, as text."""

    url: str
    label: str
    count_text: str
    is_current: bool


class QueuePart(NamedTuple):
    """The part of the queue that a page shows: the parameters of its address, and what they mean."""

    params: dict[str, str]
    wanted: ReviewFilter

    def url(self, invoice_id: UUID | None = None, **more: str) -> str:
        """The page of the next invoice, or of one, in this part."""
        return with_query(f"{REVIEW_URL}/{invoice_id}" if invoice_id else REVIEW_URL, self.params | more)

    @property
    def query(self) -> str:
        """The parameters as text, such as `?queue=held`."""
        return with_query("", self.params) if self.params else ""


def read_part(query: Form, account_id: UUID) -> QueuePart:
    """The part of the queue that an address names. Unknown values count as none."""
    queue, assigned, warning = (query.text(name) for name in ("queue", "assigned", "warning"))
    wanted = ReviewFilter()
    if queue in QUEUES:
        wanted = wanted._replace(queue=QUEUES[queue])
    if assigned == NOBODY:
        wanted = wanted._replace(is_unassigned=True)
    elif account := account_id if assigned == ME else parse_uuid(assigned):
        wanted = wanted._replace(assigned_to=account)
    if warning in WARNINGS:
        wanted = wanted._replace(warning=warning)
    used = {
        "queue": queue if wanted.queue != "waiting" else "",
        "assigned": assigned if wanted.assigned_to or wanted.is_unassigned else "",
        "warning": wanted.warning or "",
    }
    return QueuePart({name: text for name, text in used.items() if text}, wanted)


def queue_tabs(part: QueuePart, counts: QueueCounts, names: Mapping[str, str]) -> list[QueueTab]:
    """The parts of the queue, and that of a colleague if the page shows it. `names` are those of accounts by id."""
    shown: Sequence[tuple[dict[str, str], str, int]] = (
        ({}, "To review", counts.waiting),
        ({"assigned": ME}, "Mine", counts.mine),
        ({"assigned": NOBODY}, "Unassigned", counts.unassigned),
        ({"queue": "held"}, "Held", counts.held),
        ({"queue": "approval"}, "Approval pending", counts.approval),
        ({"queue": "rejected"}, "Rejected", counts.rejected),
    )
    tabs = [
        QueueTab(with_query(REVIEW_URL, params), label, count_text(count), params == part.params)
        for params, label, count in shown
    ]
    if part.wanted.assigned_to and not any(each.is_current for each in tabs):
        tabs.append(QueueTab(part.url(), names.get(str(part.wanted.assigned_to)) or "Someone who left", "", True))
    return tabs


def warning_tabs(part: QueuePart, counts: Sequence[WarningCount], codes: Sequence[str]) -> list[QueueTab]:
    """The warnings with these codes, the most frequent first."""
    return [
        QueueTab(
            with_query(REVIEW_URL, {"warning": each.code}),
            WARNINGS[each.code].title if each.code in WARNINGS else humanize(each.code),
            count_text(each.count),
            part.wanted.warning == each.code,
        )
        for each in counts
        if each.code in codes
    ]


def count_text(count: int) -> str:
    """`2,000+` for the highest number that is counted."""
    return f"{count:,}{'+' if count >= MAX_COUNTED else ''}"
