"""Forms that edit a record: filling them, finding what was changed, and detecting concurrent edits."""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from typing import Any, TypeVar

import asyncpg
from msgspec import Struct

from plankeeper.console.forms import Form, validate_struct
from plankeeper.console.routing import FormRequest, PageRequest
from plankeeper.database.client import constraint_violation
from plankeeper.http.errors import ApiError
from plankeeper.http.json import to_json
from plankeeper.http.parsing import unwrap_type
from plankeeper.http.routing import ConstraintErrorHandler
from plankeeper.http.validation import known_fields

S = TypeVar("S", bound=Struct)

VERSION_FIELD = "was"  # the hidden field with the version of the record that the form was filled with


class EditConflictError(ApiError):
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
        violation = constraint_violation(error)
        handler = constraint_errors.get(violation.constraint)
        if handler is None:
            raise
        raise await handler(request.tx, request.plan_manager_id, violation) from None


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
    return [value.isoformat() if isinstance(value, date) else str(value)]


def version_of(form: Form) -> str:
    """A digest of the record's state in a form, which identifies its version."""
    return hashlib.blake2b(to_json(form.multi_items()).encode(), digest_size=16).hexdigest()


def require_unchanged(request: FormRequest, current: Form) -> None:
    """Raises EditConflictError if the record, which the caller has locked, has changed since the form was filled."""
    if request.form.text(VERSION_FIELD) != version_of(current):
        raise EditConflictError(
            "Somebody else changed this in the meantime. Your changes aren’t saved yet."
            " Review them below, then save again."
        )


def changes_in(struct_type: type[S], form: Form, before: Form) -> S:
    """The changed fields of a form as a struct of the API; raises ValidationError. Unchanged fields are left out, so
    that an old value which is no longer valid does not prevent other changes.
    """
    values = dict[str, Any]()
    for name, field in known_fields(struct_type).items():
        kind = unwrap_type(field.type)
        if kind in (bool, list):
            new, old = sorted(set(form.getlist(name))), sorted(before.getlist(name))
            if new != old:
                values[name] = new if kind is list else bool(new)
        elif name in form and _normalized_text(form, name) != _normalized_text(before, name):
            values[name] = _convert_text(kind, _normalized_text(form, name))
    return validate_struct(struct_type, values)


def _normalized_text(form: Form, name: str) -> str:
    return form.text(name).replace("\r\n", "\n")


def _convert_text(kind: type[Any], text: str) -> object:
    return int(text) if kind is int and text.isdecimal() and len(text) < 10 else text or None


def edit_context(request: PageRequest, struct_type: type[Struct], current: Form) -> dict[str, Any]:
    """The context of an edit page: the submitted form or else the record, its version, and what changed in between."""
    form, version = request.form or current, version_of(current)
    is_outdated = bool(request.form) and request.form.text(VERSION_FIELD) != version
    conflicts = {
        name: ", ".join(current.getlist(name))
        for name in known_fields(struct_type)
        if is_outdated and _differs(form, current, name)
    }
    return {"form": form, "version": version, "conflicts": conflicts}


def _differs(first: Form, second: Form, name: str) -> bool:
    if len(second.getlist(name)) > 1:
        return sorted(first.getlist(name)) != sorted(second.getlist(name))
    return _normalized_text(first, name) != _normalized_text(second, name)
