"""Rows of a list that are selected for an action, and what became of each."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple
from uuid import UUID

from plankeeper.console.forms import Form
from plankeeper.console.lists.columns import Names
from plankeeper.console.lists.definition import ListDefinition
from plankeeper.console.lists.saved_views import parse_query_text
from plankeeper.console.routing import PREFIX, FormRequest, HtmlPage, PageRequest
from plankeeper.http.context import AccessAction
from plankeeper.http.errors import ValidationError
from plankeeper.http.pagination import in_order
from plankeeper.http.parsing import parse_uuid

MAX_SELECTED = 100  # their ids fit into the address of a page
MAX_SHOWN = 100  # outcomes that a page lists


class Selection(NamedTuple):
    """The selected rows that exist, in their order, with the names of the records that they refer to.

    `query` is that of the list that they were selected in, `missing` the number of records that don't exist any more.
    """

    definition: ListDefinition
    rows: Sequence[Any]
    names: Names
    query: str
    missing: int

    @property
    def back_url(self) -> str:
        return f"{self.definition.path}?{self.query}" if self.query else self.definition.path

    @property
    def count_text(self) -> str:
        return self.definition.count_text(len(self.rows))


class Outcome(NamedTuple):
    """What became of a selected record.

    `undo_path` is the page that reverts the change, `restore_path` takes the form that brings a warning back.
    """

    name: str
    url: str
    message: str
    is_changed: bool
    undo_path: str | None = None
    restore_path: str | None = None


async def read_selection(
    request: PageRequest, definition: ListDefinition, form: Form, action: AccessAction = "listed"
) -> Selection:
    """The rows whose ids a form or a query has, which `action` discloses; raises ValidationError for too many."""
    ids = list(dict.fromkeys(filter(None, map(parse_uuid, form.getlist("id")))))
    if len(ids) > MAX_SELECTED:
        raise ValidationError(form=f"You can select at most {MAX_SELECTED} {definition.many} at once.")
    rows = await definition.get_rows(request.db, request.plan_manager_id, ids) if ids else ()
    found = in_order(ids, rows)
    request.record_disclosed(definition.disclosed(found), {"selected": str(len(found))}, action)
    names = await definition.load_names(request, found)
    query = parse_query_text(definition, form.raw("list"), keep_page=True).text
    return Selection(definition, found, names, query, len(ids) - len(found))


def seen_values(form: Form) -> dict[UUID, str]:
    """What the page showed of each record: `seen` has the id, a colon and the value."""
    pairs = [each.partition(":") for each in form.getlist("seen")]
    return {record_id: value for text, _, value in pairs if (record_id := parse_uuid(text))}


def outcome_page(request: FormRequest, title: str, selection: Selection, outcomes: Sequence[Outcome]) -> HtmlPage:
    """What was changed and what wasn't, with a link that undoes all changes."""
    context = {
        "section": selection.definition.kind,
        "back_url": selection.back_url,
        "back_title": selection.definition.title,
        "missing": selection.missing,
    }
    return show_outcomes(request, title, selection.definition.count_text, outcomes, context)


def show_outcomes(
    request: FormRequest,
    title: str,
    count_text: Callable[[int], str],
    outcomes: Sequence[Outcome],
    context: dict[str, Any],
) -> HtmlPage:
    """The page of what was changed and what wasn't; the first MAX_SHOWN of each."""
    changed = [each for each in outcomes if each.is_changed]
    found = {"Not changed": [each for each in outcomes if not each.is_changed], "Changed": changed}
    values = {
        "title": title,
        "outcomes": {heading: (len(each), each[:MAX_SHOWN]) for heading, each in found.items() if each},
        "changed_count": len(changed),
        "changed_text": count_text(len(changed)),
        "all_path": f"{PREFIX}/activity/{request.recorded[0]}/request" if len(changed) > 1 else None,
    }
    return HtmlPage("selected_outcome.html", context | values)
