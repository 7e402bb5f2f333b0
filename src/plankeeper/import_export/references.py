"""The ids of account managers and exit reasons from their names or emails, which people write in files."""

from collections.abc import Iterable, Mapping
from uuid import UUID

from plankeeper.account_managers import store as account_managers
from plankeeper.account_managers.schemas import AccountManagerRow
from plankeeper.database.client import Transaction
from plankeeper.exit_reasons import store as exit_reasons
from plankeeper.exit_reasons.schemas import ExitReasonRow
from plankeeper.import_export.cell_values import CellError

MAX_CANDIDATES = 3
_EXIT_REASON_FIELDS = ("exit_reason_category_id", "exit_reason_subcategory_id")
_KINDS = {"account_manager_id": "an account manager", **dict.fromkeys(_EXIT_REASON_FIELDS, "an exit reason")}


class References:
    """The account managers and exit reasons of a plan manager, by id, name and email."""

    def __init__(self) -> None:
        self._names: dict[str, dict[str, list[tuple[str, str]]]] = {name: {} for name in _KINDS}

    def add(self, fields: Iterable[str], id_: str, label: str, texts: Iterable[str | None]) -> None:
        """Add a record that each of the texts means. `label` describes it among several candidates."""
        for field in fields:
            for text in {_fold(each) for each in texts if each and each.strip()} | {id_}:
                self._names[field].setdefault(text, []).append((id_, label))

    def resolve(self, field: str, text: str) -> str:
        """The id that a cell means; the text itself for other fields. Raises CellError."""
        if field not in self._names:
            return text
        found = self._names[field].get(_fold(text), [])
        if len(found) == 1:
            return found[0][0]
        kind = _KINDS[field]
        if not found:
            raise CellError(f"must be the name or id of {kind} of this plan manager{_examples(self._names[field])}")
        labels = ", ".join(label for _, label in found[:MAX_CANDIDATES])
        more = f" and {len(found) - MAX_CANDIDATES} more" if len(found) > MAX_CANDIDATES else ""
        raise CellError(f"must name one record, but {len(found)} have this name: {labels}{more}")


def _examples(names: Mapping[str, list[tuple[str, str]]]) -> str:
    labels = sorted({label for each in names.values() for _, label in each})
    if not labels:
        return ", which has none"
    return f": {', '.join(labels)}" if len(labels) <= MAX_CANDIDATES else f", such as {labels[0]}"


def _fold(text: str) -> str:
    return " ".join(text.casefold().split())


async def load_references(tx: Transaction, plan_manager_id: UUID) -> References:
    """All account managers that aren't deleted, and all exit reasons."""
    references = References()
    async for managers in account_managers.export(tx, plan_manager_id):
        for manager in managers:
            _add_account_manager(references, manager)
    async for reasons in exit_reasons.export(tx, plan_manager_id):
        for reason in reasons:
            _add_exit_reason(references, reason)
    return references


def _add_account_manager(references: References, manager: AccountManagerRow) -> None:
    first, last = manager.first_name or "", manager.last_name or ""
    names = (f"{first} {last}", f"{last}, {first}" if last else None)
    label = " ".join(filter(None, (first, last))) or manager.email or str(manager.id)
    label = f"{label} ({manager.email})" if manager.email and manager.email != label else label
    texts = () if manager.deleted else (*names, manager.email)
    references.add(("account_manager_id",), str(manager.id), label, texts)


def _add_exit_reason(references: References, reason: ExitReasonRow) -> None:
    field = _EXIT_REASON_FIELDS[1 if reason.parent_id else 0]
    other = _EXIT_REASON_FIELDS[0 if reason.parent_id else 1]
    references.add((field,), str(reason.id), reason.name, (reason.name,))
    references.add((other,), str(reason.id), reason.name, ())
