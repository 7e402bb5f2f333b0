"""The plans of a participant: their budgets as bars, and forms that create, edit and delete a plan."""

import re
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import date
from decimal import Decimal
from typing import Any, NamedTuple
from uuid import UUID

from msgspec.structs import replace

from plankeeper.console.components.edit_forms import (
    VERSION_FIELD,
    Conflict,
    EditedRecord,
    edit_context,
    require_unchanged,
    translate_constraints,
)
from plankeeper.console.components.labels import display_name
from plankeeper.console.participants.budget_charts import budget_charts, percent
from plankeeper.console.participants.header import participant_context
from plankeeper.console.shell.form_reader import FormReader
from plankeeper.console.shell.forms import Form
from plankeeper.console.shell.routing import PREFIX, FormRequest, HtmlPage, PageRequest, Pages, Redirect
from plankeeper.core.context import or_404
from plankeeper.core.dates import DateError, normalize_date, parse_date
from plankeeper.core.errors import ValidationError
from plankeeper.core.formatting import format_date, format_money
from plankeeper.core.ids import parse_uuid
from plankeeper.core.validation import known_fields, validate_struct
from plankeeper.database.versions import format_version
from plankeeper.resources.participants import plans as service
from plankeeper.resources.participants.store import get as get_participant
from plankeeper.resources.plans import rules, store
from plankeeper.resources.plans.schemas import MAX_COMPONENTS, Plan, PlanComponent, PlanCreate, PlanUpdate
from plankeeper.resources.plans.service import CONSTRAINT_ERRORS

pages = Pages()
PATH = "/participants/{participant_id}/plans"
KINDS = {"flexible": "Flexible", "stated": "Stated"}
EMPTY_ROWS = 3  # for new components
_PARTS = ("id", "name", "categories", "amount", "periods", "spent", "as_of", "source")
_PERIOD = re.compile(r"(?P<start>.+?)\s+(?:to|–|-)\s+(?P<end>.+?)\s*:\s*\$?(?P<amount>[0-9,]+(?:\.[0-9]+)?)")


class Bar(NamedTuple):
    """A component with the width of what is used and of the time that has passed, in percent."""

    component: PlanComponent
    used: Decimal
    width: float
    runs_out: date | None


class ShownPlan(NamedTuple):
    """A plan of the page. `passed` is the part of its days that has passed, in percent."""

    plan: Plan
    is_current: bool
    dates: str
    passed: float
    bars: Sequence[Bar]


@pages.get(PATH, role="viewer", is_limited=True, access_log="participant")
async def list_(request: PageRequest, participant_id: UUID) -> HtmlPage:
    """The plans, the latest first, with the charts of the one that the query names, or of the current one."""
    context = await participant_context(request, participant_id, "/plans")
    rows = await store.list_of_participants(request.db, request.plan_manager_id, [participant_id])
    lines = await store.list_lines(request.db, request.plan_manager_id, [participant_id])
    plans = [rules.with_numbers(each, rows, lines, request.today) for each in rows]
    current = rules.current_plan(plans, request.today)
    chosen = next((each for each in plans if str(each.id) == request.query.text("charts")), current)
    shown = [_show(each, current, request.today) for each in reversed(plans)]
    charts = budget_charts(chosen, rules.lines_of(rows, chosen, lines), request.today) if chosen else []
    context |= {"plans": shown, "kinds": KINDS, "charts": charts, "charts_of": chosen}
    return HtmlPage("participants/plans.html", context)


def _show(plan: Plan, current: Plan | None, today: date) -> ShownPlan:
    passed = round(float(100 * rules.passed_share(plan, today)), 2)
    bars = [_bar(plan, each, today) for each in plan.components]
    return ShownPlan(plan, plan is current, rules.describe_dates(plan), passed, bars)


def _bar(plan: Plan, component: PlanComponent, today: date) -> Bar:
    numbers = rules.numbers_of(component)
    return Bar(
        component,
        numbers.used,
        percent(numbers.used, component.amount),
        rules.runs_out_on(plan, component, numbers, today),
    )


@pages.get(PATH + "/new", role="manager", access_log="participant")
async def new(request: PageRequest, participant_id: UUID) -> HtmlPage:
    """An empty form, or with the components of the plan `from`: as that one, with new dates and amounts."""
    source = await _get_plan(request, participant_id, parse_uuid(request.query.text("from")))
    form = request.form or (_form_of(source, is_copy=True) if source else Form())
    return HtmlPage("participants/plan_new.html", await _context(request, participant_id, form))


@pages.post(PATH, role="manager", on_error=new)
async def create(request: FormRequest, participant_id: UUID) -> Redirect:
    values, rows = _read(request.form)
    async with _translate_errors(request, rows):
        change = validate_struct(PlanCreate, values)
        plan = await service.create(request.write_context, participant_id, change)
    return Redirect(plans_url(participant_id), f"Plan {rules.describe_dates(plan)} added.", undo=request.undo_path)


