"""How things look: templates, dates and money as Australians write them, and the files that pages need."""

import hashlib
import json
import re
from datetime import date, datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Raw

from plankeeper.accounts.policy import may
from plankeeper.console.colors import shade

ASSETS = Path(__file__).with_name("static")
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
# What every page leads to, by its section.
MENU = {
    "participants": ("/console/participants", "Participants"),
    "invoices": ("/console/invoices", "Invoices"),
    "providers": ("/console/providers", "Providers"),
    "activity": ("/console/activity", "Activity"),
    "settings": ("/console/settings/people", "Settings"),
}
# Likewise, with the role that it takes.
SUBMENU = {
    "people": ("/console/settings/people", "People", "viewer"),
    "keys": ("/console/settings/keys", "API keys", "manager"),
    "webhooks": ("/console/settings/webhooks", "Webhooks", "viewer"),
    "account_managers": ("/console/account-managers", "Account managers", "viewer"),
    "note_types": ("/console/note-types", "Note types", "viewer"),
    "import": ("/console/import", "Import", "manager"),
    "requests": ("/console/requests", "Requests", "viewer"),
}
_MOMENT = re.compile(r"20[0-9]{2}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(\.[0-9]{1,6})?Z")


@cache
def asset(name: str) -> bytes | None:
    """A file of the package; null where there is none."""
    known = {each.name for each in ASSETS.iterdir() if each.suffix in KINDS}
    return (ASSETS / name).read_bytes() if name in known else None


@cache
def asset_path(name: str) -> str:
    """A file's path with what changes when the file does, so that a browser may keep it for ever."""
    return f"/console/assets/{name}?v={hashlib.sha256(asset(name) or b'').hexdigest()[:12]}"


def moment(value: datetime, zone: ZoneInfo) -> str:
    """`21 Nov 2026, 3:04 pm`."""
    local = value.astimezone(zone)
    return f"{day(local)}, {local.hour % 12 or 12}:{local:%M} {'am' if local.hour < 12 else 'pm'}"


def second(value: datetime, zone: ZoneInfo) -> str:
    """`21 Nov 2026, 3:04:05 pm`."""
    till_minutes, half = moment(value, zone).rsplit(" ", 1)
    return f"{till_minutes}:{value:%S} {half}"


def day(value: date) -> str:
    """`21 Nov 2026`."""
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{value.day} {months[value.month - 1]} {value.year}"


def money(value: Decimal | float) -> str:
    """`$1,234.50`; a price that is finer than a cent is shown as fine as it is."""
    finest = max(2, _places(value)) if isinstance(value, Decimal) else 2
    return f"{'-' if value < 0 else ''}${abs(value):,.{finest}f}"


def figure(value: Decimal) -> str:
    """`1,234.5`."""
    return f"{value:,.{_places(value)}f}"


def _places(value: Decimal) -> int:
    exponent = value.normalize().as_tuple().exponent
    return max(0, -exponent) if isinstance(exponent, int) else 0


def said(name: str) -> str:
    """`api_key.created` as people would say it: `API key created`."""
    words = name.replace("totp", "second_step").replace(".", " ").replace("_", " ").removesuffix(" ")
    return (words[:1].upper() + words[1:]).replace("Api ", "API ")


def members(raw: Raw | None, zone: ZoneInfo) -> dict[str, str]:
    """A JSON object's members, each as it is to be read; numbers stay as they were written."""
    if raw is None:
        return {}
    found: dict[str, Any] | None = json.loads(bytes(raw), parse_float=Decimal)
    return {name: _readable(value, zone) for name, value in (found or {}).items()}


def _readable(value: Any, zone: ZoneInfo) -> str:
    if value is None:
        return "—"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, str):
        return _moment_in(value, zone) or value or "(empty)"
    if isinstance(value, int | Decimal):
        return str(value)
    several = cast(list[Any], value) if isinstance(value, list) else []
    if several and all(isinstance(each, str | int) for each in several):
        return ", ".join(map(str, several))
    return json.dumps(value, ensure_ascii=False, indent=1, default=str)


def _moment_in(text: str, zone: ZoneInfo) -> str | None:
    """A text that is a moment as people write it."""
    try:
        return moment(datetime.fromisoformat(text), zone) if _MOMENT.fullmatch(text) else None
    except ValueError:
        return None  # a day that its month has not


def environment(zone: ZoneInfo) -> Environment:
    """Everything that is put into a page is escaped, and a name that a page lacks is an error."""
    found = Environment(
        loader=PackageLoader("plankeeper.console"), autoescape=True, undefined=StrictUndefined,
        trim_blocks=True, lstrip_blocks=True,
    )  # fmt: skip

    def in_zone(value: datetime) -> str:
        return moment(value, zone)

    def to_the_second(value: datetime) -> str:
        return second(value, zone)

    found.filters |= {
        "moment": in_zone, "second": to_the_second, "day": day, "money": money, "figure": figure, "said": said,
    }  # fmt: skip
    names: dict[str, Any] = {"asset": asset_path, "shade": shade, "menu": MENU, "submenu": SUBMENU, "may": may}
    found.globals |= names
    return found
