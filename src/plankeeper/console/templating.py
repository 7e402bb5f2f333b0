"""Jinja2 templates, their filters and the entries of the menus."""

from typing import Any
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from starlette.templating import Jinja2Templates

from plankeeper.accounts.policy import is_role_at_least
from plankeeper.console.colors import parse_color
from plankeeper.console.formatting import formatting_filters
from plankeeper.console.labels import field_label, humanize
from plankeeper.console.static_files import static_url

# The pages of the main menu, by section.
MENU = {
    "participants": ("/console/participants", "Participants"),
    "invoices": ("/console/invoices", "Invoices"),
    "providers": ("/console/providers", "Providers"),
    "activity": ("/console/activity", "Activity"),
    "settings": ("/console/settings/people", "Settings"),
}
# The pages of the settings menu, with the role that each requires.
SUBMENU = {
    "members": ("/console/settings/people", "People", "viewer"),
    "keys": ("/console/settings/keys", "API keys", "manager"),
    "webhooks": ("/console/settings/webhooks", "Webhooks", "viewer"),
    "account_managers": ("/console/account-managers", "Account managers", "viewer"),
    "note_types": ("/console/note-types", "Note types", "viewer"),
    "import": ("/console/import", "Import", "manager"),
    "requests": ("/console/requests", "Requests", "viewer"),
    "access": ("/console/settings/access", "Access", "owner"),
    "legal_holds": ("/console/settings/legal-holds", "Legal holds", "owner"),
}


def create_templates(zone: ZoneInfo, *, sends_mail: bool = False) -> Jinja2Templates:
    """Templates that escape every value and raise an error for an undefined name."""
    env = Environment(
        loader=PackageLoader("plankeeper.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    env.filters |= formatting_filters(zone) | {
        "humanize": humanize,
        "label": field_label,
    }
    names: dict[str, Any] = {
        "sends_mail": sends_mail,
        "static_url": static_url,
        "parse_color": parse_color,
        "menu": MENU,
        "submenu": SUBMENU,
        "is_role_at_least": is_role_at_least,
    }
    env.globals |= names
    return Jinja2Templates(env=env)
