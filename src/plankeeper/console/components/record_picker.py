"""A field that takes a record's name, number or id. Without JavaScript, the page shows the candidates to choose from.

The form sends the text as `name`, and as `name_id` the id of the record that the field showed, which counts as long as
the text is the record's name. `name_choice` is the id of a candidate.
"""

from collections.abc import Mapping, Sequence
from typing import Literal, NamedTuple, get_args
from uuid import UUID

from plankeeper.access.accounts import member_store
from plankeeper.access.accounts.schemas import Session
from plankeeper.access.api_keys import store as api_key_store
from plankeeper.console.components.labels import display_name
from plankeeper.console.components.support_items import describe_limit, search_items
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.record_limits import select_inside
from plankeeper.console.shell.routing import PageRequest
from plankeeper.core.errors import FieldError
from plankeeper.core.formatting import fold_name, format_abn, format_money, format_ndis_number
from plankeeper.core.ids import parse_uuid
from plankeeper.resources.account_managers import store as account_manager_store
from plankeeper.resources.account_managers.schemas import AccountManager, AccountManagerListQuery
from plankeeper.resources.invoices.check_store import get_display_names
from plankeeper.resources.invoices.store import get_many_without_lines
from plankeeper.resources.participants import store as participant_store
from plankeeper.resources.participants.schemas import Participant
from plankeeper.resources.providers import store as provider_store
from plankeeper.resources.search import service
from plankeeper.resources.search.schemas import (
    InvoiceMatch,
    Kind,
    Match,
    ParticipantMatch,
    ProviderMatch,
)

PickerKind = Literal[
    "participant",
    "provider",
    "participant_or_invoice",
    "account_manager",
    "active_account_manager",
    "person",
    "support_item",
]

MAX_CANDIDATES = 10
MAX_TEXT_LENGTH = 255
PAGE_LIMIT = 1000  # account managers that are read at once
PICKER_KINDS: tuple[PickerKind, ...] = get_args(PickerKind)
# The kinds of records that the search finds for a field.
SEARCHED_KINDS: Mapping[PickerKind, Sequence[Kind]] = {
    "participant": ("participant",),
    "provider": ("provider",),
    "participant_or_invoice": ("participant", "invoice"),
}
NOUNS: Mapping[PickerKind, str] = {
    "participant": "participant",
    "provider": "provider",
    "participant_or_invoice": "participant or invoice",
    "account_manager": "account manager",
    "active_account_manager": "active account manager",
    "person": "person or key",
    "support_item": "support item",
}


class Candidate(NamedTuple):
    """A record that can be picked: its id, its name, and details that distinguish records of that name."""

    id: str
    label: str
    detail: str = ""
    is_similar: bool = False  # whether only a word with a typo matches
    price: str = ""  # the price limit of a support item


class RecordPicker(NamedTuple):
    """The state of the field. `id` is null while no record is picked; then there may be candidates."""

    kind: PickerKind
    name: str
    text: str
    id: UUID | None = None
    candidates: Sequence[Candidate] = ()
    takes_any_text: bool = False  # whether a text counts even if no record has this name

    @property
    def is_unclear(self) -> bool:
        """Whether there is a text, but no record that it certainly identifies."""
        return bool(self.text) and self.id is None and not (self.takes_any_text and not self.candidates)

    @property
    def message(self) -> str:
        """The message about a text that doesn't identify a record."""
        if not self.is_unclear:
            return ""
        noun = NOUNS[self.kind]
        return f"Which {noun}?" if self.candidates else f"No {noun} matches “{' '.join(self.text.split())}”"


async def pick_record(request: PageRequest, kind: PickerKind, name: str, form: Form) -> RecordPicker:
    """The record that a field of a form, or of a query, identifies."""
    text = form.text(f"{name}_choice") or form.text(name)[:MAX_TEXT_LENGTH]
    shown_id = parse_uuid(form.text(f"{name}_id"))
    if not text:
        return RecordPicker(kind, name, "")
    id_ = parse_uuid(text)
    if id_:
        label = await record_label(request, kind, id_)
        return RecordPicker(kind, name, label or text, id_ if label else None)
    if shown_id and await record_label(request, kind, shown_id) == text:
        return RecordPicker(kind, name, text, shown_id)
    candidates = await find_candidates(request, kind, text)
    same = [each for each in candidates if fold_name(each.label) == fold_name(text)] or candidates
    if len(same) == 1 and not same[0].is_similar:
        return RecordPicker(kind, name, same[0].label, UUID(same[0].id))
    return RecordPicker(kind, name, text, None, candidates)


