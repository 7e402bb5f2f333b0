"""Options of selects."""

from uuid import UUID

from plankeeper.access.accounts.schemas import Session


def plan_manager_choices(session: Session) -> list[tuple[UUID, str, str]]:
    """The account's plan managers, each with its id, name and the account's role, sorted by name."""
    rows = [(each, session.plan_manager_names[each], role) for each, role in session.roles.items()]
    return sorted(rows, key=lambda each: (each[1].casefold(), each[0]))
