"""The complete sample data: two plan managers, and the records of each in import order."""

from collections.abc import Iterable, Iterator
from datetime import datetime
from random import Random
from typing import NamedTuple
from uuid import UUID

from plankeeper.cli.sample_data.dates import move_dates
from plankeeper.cli.sample_data.invoices import generate_invoices, generate_view_sessions
from plankeeper.cli.sample_data.notes import generate_notes
from plankeeper.cli.sample_data.participants import (
    generate_account_managers,
    generate_exit_reasons,
    generate_note_types,
    generate_participants,
    shorten_plans,
)
from plankeeper.cli.sample_data.plans import generate_plans
from plankeeper.cli.sample_data.providers import generate_providers
from plankeeper.cli.sample_data.random_values import LAST_MOMENT, Row, resource_rng
from plankeeper.cli.sample_data.team_members import generate_team_members


class DemoPlanManager(NamedTuple):
    """A plan manager of the sample data. Its id and name are the same for every seed."""

    id: UUID
    name: str


class _Scale(NamedTuple):
    domain: str
    note_types_from: int
    participants: int
    providers: int
    invoices: int
    sessions: int


_WATTLEBIRD = DemoPlanManager(UUID("017a5f00-0000-7000-8000-00000000da7a"), "Wattlebird Plans (demonstration)")
_SALTBUSH = DemoPlanManager(UUID("017a5f00-0000-7000-8000-00000000da7b"), "Saltbush Plans (demonstration)")
_SCALES = {
    _WATTLEBIRD: _Scale("wattlebird.example.com", 1, 400, 60, 2000, 200),
    _SALTBUSH: _Scale("saltbush.example.com", 101, 100, 20, 400, 40),
}


def plan_managers() -> list[DemoPlanManager]:
    """The two plan managers, the larger first."""
    return list(_SCALES)


def records(plan_manager_id: UUID, seed: int = 1, now: datetime = LAST_MOMENT) -> Iterator[tuple[str, Iterator[Row]]]:
    """Yield each resource's name and its rows, in import order: a row comes after the rows that it refers to.

    A row is an object of the import file. Dates and datetimes are text, amounts are `Decimal` (to be written as JSON
    numbers), and ids are lower-case UUIDs of version 7 that ascend with `created_at`. For another `now` only dates and
    datetimes are different: by as many days, with times of the last day that are before `now`, whose date is in the
    office's time zone.
    Raises ValueError for a plan manager that is not one of `plan_managers()`.
    """
    scale = next((scale for manager, scale in _SCALES.items() if manager.id == plan_manager_id), None)
    if scale is None:
        raise ValueError(f"{plan_manager_id} is not a plan manager of the sample data")
    for resource, rows in _generate(plan_manager_id, seed, scale):
        yield resource, (move_dates(row, now) for row in rows)


def _generate(plan_manager_id: UUID, seed: int, scale: _Scale) -> Iterator[tuple[str, Iterable[Row]]]:
    def rng(resource: str) -> Random:
        return resource_rng(plan_manager_id, seed, resource)

    exit_reasons = generate_exit_reasons(rng("exit-reasons"))
    yield "exit-reasons", exit_reasons
    manager_rows = generate_account_managers(rng("account-managers"), scale.domain)
    yield "account-managers", manager_rows
    participant_rows = generate_participants(rng("participants"), scale.participants, manager_rows, exit_reasons)
    demo_providers = generate_providers(rng("providers"), scale.providers)
    invoice_rows = generate_invoices(rng("invoices"), scale.invoices, participant_rows, demo_providers)
    shorten_plans(rng("plan-ends"), participant_rows, invoice_rows)
    yield "participants", participant_rows
    yield "plans", generate_plans(rng("plans"), participant_rows)
    yield "providers", [provider.row for provider in demo_providers]
    note_types = generate_note_types(scale.note_types_from)
    yield "note-types", note_types
    yield "team-members", generate_team_members(rng("team-members"), participant_rows)
    yield "invoices", invoice_rows
    session_rows = generate_view_sessions(rng("invoice-view-sessions"), scale.sessions, invoice_rows, manager_rows)
    yield "invoice-view-sessions", session_rows
    provider_rows = [provider.row for provider in demo_providers]
    notes = generate_notes(rng("notes"), participant_rows, provider_rows, invoice_rows, note_types, manager_rows)
    yield "notes", notes
