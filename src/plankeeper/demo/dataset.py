"""The demonstration as a whole: two plan managers, and every record of each in the order of import."""

from collections.abc import Iterator
from random import Random
from typing import NamedTuple
from uuid import UUID

from plankeeper.demo import invoices as billing
from plankeeper.demo import participants as people
from plankeeper.demo import providers as trade
from plankeeper.demo import team_members, view_sessions
from plankeeper.demo.random_values import Row, resource_rng


class DemoPlanManager(NamedTuple):
    """A plan manager of the demonstration; both members are the same for every seed."""

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
    """Give the two plan managers, the larger first."""
    return list(_SCALES)


def records(plan_manager_id: UUID, seed: int = 1) -> Iterator[tuple[str, Iterator[Row]]]:
    """Give each resource's name and its rows, in the order in which they must be imported.

    A row is an object of the import file. Dates and datetimes are text, amounts `Decimal` (to be written as
    JSON numbers), ids lower-case UUIDs of version 7 that ascend with `created_at`. No row comes before one
    that it refers to. A plan manager that is none of `plan_managers()` is a `ValueError`.
    """
    scale = next((scale for who, scale in _SCALES.items() if who.id == plan_manager_id), None)
    if scale is None:
        raise ValueError(f"no demonstration plan manager has the id {plan_manager_id}")

    def rng(resource: str) -> Random:
        return resource_rng(plan_manager_id, seed, resource)

    exit_reasons = people.generate_exit_reasons(rng("exit-reasons"))
    yield "exit-reasons", iter(exit_reasons)
    manager_rows = people.generate_account_managers(rng("account-managers"), scale.domain)
    yield "account-managers", iter(manager_rows)
    participant_rows = people.generate_participants(rng("participants"), scale.participants, manager_rows, exit_reasons)
    yield "participants", iter(participant_rows)
    demo_providers = trade.generate_providers(rng("providers"), scale.providers)
    yield "providers", (provider.row for provider in demo_providers)
    yield "note-types", iter(people.generate_note_types(scale.note_types_from))
    yield "team-members", iter(team_members.generate_team_members(rng("team-members"), participant_rows))
    invoice_rows = billing.generate_invoices(rng("invoices"), scale.invoices, participant_rows, demo_providers)
    yield "invoices", iter(invoice_rows)
    session_rows = view_sessions.generate_view_sessions(
        rng("invoice-view-sessions"), scale.sessions, invoice_rows, manager_rows
    )
    yield "invoice-view-sessions", iter(session_rows)
