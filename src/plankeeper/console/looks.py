"""How things look: templates, dates and money as Australians write them, and the files that pages need."""

import hashlib
import json
import re
from datetime import datetime
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, cast
from zoneinfo import ZoneInfo

from jinja2 import Environment, PackageLoader, StrictUndefined
from msgspec import Raw

ASSETS = Path(__file__).with_name("assets")
KINDS = {".css": "text/css; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".svg": "image/svg+xml"}
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


def day(value: datetime) -> str:
    months = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
    return f"{value.day} {months[value.month - 1]} {value.year}"


def money(value: Decimal | float) -> str:
    """`$1,234.50`."""
    return f"{'-' if value < 0 else ''}${abs(value):,.2f}"


def said(name: str) -> str:
    """`api_key.created` as people would say it: `API key created`."""
    words = name.replace(".", " ").replace("_", " ").removesuffix(" ")
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

    found.filters |= {"moment": in_zone, "money": money, "said": said}
    found.globals |= {"asset": asset_path}
    return found
