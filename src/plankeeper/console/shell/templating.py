"""Jinja2 templates, and the menus that they show."""

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any, TypeVar
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, PrefixLoader, StrictUndefined
from jinja2.ext import Extension
from markupsafe import escape
from starlette.templating import Jinja2Templates

from plankeeper.access.policy import Permission, is_role_at_least
from plankeeper.console.shell.static_files import static_url
from plankeeper.core.dates import date_input
from plankeeper.core.formatting import formatting_filters
from plankeeper.core.version import full_version

T = TypeVar("T")


def has_id(content: str, name: str) -> bool:
    """Whether an element of the page has this id, so that a link can lead to it."""
    return _position(content, name) >= 0


def sort_by_position(messages: Mapping[str, T], content: str) -> Iterable[tuple[str, T]]:
    """The messages in the order of their fields on the page; those without a field come first."""
    return sorted(messages.items(), key=lambda each: _position(content, each[0]))


def _position(content: str, name: str) -> int:
    return content.find(f' id="{escape(name)}"')


_INDENTATION = re.compile(r"^[ \t]+", re.MULTILINE)

# The pages of the main menu, by section.
MENU = {
    "home": ("/console", "Home"),
    "review": ("/console/review", "Review"),
    "participants": ("/console/participants", "Participants"),
    "plans": ("/console/plans?plan_end=60d&status=Active", "Plans"),
    "invoices": ("/console/invoices", "Invoices"),
    "claims": ("/console/claims", "Claims"),
    "payments": ("/console/payments", "Payments"),
    "statements": ("/console/statements", "Statements"),
    "providers": ("/console/providers", "Providers"),
    "activity": ("/console/activity", "Activity"),
}
# The pages that need a permission.
MENU_PERMISSIONS: Mapping[str, Permission] = {"claims": "make_claims", "payments": "make_payments"}


@dataclass(frozen=True, slots=True)
class SettingsPage:
    """A page of the settings; without a role, it is for everyone who is signed in."""

    path: str
    label: str
    description: str
    role: str | None = None
    is_limited: bool = False  # whether limited viewers can open it

    def is_visible_to(self, role: str | None, *, is_limited: bool = False) -> bool:
        has_role = self.role is None or is_role_at_least(role, self.role)
        return has_role and (self.is_limited or not is_limited or self.role is None)


# The pages of the settings, by group and section.
SUBMENU = {
    "Office": {
        "members": SettingsPage(
            "/console/settings/people",
            "People",
            "Members, roles, invitations and sign-in rules",
            "viewer",
            is_limited=True,
        ),
        "account_managers": SettingsPage(
            "/console/account-managers",
            "Account managers",
            "Staff who look after participants",
            "viewer",
            is_limited=True,
        ),
        "note_types": SettingsPage(
            "/console/note-types",
            "Note types",
            "Types of notes, with their colours",
            "viewer",
            is_limited=True,
        ),
        "bank_details": SettingsPage(
            "/console/bank-details", "Bank details", "Accounts of payees that wait for approval", "manager"
        ),
        "claims_and_payments": SettingsPage(
            "/console/settings/claims-and-payments",
            "Claims and payments",
            "The office’s numbers, its bank account and the bank’s files",
            "owner",
        ),
        "statement_settings": SettingsPage(
            "/console/settings/statements", "Statements", "The day of the monthly run, and the contact", "owner"
        ),
        "fees": SettingsPage(
            "/console/settings/fees", "Fees", "The support item of your own fee, and your office as a provider", "owner"
        ),
        "service_standard": SettingsPage(
            "/console/settings/service-standard", "Service standard", "Days to claim and to pay an invoice", "owner"
        ),
    },
    "Data": {
        "import": SettingsPage("/console/imports", "Imports", "Add and update records from files", "manager"),
        "trash": SettingsPage(
            "/console/trash", "Trash", "Deleted participants and providers, which you can restore", "viewer"
        ),
        "checks": SettingsPage("/console/checks", "Checks", "Check all open invoices again", "viewer"),
        "approval": SettingsPage(
            "/console/settings/approval", "Approval", "Reminders, and approval without an answer", "owner"
        ),
        "after_restore": SettingsPage(
            "/console/settings/after-restore", "After a restore", "Claims and payments since the backup", "owner"
        ),
        "access": SettingsPage(
            "/console/settings/access", "Access log", "Who viewed or exported which record", "owner"
        ),
        "legal_holds": SettingsPage(
            "/console/settings/legal-holds", "Legal holds", "People whose data can’t be erased", "owner"
        ),
    },
    "Developers": {
        "keys": SettingsPage("/console/settings/keys", "API keys", "For integrations", "manager"),
        "webhooks": SettingsPage("/console/settings/webhooks", "Webhooks", "Notify other systems", "viewer"),
        "requests": SettingsPage("/console/requests", "Requests", "Recent requests to the API", "viewer"),
    },
    "You": {
        "account": SettingsPage(
            "/console/account", "Your account", "Name, password, two-factor authentication and sessions"
        ),
    },
}
# The parts of the console's guide that the help links of the pages lead to, by section.
HELP_ANCHORS = {
    "": "sign-in",
    "home": "home",
    "review": "review",
    "participants": "participants",
    "plans": "plans",
    "invoices": "invoices",
    "claims": "claim",
    "providers": "providers",
    "payments": "payments",
    "statements": "statements",
    "activity": "activity",
    "search": "search",
    "views": "lists",
    "settings": "settings",
    "members": "people-and-roles",
    "account_managers": "account-managers-and-note-types",
    "note_types": "account-managers-and-note-types",
    "bank_details": "bank-details",
    "claims_and_payments": "claims-and-payments",
    "fees": "fees",
    "service_standard": "service-standard",
    "statement_settings": "statements-of-the-office",
    "import": "import",
    "trash": "undo",
    "checks": "checks",
    "approval": "approval",
    "after_restore": "after-a-restore",
    "access": "access-and-legal-holds",
    "legal_holds": "access-and-legal-holds",
    "keys": "api-keys-and-requests",
    "requests": "api-keys-and-requests",
    "webhooks": "webhooks",
    "account": "your-account",
}
# The shortcuts of keyboard.js.
SHORTCUTS = {
    "/": "Search",
    "Ctrl+K": "Search, or go to a page",
    "j": "Next record",
    "k": "Previous record",
    "Enter": "Open the record",
    "n": "Next in list",
    "p": "Previous in list",
    "x": "Select the record",
    "e": "Edit",
    "Ctrl+Enter": "Save the form",
    "g h": "Go to Home",
    "g q": "Go to the review queue",
    "g p": "Go to Participants",
    "g i": "Go to Invoices",
    "g r": "Go to Providers",
    "g a": "Go to Activity",
    "g s": "Go to Settings",
    "?": "Show this list",
}
# Those of pages that limited viewers can't open.
SHORTCUTS_WITHOUT_LIMIT = {"g q", "g a"}
# Those of invoices.
INVOICE_SHORTCUTS = {
    "h": "Hold the invoice",
    "r": "Release the invoice",
    "a": "Assign the invoice",
    "w": "Exclude the invoice from claims",
    "c": "Cancel the invoice",
    "o": "Reopen the invoice",
    "Alt+Enter": "Save the invoice, and go on to the next",
    "Alt+L": "Add a line to the invoice",
    "Alt+C": "Duplicate the line",
    "Alt+W": "Swap the quantity and the price of the line",
    "Alt+X": "Remove the line",
}