async def pick_changed(request: PageRequest, shown: RecordPicker) -> RecordPicker:
    """A field of the form: as the record has it (`shown`) unless a person has changed it.

    The record that it shows can be deleted or hidden by now.
    """
    name = shown.name
    if name not in request.form:
        return shown
    is_unchanged = not request.form.text(f"{name}_choice") and request.form.text(name) == shown.text
    if is_unchanged and request.form.text(f"{name}_id") == str(shown.id or ""):
        return shown
    return await pick_record(request, shown.kind, name, request.form)


async def load_record_names(
    request: PageRequest, participants: Sequence[UUID], providers: Sequence[UUID]
) -> dict[UUID, str]:
    """The names of the participants and providers that exist, by id."""
    found = await get_display_names(request.db, request.plan_manager_id, participants, providers)
    return {each.id: each.name or "No name" for each in found}


async def record_label(request: PageRequest, kind: PickerKind, id_: UUID) -> str | None:
    """The name of a record; null if there is no such record, or the account can't see it."""
    if kind == "participant" and not await select_inside(request, "participant", [id_]):
        return None
    if kind in ("participant", "provider"):
        participants, providers = ([id_], list[UUID]()) if kind == "participant" else (list[UUID](), [id_])
        return (await load_record_names(request, participants, providers)).get(id_)
    if kind == "participant_or_invoice":
        if label := await record_label(request, "participant", id_):
            return label
        ids = await select_inside(request, "invoice", [id_])
        invoices = await get_many_without_lines(request.db, request.plan_manager_id, ids)
        return (invoices[0].invoice_number or "No number") if invoices else None
    listed = await _list(request, kind)
    return next((each.label for each in listed if each.id == str(id_)), None)


async def describe_number(request: PageRequest, picker: RecordPicker) -> str:
    """The number of the participant or provider that is picked, which distinguishes it from others of its name."""
    if picker.id is None:
        return ""
    place = (request.db, request.plan_manager_id, [picker.id])
    if picker.kind == "participant":
        people = await participant_store.get_many(*place)
        number = people[0].participant_number if people else None
        return f"NDIS {format_ndis_number(number)}" if number else "No NDIS number"
    providers = await provider_store.get_many(*place)
    abn = providers[0].abn if providers else None
    return f"ABN {format_abn(abn)}" if abn else "No ABN"


async def find_candidates(request: PageRequest, kind: PickerKind, text: str) -> list[Candidate]:
    """The records that match a text, the best first, at most MAX_CANDIDATES. Typos count if nothing else matches."""
    if kind == "support_item":
        return [
            Candidate(
                each.support_item_number,
                each.support_item_number,
                " · ".join(filter(None, (each.name, describe_limit(each, limit)))),
                price="" if limit is None else format_money(limit),
            )
            for each, limit in await search_items(request, text, MAX_CANDIDATES)
        ]
    if kind not in SEARCHED_KINDS:
        words = fold_name(text).split()
        found = [
            each
            for each in await _list(request, kind)
            if all(word in fold_name(f"{each.label} {each.detail}") for word in words)
        ]
        return found[:MAX_CANDIDATES]
    place, limit = (request.db, request.plan_manager_id), request.participants_of
    kinds = SEARCHED_KINDS[kind]
    results = await service.search(*place, text, kinds, MAX_CANDIDATES, participants_of=limit)
    matches = [match for each in results.kinds for match in each.matches]
    similar = [match for each in results.kinds for match in each.similar] if not matches else []
    shown = [*matches, *similar]
    request.record_list("participant", [each.id for each in shown if isinstance(each, ParticipantMatch)], {"q": text})
    request.record_list("invoice", [each.id for each in shown if isinstance(each, InvoiceMatch)], {"q": text})
    return [*map(_candidate, matches), *(_candidate(each)._replace(is_similar=True) for each in similar)]


