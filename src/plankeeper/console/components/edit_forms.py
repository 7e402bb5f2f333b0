"""Forms that edit a record: filling them, finding changed fields, and detecting concurrent edits."""

import hashlib
from collections.abc import AsyncGenerator, Collection, Iterable, Mapping, Sequence
from contextlib import asynccontextmanager
from datetime import date, datetime
from decimal import Decimal
from operator import itemgetter
from typing import Any, NamedTuple, TypeVar

import asyncpg
from msgspec import UNSET, Struct

from plankeeper.console.components.events import fields_of
from plankeeper.console.components.labels import field_label
from plankeeper.console.shell.forms import FieldWarning, Form, FormError, parse_amount
from plankeeper.console.shell.routing import FormRequest, PageRequest
from plankeeper.core.context import ConstraintErrorHandler, translate_violation
from plankeeper.core.dates import (
    DateError,
    date_input,
    normalize_date,
    parse_date,
)
from plankeeper.core.errors import DomainError, FieldError, ValidationError
from plankeeper.core.json import to_json
from plankeeper.core.soft_validation import ValueWarning
from plankeeper.core.validation import known_fields, unwrap_type, validate, validate_struct
from plankeeper.database.versions import format_version, parse_version
from plankeeper.events import activity_store
from plankeeper.events.schemas import HistoryEvent

S = TypeVar("S", bound=Struct)

VERSION_FIELD = "was"  # the hidden field with the version of the record that the form was filled with

MAX_EVENTS = 50  # of the record, among which the changes of a conflict are looked up


class AmountError(ValueError):
    """A text that isn't an amount."""


class EditConflictError(DomainError):
    """A form conflicts with another change; it is shown again with status 409."""

    def __init__(self, detail: str) -> None:
        super().__init__("precondition_failed", detail)


@asynccontextmanager
async def translate_constraints(
    request: FormRequest, constraint_errors: Mapping[str, ConstraintErrorHandler]
) -> AsyncGenerator[None]:
    """Raises the API's error for a constraint violation of the block, after rolling back to a savepoint."""
    try:
        async with request.tx.savepoint():
            yield
    except asyncpg.IntegrityConstraintViolationError as error:
        raise await translate_violation(request.tx, request.plan_manager_id, error, constraint_errors) from None


def form_from(struct_type: type[Struct], record: Struct, **overrides: object) -> Form:
    """A form with the record's fields that the struct has, and with other values instead for `overrides`."""
    values = {name: getattr(record, name) for name in known_fields(struct_type) if name not in overrides} | overrides
    return Form((name, text) for name, value in values.items() for text in _to_texts(value))