# Those of the review queue.
REVIEW_SHORTCUTS = {
    "n": "Next invoice",
    "p": "Previous invoice",
    "1 2 3 4 5 6": "To review, Mine, Unassigned, Held, Approval pending, Rejected",
    "b": "Choose a warning",
    "e": "Edit the invoice and its lines",
    "i": "Ignore the first warning",
    "h": "Hold the invoice",
    "r": "Release the invoice",
    "q": "Ask for approval",
    "d": "Record a decision about the approval",
    "l": "Claim the first rejected line again",
    "w": "Exclude the invoice from claims",
    "m": "Assign the invoice to me",
    "a": "Assign the invoice",
    "c": "Cancel the invoice",
    "u": "Undo the last decision",
}
# Those of claim batches.
CLAIM_SHORTCUTS = {
    "m": "Make the claim batch, or record money that has arrived",
    "d": "Download the file of the batch",
    "s": "Mark the batch as submitted",
    "r": "Record results of the batch or of the line",
    "l": "Claim the rest of the line, or a rejected line again",
    "c": "Cancel the batch",
}
# Those of payment runs.
PAYMENT_SHORTCUTS = {
    "m": "Make the payment run",
    "d": "Download the ABA file",
}


class WithoutIndentation(Extension):
    """Removes the indentation of templates: the rows of a long list would repeat it hundreds of times."""

    def preprocess(self, source: str, name: str | None, filename: str | None = None) -> str:  # noqa: ARG002 - Jinja2's
        return _INDENTATION.sub("", source)


def create_templates(
    zone: ZoneInfo, areas: Iterable[str], filters: Mapping[str, Any], names: Mapping[str, Any]
) -> Jinja2Templates:
    """Templates that escape every value and raise an error for an undefined name.

    `areas` are the packages with a folder of templates, which are named `<area>/<name>.html`. `filters` and `names` are
    those of the components.
    """
    env = Environment(
        loader=PrefixLoader({each: PackageLoader(f"plankeeper.console.{each}") for each in areas}),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        extensions=[WithoutIndentation],
    )

    all_filters: dict[str, Any] = {**formatting_filters(zone), "date_input": date_input, **filters}
    env.filters.update(all_filters)
    shown: dict[str, Any] = {
        "has_id": has_id,
        "sort_by_position": sort_by_position,
        "static_url": static_url,
        "menu": MENU,
        "menu_permissions": MENU_PERMISSIONS,
        "submenu": SUBMENU,
        "settings_pages": {section: page for pages in SUBMENU.values() for section, page in pages.items()},
        "help_anchors": HELP_ANCHORS,
        "shortcuts": SHORTCUTS,
        "shortcuts_without_limit": SHORTCUTS_WITHOUT_LIMIT,
        "shortcuts_of": {
            "invoices": INVOICE_SHORTCUTS,
            "review": REVIEW_SHORTCUTS,
            "claims": CLAIM_SHORTCUTS,
            "payments": PAYMENT_SHORTCUTS,
        },
        "product_version": full_version(),
        **names,
    }
    env.globals.update(shown)
    return Jinja2Templates(env=env)
