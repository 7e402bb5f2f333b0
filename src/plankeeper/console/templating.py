"""Jinja2 templates, with filters that format dates, times and money as is usual in Australia."""

import json
import re
from datetime import date, datetime
from decimal import Decimal
from typing import Any, cast
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Raw
from starlette.templating import Jinja2Templates

from plankeeper.accounts.policy import is_role_at_least
from plankeeper.console.colors import parse_color
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
_TIMESTAMP = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


def format_datetime(value: datetime, zone: ZoneInfo) -> str:
    """`21 Nov 2026, 3:04 pm`."""
    local = value.astimezone(zone)
    return f"{format_date(local)}, {local.hour % 12 or 12}:{local:%M} {'am' if local.hour < 12 else 'pm'}"


def format_datetime_seconds(value: datetime, zone: ZoneInfo) -> str:
    """`21 Nov 2026, 3:04:05 pm`."""
    minutes, am_pm = format_datetime(value, zone).rsplit(" ", 1)
    return f"{minutes}:{value:%S} {am_pm}"


def format_date(value: date) -> str:
    """`21 Nov 2026`."""
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{value.day} {months[value.month - 1]} {value.year}"


def format_money(value: Decimal | float) -> str:
    """`$1,234.50`; a price in fractions of a cent keeps all its decimals."""
    decimals = max(2, _decimal_places(value)) if isinstance(value, Decimal) else 2
    return f"{'-' if value < 0 else ''}${abs(value):,.{decimals}f}"


def format_decimal(value: Decimal) -> str:
    """`1,234.5`."""
    return f"{value:,.{_decimal_places(value)}f}"


def _decimal_places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def display_fields(raw: Raw | None, zone: ZoneInfo) -> dict[str, str]:
    """The members of a JSON object as text for readers; numbers keep their digits."""
    if raw is None:
        return {}
    parsed: dict[str, Any] | None = json.loads(bytes(raw), parse_float=Decimal)
    return {name: _display_value(value, zone) for name, value in (parsed or {}).items()}


def _display_value(value: Any, zone: ZoneInfo) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _format_timestamp(value, zone) or value or "(empty)"
    if isinstance(value, int | Decimal):
        return str(value)
    items = cast(list[Any], value) if isinstance(value, list) else []
    if items and all(isinstance(each, str | int) for each in items):
        return ", ".join(map(str, items))
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _format_timestamp(text: str, zone: ZoneInfo) -> str | None:
    """A timestamp in the usual format; null for any other text."""
    try:
        return format_datetime(datetime.fromisoformat(text), zone) if _TIMESTAMP.fullmatch(text) else None
    except ValueError:
        return None  # a day that does not exist in its month


def create_templates(zone: ZoneInfo, *, sends_mail: bool = False) -> Jinja2Templates:
    """Templates that escape every value and raise an error for an undefined name."""
    env = Environment(
        loader=PackageLoader("plankeeper.console"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )

    def local_datetime(value: datetime) -> str:
        return format_datetime(value, zone)

    def local_datetime_seconds(value: datetime) -> str:
        return format_datetime_seconds(value, zone)

    env.filters |= {
        "datetime": local_datetime,
        "datetime_seconds": local_datetime_seconds,
        "date": format_date,
        "money": format_money,
        "decimal": format_decimal,
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
