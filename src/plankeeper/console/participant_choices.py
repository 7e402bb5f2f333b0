"""The options of the selects in the forms and filters of participants."""

from collections.abc import Mapping
from typing import Any

from msgspec import UNSET

from plankeeper.console.account_manager_field import MAX_OPTIONS, account_manager_picker
from plankeeper.console.routing import PageRequest
from plankeeper.core.fields import STATE_CODES
from plankeeper.resources.account_managers import store as account_manager_store
from plankeeper.resources.account_managers.schemas import AccountManagerListQuery
from plankeeper.resources.exit_reasons import store as exit_reasons
from plankeeper.resources.participants.schemas import Participant

MAX_CHOICES = 500  # options of a select, which limits the size of the page
STATUSES = ("Active", "Inactive", "Lead")
REGIONS = {"": "Not set", "remote": "Remote", "very_remote": "Very remote"}


async def manager_choices(request: PageRequest) -> dict[str, str]:
    """The account managers that can be selected: names by id, sorted by name."""
    query = AccountManagerListQuery(limit=MAX_CHOICES)
    rows = await account_manager_store.list_page(
        request.db, request.plan_manager_id, query, request.settings.operator_name
    )
    labelled = [(each.name or each.email or "No name", each) for each in rows]
    labelled.sort(key=lambda each: each[0].casefold())
    return {str(each.id): name if each.active else f"{name} (inactive)" for name, each in labelled}


async def form_choices(request: PageRequest, participant: Participant | None) -> Mapping[str, object]:
    """The options of the form's selects. The participant's current values are included even if they are not active."""
    choices = await manager_choices(request)
    picker = await account_manager_picker(request, participant) if len(choices) > MAX_OPTIONS else None
    manager = participant.account_manager if participant else None
    if manager and manager.id:
        choices.setdefault(str(manager.id), f"{manager.name or 'No name'} (no longer available)")
    return {
        "manager_picker": picker,
        "managers": {"": "Not set", **choices},
        "states": {"": "Not set", **{each: each for each in STATE_CODES}},
        "statuses": {each: each for each in STATUSES},
        "regions": REGIONS,
        **await exit_reason_choices(request, participant),
    }


async def exit_reason_choices(request: PageRequest, participant: Participant | None) -> dict[str, Any]:
    """The categories of exit reasons, and the subcategories of each."""
    reasons = await exit_reasons.list_all(request.db, request.plan_manager_id, MAX_CHOICES)
    names = {str(each.id): each.name for each in reasons}
    categories = {"": "Not set", **{str(each.id): each.name for each in reasons if each.parent_id is None}}
    groups = dict[str, dict[str, str]]()
    for each in reasons:
        if each.parent_id:
            groups.setdefault(str(each.parent_id), {})[str(each.id)] = each.name
    category = participant.exit_reason_category if participant else UNSET
    subcategory = participant.exit_reason_subcategory if participant else UNSET
    if category is not UNSET:
        categories.setdefault(str(category.id), category.name)
    if subcategory is not UNSET and not any(str(subcategory.id) in subcategories for subcategories in groups.values()):
        groups[""] = {str(subcategory.id): subcategory.name}
    return {
        "categories": categories,
        "groups": [(names.get(id_, "Other"), subcategories) for id_, subcategories in groups.items()],
    }
