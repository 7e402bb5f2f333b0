"""Plans from requests and imports: changes of fields and of components, and the errors of the result."""

from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from datetime import date
from typing import Any
from uuid import UUID

from msgspec import UNSET
from msgspec.structs import replace
from uuid_utils.compat import uuid7

from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.fields import apply_patch
from plankeeper.core.record_matches import external_id_error
from plankeeper.database.client import Executor
from plankeeper.database.errors import ConstraintViolation
from plankeeper.resources.plans import rules, store
from plankeeper.resources.plans.schemas import (
    LineSum,
    Plan,
    PlanComponent,
    PlanComponentChange,
    PlanCreate,
    PlanRow,
    PlanUpdate,
)

_REQUIRED = ("name", "kind", "categories", "amount")
_CHANGED = (*_REQUIRED, "periods", "spent_elsewhere")


async def _overlap_error(_db: Executor, _plan_manager_id: UUID, _violation: ConstraintViolation) -> DomainError:
    return ValidationError(start_date="overlaps another plan of the participant")


CONSTRAINT_ERRORS = {
    "plans_external_id_key": external_id_error("plan"),
    "plans_dates_excl": _overlap_error,
}


def apply_change(
    change: PlanCreate | PlanUpdate, old: Plan, others: Sequence[Plan], *, keeps_ids: bool = False
) -> Plan:
    """The plan after a change. `others` are those of the participant. Raises ValidationError with all errors.

    `keeps_ids`: as for `merge_components`.
    """
    plan, errors = apply_patch(replace(change, components=UNSET), old), list[FieldError]()
    if change.components is not UNSET:
        plan.components, errors = merge_components(change.components, old.components, keeps_ids=keeps_ids)
    if plan.start_date and plan.end_date and plan.end_date < plan.start_date:
        errors.append(FieldError("end_date", f"is before the start date, {rules.format_date(plan.start_date)}"))
    errors += [*rules.find_errors(plan), *find_overlaps(plan, others)]
    if errors:
        raise ValidationError(*errors)
    return plan


def find_overlaps(plan: PlanRow, others: Iterable[PlanRow]) -> Iterator[FieldError]:
    """The error of a plan that has a day in common with another one."""
    if other := rules.find_overlap(plan, others):
        message = f"{rules.describe_dates(plan)} overlaps the plan {rules.describe_dates(other)}"
        yield FieldError("start_date", message)


def merge_components(
    changes: Sequence[PlanComponentChange], old: Sequence[PlanComponent], *, keeps_ids: bool = False
) -> tuple[list[PlanComponent], list[FieldError]]:
    """The components after a change of all of them, and the errors.

    One without an id that has the values of an existing one is that one, so that the same request changes nothing.
    `keeps_ids`: an unknown id is that of a new component, as in imports. Otherwise it is an error.
    """
    by_id = {each.id: each for each in old}
    named = {UUID(each.id) for each in changes if each.id is not UNSET}
    free = [each for each in old if each.id not in named]
    merged, errors = list[PlanComponent](), list[FieldError]()
    for index, change in enumerate(changes):
        given: dict[str, Any] = {name: value for name in _CHANGED if (value := getattr(change, name)) is not UNSET}
        id_ = UUID(change.id) if change.id is not UNSET else None
        existing = by_id.get(id_) if id_ else next((each for each in free if _has_values(each, given)), None)
        missing = [] if existing else [name for name in _REQUIRED if name not in given]
        if id_ and existing is None and not keeps_ids:
            message = "must be the id of a component of this plan"
            errors.append(FieldError(f"components[{index}].id", message, "not_found"))
        elif missing:
            errors += [FieldError(f"components[{index}].{name}", "is required", "required") for name in missing]
        elif existing:
            free = [each for each in free if each is not existing]
            merged.append(replace(existing, **given))
        else:
            defaults: dict[str, Any] = {"periods": [], "spent_elsewhere": None}
            merged.append(PlanComponent(id=id_ or uuid7(), **(defaults | given)))
    return merged, errors


def _has_values(existing: PlanComponent, given: dict[str, Any]) -> bool:
    return all(getattr(existing, name) == value for name, value in given.items())


def is_placeholder(plan: PlanRow) -> bool:
    """Whether a plan has no more than the dates that the participant's own fields have."""
    return not plan.components and plan.external_id is None


async def with_numbers(db: Executor, plan_manager_id: UUID, plans: Sequence[Plan], day: date) -> list[Plan]:
    """Plans with the numbers of their components on a day, in two statements for any number of participants."""
    participant_ids = list({each.participant_id for each in plans if each.components})
    if not participant_ids:
        return list(plans)
    every, lines = defaultdict[UUID, list[Plan]](list), defaultdict[UUID, list[LineSum]](list)
    for plan in await store.list_of_participants(db, plan_manager_id, participant_ids):
        every[plan.participant_id].append(plan)
    for line in await store.sum_lines(db, plan_manager_id, participant_ids, day):
        lines[line.participant_id].append(line)
    return [rules.with_numbers(each, every[each.participant_id], lines[each.participant_id], day) for each in plans]
