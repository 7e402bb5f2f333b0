"""Forms that change a record: what it was, what is new in the form, and whether somebody else was quicker."""

import hashlib
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager
from datetime import date
from typing import Any, TypeVar

import asyncpg
from msgspec import Struct

from plankeeper.console.forms import Form, struct_of
from plankeeper.console.routing import Act, Look
from plankeeper.database.client import broken
from plankeeper.http.errors import Refusal
from plankeeper.http.parsing import plain_type
from plankeeper.http.routing import Explanation
from plankeeper.http.schemas import json_text
from plankeeper.http.validation import known_fields

S = TypeVar("S", bound=Struct)

WAS = "was"  # the hidden field with the mark of the record that a form was filled with


class Conflict(Refusal):
    """What a form asks for meets what somebody else does; the form is shown again with 409."""

    def __init__(self, detail: str) -> None:
        super().__init__("precondition_failed", detail)


@asynccontextmanager
async def explained(act: Act, constraints: Mapping[str, Explanation]) -> AsyncGenerator[None]:
    """Runs a handler of the API: a constraint that it breaks is the refusal that its slice names."""
    try:
        async with act.tx.savepoint():
            yield
    except asyncpg.IntegrityConstraintViolationError as error:
        fault = broken(error)
        explain = constraints.get(fault.constraint)
        if explain is None:
            raise
        raise await explain(act.tx, act.plan_manager_id, fault) from None


def filled(shape: type[Struct], record: Struct, **others: object) -> Form:
    """A form with a record in it: its members that `shape` lets write; `others` are told beside the record."""
    values = {name: getattr(record, name) for name in known_fields(shape) if name not in others}
    return Form({name: _texts(value) for name, value in (values | others).items()})


def _texts(value: object) -> list[str]:
    if value is None or value is False:
        return []
    if value is True:
        return ["true"]
    if isinstance(value, list):
        return [str(each) for each in value]  # pyright: ignore[reportUnknownArgumentType, reportUnknownVariableType]
    return [value.isoformat() if isinstance(value, date) else str(value)]


def mark(form: Form) -> str:
    """What tells one state of a record from another."""
    return hashlib.blake2b(json_text(form).encode(), digest_size=16).hexdigest()


def require_unchanged(act: Act, now: Form) -> None:
    """Raises Conflict where the record, which the caller has locked, is not what the form was filled with."""
    if act.form.text(WAS) != mark(now):
        raise Conflict(
            "This was changed by somebody else meanwhile, and nothing is saved yet."
            " Here is what you typed: look it over, and save again if it is to stand."
        )


def new_in(shape: type[S], form: Form, before: Form) -> S:
    """What a form changes, as the API takes it; raises Invalid. What stands as it did is left out, so that a text
    which would not be taken today does not keep a record from being changed elsewhere.
    """
    values = dict[str, Any]()
    for name, field in known_fields(shape).items():
        kind = plain_type(field.type)
        if kind in (bool, list):
            typed, was = sorted(set(form.several(name))), sorted(before.several(name))
            if typed != was:
                values[name] = typed if kind is list else bool(typed)
        elif name in form and _plain(form, name) != _plain(before, name):
            values[name] = _value(kind, _plain(form, name))
    return struct_of(shape, values)


def _plain(form: Form, name: str) -> str:
    return form.text(name).replace("\r\n", "\n")


def _value(kind: type[Any], text: str) -> object:
    return int(text) if kind is int and text.isdecimal() and len(text) < 10 else text or None


def to_edit(look: Look, now: Form) -> dict[str, Any]:
    """What a form that changes a record shows: what was typed, or else the record; and what is different by now."""
    values: dict[str, Any] = {"form": look.form or now, "mark": mark(now), "different": {}}
    if look.form and look.form.text(WAS) != values["mark"]:
        values["different"] = {
            name: ", ".join(now.several(name))
            for name in now
            if _plain(look.form, name) != _plain(now, name)
            or (len(now.several(name)) > 1 and sorted(look.form.several(name)) != sorted(now.several(name)))
        }
    return values