def _to_texts(value: object) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return ["true"]
    if isinstance(value, list):
        return [str(each) for each in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    if isinstance(value, Decimal):
        return [f"{value:f}"]
    return [value.isoformat() if isinstance(value, date) else str(value)]


def select_fields(form: Form, names: Collection[str]) -> Form:
    """The fields of one part of a form."""
    return Form((name, text) for name, text in form.multi_items() if name in names)


class EditedRecord(NamedTuple):
    """The record of a form: what it is in events, its version, and the fields that the form has."""

    kind: str
    id: object
    updated_at: datetime
    fields: Collection[str]


async def require_unchanged(request: FormRequest, record: EditedRecord) -> None:
    """Raises EditConflictError if a field of the form has changed since the form was filled."""
    if await _is_outdated(request, record):
        raise EditConflictError(
            "Someone else changed this while you were editing. Your changes aren’t saved yet."
            " Review them below, then save again."
        )


async def _is_outdated(request: PageRequest, record: EditedRecord) -> bool:
    """Whether a field of the submitted form has changed since the record had the form's version.

    If the record has another version, its latest events tell which fields have changed. If they don't go back to the
    form's version, all of them count as changed.
    """
    version = parse_version(request.form.text(VERSION_FIELD))
    if version == record.updated_at:
        return False
    since = await _list_changes_since(request, record, version) if version else []
    if not since or len(since) == MAX_EVENTS:
        return True
    now, then = fields_of(since[0].data), dict[str, Any]()
    for each in since:
        then |= fields_of(each.previous)
    changed = {name for name, value in then.items() if now.get(name) != value}
    return any(_event_name(name, changed) in changed for name in record.fields)


async def _list_changes_since(request: PageRequest, record: EditedRecord, version: datetime) -> list[HistoryEvent]:
    """The latest events of a record that changed a version or a later one, the newest first."""
    events = [(_updated_at(each) or version, each) for each in await _list_events(request, record)]
    return [each for at, each in sorted(events, key=itemgetter(0), reverse=True) if at > version]


async def _list_events(request: PageRequest, record: EditedRecord) -> list[HistoryEvent]:
    """The latest events of a record, the newest first."""
    db = request.tx.reader if isinstance(request, FormRequest) else request.db
    place = (request.plan_manager_id, [str(record.id)], None, record.kind)
    return await activity_store.list_of_resources(db, *place, MAX_EVENTS)


def _updated_at(event: HistoryEvent) -> datetime | None:
    text = fields_of(event.data).get("updated_at")
    return datetime.fromisoformat(text) if text else None


def _event_name(name: str, known: Collection[str]) -> str:
    """The name of a form's field in events, which contain a record instead of its id."""
    return name if name in known else name.removesuffix("_id")


def changes_in(struct_type: type[S], form: Form, before: Form) -> S:
    """The changed fields of a form as a struct of the API; raises ValidationError. Unchanged fields are left out, so
    that an old value which is no longer valid does not prevent other changes.
    """
    change, errors = find_changes(struct_type, form, before)
    if errors:
        raise ValidationError(*errors)
    return change


def find_changes(
    struct_type: type[S], form: Form, before: Form, fields: Collection[str] | None = None
) -> tuple[S, list[FieldError]]:
    """The changed fields that are valid, and the errors of the others. Dates and amounts are read as people type them.

    `fields` are those of a form that has only a part of the record; others stay unchanged.
    """
    values, errors = dict[str, Any](), list[FieldError]()
    for name, kind in _kinds(struct_type).items():
        if fields is not None and name not in fields:
            continue
        if kind in (bool, list):
            new, old = sorted(set(form.getlist(name))), sorted(before.getlist(name))
            if new != old:
                values[name] = new if kind is list else bool(new)
        elif name in form and _comparable(form, name, kind) != _comparable(before, name, kind):
            try:
                values[name] = _convert_text(kind, form.multiline_text(name))
            except (DateError, AmountError) as error:
                errors.append(FieldError(name, str(error)))
    errors += validate(struct_type, values)[1]
    invalid = {each.field.partition("[")[0] for each in errors}
    valid = {name: value for name, value in values.items() if name not in invalid}
    return validate_struct(struct_type, valid), errors


def describe_changes(change: Struct) -> str:
    """The labels of the fields that a change sets, after a colon, such as `: City, Postcode`; empty without any."""
    labels = [field_label(name) for name in change.__struct_fields__ if getattr(change, name) is not UNSET]
    return f": {', '.join(labels)}" if labels else ""


def _comparable(form: Form, name: str, kind: type[Any]) -> str:
    text = form.multiline_text(name)
    if kind is Decimal and (amount := parse_amount(text)) is not None:
        return f"{amount.normalize():f}"
    return normalize_date(text) if kind is date else text


def _convert_text(kind: type[Any], text: str) -> object:
    if kind is date and text:
        return parse_date(text).isoformat()
    if kind is Decimal and text:
        amount = parse_amount(text)
        if amount is None:
            raise AmountError("must be a number, such as 1,000.50")
        return amount
    return int(text) if kind is int and text.isdecimal() and len(text) < 10 else text or None


class Conflict(NamedTuple):
    """The saved value of a field that differs from the submitted form, and the event that saved it."""

    value: str
    event: HistoryEvent | None


async def edit_context(
    request: PageRequest, struct_type: type[Struct], current: Form, record: EditedRecord
) -> dict[str, Any]:
    """The context of an edit page: the submitted form or else the record, its version, and concurrent changes.

    `current` has the values of the record in the fields of the form.
    """
    is_outdated = bool(request.form) and await _is_outdated(request, record)
    values = {
        name: ", ".join(date_input(each) if kind is date else each for each in current.getlist(name))
        for name, kind in _kinds(struct_type).items()
        if is_outdated and _differs(request.form, current, name, kind)
    }
    events = await _latest_updates(request, record) if values else {}
    conflicts = {name: Conflict(value, events.get(_event_name(name, events))) for name, value in values.items()}
    return {"form": request.form or current, "version": format_version(record.updated_at), "conflicts": conflicts}


async def _latest_updates(request: PageRequest, record: EditedRecord) -> dict[str, HistoryEvent]:
    """The latest event that changed a field, by the field, among the latest events of a record."""
    events = await _list_events(request, record)
    return {name: event for event in reversed(events) for name in fields_of(event.previous)}


def _kinds(struct_type: type[Struct]) -> dict[str, type[Any]]:
    return {name: unwrap_type(field.type) for name, field in known_fields(struct_type).items()}


def _differs(first: Form, second: Form, name: str, kind: type[Any]) -> bool:
    if len(second.getlist(name)) > 1:
        return sorted(first.getlist(name)) != sorted(second.getlist(name))
    return _comparable(first, name, kind) != _comparable(second, name, kind)


CONFIRMED_FIELD = "confirmed_warning"  # the hidden fields with the warnings that were shown
SAVE_ANYWAY_FIELD = "save_anyway"  # the button that confirms them


def require_confirmed(
    form: Form, implausible: Iterable[ValueWarning], errors: Sequence[FieldError] = (), records_url: str = ""
) -> None:
    """Raises FormError for errors, and for warnings unless the person has seen them and saves anyway.

    A warning about another record links to it below `records_url`.
    """
    invalid = {each.field for each in errors}
    warnings = dict[str, FieldWarning]()
    for each in implausible:
        if each.field not in invalid:
            warnings[each.field] = _build_warning(form, each, warnings.get(each.field), records_url)
    shown = set(form.getlist(CONFIRMED_FIELD)) if form.text(SAVE_ANYWAY_FIELD) else set[str]()
    if errors or any(each.token not in shown for each in warnings.values()):
        raise FormError(errors, warnings)


def new_implausible(before: Iterable[ValueWarning], after: Iterable[ValueWarning]) -> list[ValueWarning]:
    """The warnings that a change causes, without those that the record had before."""
    known = set(before)
    return [each for each in after if each not in known]


def _build_warning(form: Form, found: ValueWarning, earlier: FieldWarning | None, records_url: str) -> FieldWarning:
    """The warning about a field, together with an earlier one about the same field."""
    message = f"{earlier.message}, and {found.message}" if earlier else found.message
    values = [normalize_date(text) for text in form.getlist(found.field)]  # the page shows dates in its own format
    content = to_json([found.field, message, values]).encode()
    token = hashlib.blake2b(content, digest_size=16).hexdigest()
    url = f"{records_url}/{found.record_id}" if found.record_id else earlier.url if earlier else ""
    return FieldWarning(message, token, url, "View the other record" if url else "")
