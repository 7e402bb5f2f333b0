"""All resources, by the name of their imports and exports, and by the kind of their events."""

from collections.abc import Mapping

from plankeeper.core.context import ConstraintErrorHandler
from plankeeper.resources.account_managers.resource import RESOURCE as ACCOUNT_MANAGERS
from plankeeper.resources.exit_reasons.resource import RESOURCE as EXIT_REASONS
from plankeeper.resources.invoice_view_sessions.resource import RESOURCE as INVOICE_VIEW_SESSIONS
from plankeeper.resources.invoices.resource import RESOURCE as INVOICES
from plankeeper.resources.note_types.resource import RESOURCE as NOTE_TYPES
from plankeeper.resources.notes.resource import RESOURCE as NOTES
from plankeeper.resources.participants.resource import PLANS
from plankeeper.resources.participants.resource import RESOURCE as PARTICIPANTS
from plankeeper.resources.providers.resource import RESOURCE as PROVIDERS
from plankeeper.resources.resource import Resource
from plankeeper.resources.team_members.resource import RESOURCE as TEAM_MEMBERS

RESOURCES: Mapping[str, Resource] = {
    "exit-reasons": EXIT_REASONS,
    "account-managers": ACCOUNT_MANAGERS,
    "participants": PARTICIPANTS,
    "plans": PLANS,
    "providers": PROVIDERS,
    "note-types": NOTE_TYPES,
    "team-members": TEAM_MEMBERS,
    "invoices": INVOICES,
    "invoice-view-sessions": INVOICE_VIEW_SESSIONS,
    "notes": NOTES,
}
BY_KIND: Mapping[str, Resource] = {each.kind: each for each in RESOURCES.values()}
# Constraint violations of an import as errors: those of the API, and those that only an import can cause.
CONSTRAINT_ERRORS: Mapping[str, ConstraintErrorHandler] = {
    name: handler
    for each in RESOURCES.values()
    for name, handler in (*each.constraint_errors.items(), *each.import_errors.items())
}
