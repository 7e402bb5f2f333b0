"""Changes of the support catalogue. Only the role that owns the tables can make them."""

from collections.abc import Sequence
from datetime import UTC, date, datetime
from typing import NamedTuple

from plankeeper.core.json import to_json
from plankeeper.database.client import Transaction
from plankeeper.resources import recheck_queue
from plankeeper.resources.support_items import rules, store
from plankeeper.resources.support_items.schemas import SupportItem


class CatalogueChanges(NamedTuple):
    """What an import changed, as numbers of items, and the revision after it.

    `absent` are numbers of items that are in force on the day of the import, but not among the imported ones.
    """

    added: int
    changed: int
    unchanged: int
    revision: int
    absent: Sequence[str]


async def import_items(tx: Transaction, items: Sequence[SupportItem], today: date) -> CatalogueChanges:
    """Insert items, and replace those with the same number and start date. All others stay.

    The open invoices of all plan managers are checked again in the background.
    """
    revision = await store.lock_catalogue(tx)
    stored = {(each.support_item_number, each.start_date): each for each in await store.list_all(tx)}
    existing = [stored.get((each.support_item_number, each.start_date)) for each in items]
    written = [new for new, old in zip(items, existing, strict=True) if new != old]
    added = existing.count(None)
    if written:
        await store.upsert(tx, to_json(written))
        revision = await store.increase_revision(tx, datetime.now(UTC))
        await recheck_queue.enqueue_everywhere(tx)
    numbers = {each.support_item_number for each in items}
    in_force = {each.support_item_number for each in stored.values() if rules.is_in_force(each, today)}
    changed = len(written) - added
    return CatalogueChanges(added, changed, len(items) - len(written), revision, sorted(in_force - numbers))
