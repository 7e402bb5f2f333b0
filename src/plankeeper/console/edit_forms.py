"""Forms that change a record: what it was, what is new in the form, and whether somebody else was quicker."""

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

VERSION_FIELD = "was"  # the hidden field with the mark of the record that a form was filled with


class EditConflictError(ApiError):
    """What a form asks for meets what somebody else does; the form is shown again with 409."""

    def __init__(self, detail: str) -> None:
        super().__init__("precondition_failed", detail)


@asynccontextmanager
async def translate_constraints(
    request: FormRequest, constraint_errors: Mapping[str, ConstraintErrorHandler]
) -> AsyncGenerator[None]:
    """Runs a handler of the API: a constraint that it breaks is the refusal that its slice names."""
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
    """A form with a record in it: its members that `shape` lets write; `others` are told beside the record."""
    values = {name: getattr(record, name) for name in known_fields(struct_type) if name not in overrides}
    return Form({name: _to_texts(value) for name, value in (values | overrides).items()})


def _to_texts(value: object) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return ["true"]
    if isinstance(value, list):
        return [str(each) for each in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [value.isoformat() if isinstance(value, date) else str(value)]


def version_of(form: Form) -> str:
    """What tells one state of a record from another."""
    return hashlib.blake2b(to_json(form).encode(), digest_size=16).hexdigest()


def require_unchanged(request: FormRequest, current: Form) -> None:
    """Raises Conflict where the record, which the caller has locked, is not what the form was filled with."""
    if request.form.text(VERSION_FIELD) != version_of(current):
        raise EditConflictError(
            "Somebody else changed this in the meantime. Your changes aren’t saved yet."
            " Review them below, then save again."
        )


def changes_in(struct_type: type[S], form: Form, before: Form) -> S:
    """What a form changes, as the API takes it; raises ValidationError. What stands as it did is left out, so that a text
    which would not be taken today does not keep a record from being changed elsewhere.
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


def edit_context(request: PageRequest, current: Form) -> dict[str, Any]:
    """What a form that changes a record shows: what was typed, or else the record; and what is different by now."""
    context: dict[str, Any] = {"form": request.form or current, "version": version_of(current), "conflicts": {}}
    if request.form and request.form.text(VERSION_FIELD) != context["version"]:
        context["conflicts"] = {
            name: ", ".join(current.getlist(name))
            for name in current
            if _normalized_text(request.form, name) != _normalized_text(current, name)
            or (len(current.getlist(name)) > 1 and sorted(request.form.getlist(name)) != sorted(current.getlist(name)))
        }
    return context