@pages.get(PATH + "/{plan_id}/edit", role="manager", access_log="participant")
async def edit(request: PageRequest, participant_id: UUID, plan_id: UUID) -> HtmlPage:
    plan = or_404(await _get_plan(request, participant_id, plan_id))
    current = _form_of(plan)
    context = await _context(request, participant_id, request.form or current)
    context |= await edit_context(request, PlanUpdate, current, _edited(plan))
    context["conflicts"] |= _find_component_conflict(request.form, current, plan)
    return HtmlPage("participants/plan_edit.html", context | {"plan": plan, "dates": rules.describe_dates(plan)})


def _edited(plan: Plan) -> EditedRecord:
    return EditedRecord("plan", plan.id, plan.updated_at, known_fields(PlanUpdate))


def _find_component_conflict(form: Form, current: Form, plan: Plan) -> dict[str, Conflict]:
    """The saved components, if the plan has another version than the submitted form, and other components."""
    if not form or form.text(VERSION_FIELD) == format_version(plan.updated_at):
        return {}
    numbers, parts = range(1, MAX_COMPONENTS + 1), ("kind", *_PARTS)
    names = [f"component_{number}_{part}" for number in numbers if _is_filled(current, number) for part in parts]
    if all(_lines(form, name) == _lines(current, name) for name in names):
        return {}
    saved = ", ".join(f"{each.name} {format_money(each.amount)}" for each in plan.components)
    return {"components": Conflict(saved or "none", None)}


def _lines(form: Form, name: str) -> list[str]:
    """The lines of a field, with dates in the form of the API."""
    return [normalize_date(line) for line in form.text(name).splitlines()]


@pages.post(PATH + "/{plan_id}/edit", role="manager", on_error=edit)
async def update(request: FormRequest, participant_id: UUID, plan_id: UUID) -> Redirect:
    plan = or_404(await service.lock(request.write_context, participant_id, plan_id))
    await require_unchanged(request, _edited(plan))
    values, rows = _read(request.form)
    async with _translate_errors(request, rows):
        change = validate_struct(PlanUpdate, values)
        saved = await service.update(request.write_context, participant_id, plan_id, change)
    message = f"Changes to the plan {rules.describe_dates(saved)} saved."
    return Redirect(plans_url(participant_id), message, undo=request.undo_path)


@pages.get(PATH + "/{plan_id}/delete", role="manager", access_log="participant")
async def delete_form(request: PageRequest, participant_id: UUID, plan_id: UUID) -> HtmlPage:
    plan = or_404(await _get_plan(request, participant_id, plan_id))
    context = await _context(request, participant_id, Form())
    return HtmlPage("participants/plan_delete.html", context | {"plan": plan, "dates": rules.describe_dates(plan)})


@pages.post(PATH + "/{plan_id}/delete", role="manager", on_error=delete_form)
async def delete(request: FormRequest, participant_id: UUID, plan_id: UUID) -> Redirect:
    await service.delete(request.write_context, participant_id, plan_id)
    return Redirect(plans_url(participant_id), "Plan deleted.", undo=request.undo_path)


def plans_url(participant_id: UUID) -> str:
    return f"{PREFIX}/participants/{participant_id}/plans"


async def _get_plan(request: PageRequest, participant_id: UUID, plan_id: UUID | None) -> Plan | None:
    found = await store.get_many(request.executor, request.plan_manager_id, [plan_id] if plan_id else [])
    return next((each for each in found if each.participant_id == participant_id), None)


async def _context(request: PageRequest, participant_id: UUID, form: Form) -> dict[str, Any]:
    participant = or_404(await get_participant(request.executor, request.plan_manager_id, participant_id))
    last = max((number for number in range(1, MAX_COMPONENTS + 1) if _is_filled(form, number)), default=0)
    return {
        "participant": participant,
        "name": display_name(participant),
        "form": form,
        "kinds": KINDS,
        "numbers": range(1, min(MAX_COMPONENTS, last + EMPTY_ROWS) + 1),
    }