def _candidate(match: Match) -> Candidate:
    if isinstance(match, ParticipantMatch):
        return Candidate(str(match.id), display_name(match), match.participant_number or "")
    if isinstance(match, ProviderMatch):
        return Candidate(str(match.id), (match.entity_name or "").strip() or "No name", match.abn or "")
    if isinstance(match, InvoiceMatch):
        return Candidate(
            str(match.id), match.invoice_number or "No number", "" if match.total is None else format_money(match.total)
        )
    raise TypeError(type(match))


async def _list(request: PageRequest, kind: PickerKind) -> list[Candidate]:
    """The account managers, or the people and keys that act for the plan manager."""
    place = (request.db, request.plan_manager_id)
    if kind in ("account_manager", "active_account_manager"):
        return [
            Candidate(str(each.id), each.name or each.email or "No name", each.email or "")
            for each in await _list_account_managers(request)
            if each.active or kind == "account_manager"
        ]
    members = await member_store.list_members(*place)
    keys = await api_key_store.list_by_plan_manager(*place)
    return [
        *(Candidate(str(each.id), each.name, each.email) for each in members),
        *(Candidate(str(each.id), each.name, "API key") for each in keys),
    ]


async def _list_account_managers(request: PageRequest) -> list[AccountManager]:
    """All account managers of the plan manager, in order of their ids."""
    found, after = list[AccountManager](), "0"
    while True:
        query = AccountManagerListQuery(limit=PAGE_LIMIT, after=after)
        rows = await account_manager_store.list_page(
            request.db, request.plan_manager_id, query, request.settings.operator_name
        )
        found += rows
        if not rows.next_cursor:
            return found
        after = rows.next_cursor


MAX_CHOICES = 500  # options of a select, which limits the size of the page


async def manager_choices(request: PageRequest) -> dict[str, str]:
    """The account managers that can be selected: names by id, sorted by name."""
    query = AccountManagerListQuery(limit=MAX_CHOICES)
    rows = await account_manager_store.list_page(
        request.db, request.plan_manager_id, query, request.settings.operator_name
    )
    labelled = [(each.name or each.email or "No name", each) for each in rows]
    labelled.sort(key=lambda each: each[0].casefold())
    return {str(each.id): name if each.active else f"{name} (inactive)" for name, each in labelled}


async def account_choices(request: PageRequest) -> dict[str, str]:
    """The accounts that work on invoices: names by id, sorted by name. Viewers only look at them."""
    members = await member_store.list_members(request.db, request.plan_manager_id)
    return {"": "Nobody", **{str(each.id): each.name for each in members if each.role != "viewer"}}


MAX_OPTIONS = 12  # account managers of a select
FIELD = "account_manager"


async def account_manager_picker(request: PageRequest, participant: Participant | None) -> RecordPicker:
    """The field as it was sent, or else with the participant's account manager, who may be hidden by now."""
    manager = participant.account_manager if participant else None
    shown = RecordPicker(FIELD, FIELD, "")
    if manager and manager.id:
        shown = RecordPicker(FIELD, FIELD, manager.name or "No name", manager.id)
    return await pick_changed(request, shown)


async def read_account_manager(
    request: PageRequest, participant: Participant | None
) -> tuple[Form, Sequence[FieldError]]:
    """The form with the id of the account manager in the field, and the error of a text without a match.

    A form with a select stays as it is.
    """
    if FIELD not in request.form:
        return request.form, ()
    picker = await account_manager_picker(request, participant)
    if picker.is_unclear:
        return request.form, [FieldError(FIELD, picker.message)]
    others = [(name, text) for name, text in request.form.multi_items() if name != f"{FIELD}_id"]
    return Form([*others, (f"{FIELD}_id", str(picker.id or ""))]), ()


def plan_manager_choices(session: Session) -> list[tuple[UUID, str, str]]:
    """The account's plan managers, each with its id, name and the account's role, sorted by name."""
    rows = [(each, session.plan_manager_names[each], role) for each, role in session.roles.items()]
    return sorted(rows, key=lambda each: (each[1].casefold(), each[0]))