def _form_of(plan: Plan, *, is_copy: bool = False) -> Form:
    """The values of a plan. A copy has the names and categories of the components."""
    fields = dict[str, str]()
    if not is_copy:
        dates = {"start_date": plan.start_date, "end_date": plan.end_date}
        fields |= {name: day.isoformat() for name, day in dates.items() if day}
        fields["external_id"] = plan.external_id or ""
    if plan.is_pace_plan:
        fields["is_pace_plan"] = "true"
    for number, each in enumerate(plan.components, 1):
        parts = {"name": each.name, "kind": each.kind, "categories": ", ".join(map(str, each.categories))}
        if not is_copy:
            spent = each.spent_elsewhere
            parts |= {
                "id": str(each.id),
                "amount": f"{each.amount:.2f}",
                "periods": "\n".join(
                    f"{format_date(period.start_date)} to {format_date(period.end_date)}: {period.amount:.2f}"
                    for period in each.periods
                ),
                "spent": f"{spent.amount:.2f}" if spent else "",
                "as_of": spent.as_of.isoformat() if spent else "",
                "source": (spent.source or "") if spent else "",
            }
        fields |= {f"component_{number}_{part}": text for part, text in parts.items()}
    return Form(fields.items())


def _is_filled(form: Form, number: int) -> bool:
    return any(form.text(f"component_{number}_{part}") for part in _PARTS)


def _read(form: Form) -> tuple[dict[str, Any], list[int]]:
    """The values of a form as the API takes them, and the row of each component. Raises ValidationError for others."""
    rows = [number for number in range(1, MAX_COMPONENTS + 1) if _is_filled(form, number)]
    values: dict[str, Any] = {"is_pace_plan": bool(form.getlist("is_pace_plan"))}
    with FormReader(form) as fields:
        days = {name: fields.read_optional_date(name) for name in ("start_date", "end_date")}
        values |= {name: day.isoformat() for name, day in days.items() if day}
        values["external_id"] = form.text("external_id") or None
        values["components"] = [_read_component(fields, f"component_{number}_") for number in rows]
    return values, rows


def _read_component(fields: FormReader, prefix: str) -> dict[str, Any]:
    given = {part: text for part in ("id", "name", "kind") if (text := fields.form.text(prefix + part))}
    values: dict[str, Any] = {**given, "periods": list(_read_periods(fields, f"{prefix}periods"))}
    values["categories"] = _read_categories(fields, f"{prefix}categories")
    if (amount := fields.read_optional_amount(f"{prefix}amount")) is not None:
        values["amount"] = amount
    values["spent_elsewhere"] = _read_spent(fields, prefix)
    return values


def _read_categories(fields: FormReader, name: str) -> list[int]:
    texts = re.findall(r"[^\s,;]+", fields.form.text(name))
    if wrong := next((each for each in texts if not re.fullmatch(r"[0-9]{1,2}", each)), None):
        fields.reject(name, f"must be numbers from 1 to 99, such as 1, 2, 3, 4, and not {wrong[:60]}")
        return []
    return list(map(int, texts))


def _read_spent(fields: FormReader, prefix: str) -> dict[str, Any] | None:
    spent, as_of = fields.read_optional_amount(f"{prefix}spent"), fields.read_optional_date(f"{prefix}as_of")
    source = fields.form.text(f"{prefix}source") or None
    if spent is not None:
        if not fields.form.text(f"{prefix}as_of"):
            fields.reject(f"{prefix}as_of", "is required with an amount that was spent elsewhere")
        return {"amount": spent, "as_of": as_of.isoformat() if as_of else "", "source": source}
    if (as_of or source) and not fields.form.text(f"{prefix}spent"):
        fields.reject(f"{prefix}spent", "is required with a day or a source")
    return None


def _read_periods(fields: FormReader, name: str) -> Iterator[dict[str, Any]]:
    for line in filter(None, map(str.strip, fields.form.text(name).splitlines())):
        match = _PERIOD.fullmatch(line)
        if match is None:
            fields.reject(name, f"must have lines such as 1 Jul 2026 to 30 Sep 2026: 5,000.00, and not {line[:60]}")
            return
        try:
            start, end = (parse_date(match[each]).isoformat() for each in ("start", "end"))
        except DateError as error:
            fields.reject(name, str(error))
            return
        yield {"start_date": start, "end_date": end, "amount": Decimal(match["amount"].replace(",", ""))}


@asynccontextmanager
async def _translate_errors(request: FormRequest, rows: Sequence[int]) -> AsyncGenerator[None]:
    """Assigns the API's errors to the fields of the form. `rows` are those of the components."""
    try:
        async with translate_constraints(request, CONSTRAINT_ERRORS):
            yield
    except ValidationError as error:
        raise ValidationError(*(replace(each, field=_field_of(each.field, rows)) for each in error.errors)) from None


def _field_of(name: str, rows: Sequence[int]) -> str:
    """The field of the form for one of the API: `component_1_periods` for `components[0].periods[2].amount`."""
    match = re.match(r"components\[(\d+)\]\.(\w+)", name)
    if match is None or int(match[1]) >= len(rows):
        return name
    part = "spent" if match[2] == "spent_elsewhere" else match[2]
    return f"component_{rows[int(match[1])]}_{part}"
