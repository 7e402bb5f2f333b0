"""Parsers of settings: from a variable's text to its value. A ValueError says what is expected."""

import os
import re
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MIN_RETENTION_DAYS = 7  # deliveries are retried for more than three days, and their events must still exist


def parse_text(value: str) -> str:
    return value


def parse_optional(value: str) -> str | None:
    return value or None


def parse_optional_path(value: str) -> Path | None:
    return Path(value) if value else None


def parse_port(value: str) -> int:
    if value.isdecimal() and int(value) < 65536:
        return int(value)
    raise ValueError("a port number from 0 to 65535")


def parse_workers(value: str) -> int:
    if not value:
        return os.cpu_count() or 1
    return parse_positive(value)


def parse_positive(value: str) -> int:
    if value.isdecimal() and int(value) > 0:
        return int(value)
    raise ValueError("a whole number above 0")


def parse_rate_limit(value: str) -> int:
    """`600/minute` as 600, `off` as 0; raises ValueError with what is expected."""
    if value == "off":
        return 0
    match = re.fullmatch(r"([1-9][0-9]{0,11})/minute", value)
    if not match:
        raise ValueError("requests per minute, such as 600/minute, or off")
    return int(match[1])


def parse_optional_port(value: str) -> int | None:
    if value == "0":
        raise ValueError("a port number from 1 to 65535")
    return parse_port(value) if value else None


def parse_flag(value: str) -> bool:
    if value in ("on", "off"):
        return value == "on"
    raise ValueError("on or off")


def parse_networks(value: str) -> tuple[str, ...]:
    networks = tuple(each.strip() for each in value.split(",") if each.strip())
    try:
        for each in networks:
            ip_network(each)
    except ValueError:
        raise ValueError("addresses or networks such as 10.0.0.0/8, separated by commas") from None
    return networks


def parse_allowed_networks(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(each) for each in parse_networks(value))


def parse_days(value: str, minimum: int = MIN_RETENTION_DAYS) -> int | None:
    """`30d` as 30, `off` as None."""
    if value == "off":
        return None
    match = re.fullmatch(r"([0-9]{1,5})d", value)
    if not match or int(match[1]) < minimum:
        raise ValueError(f"days such as 365d, at least {minimum}d, or off")
    return int(match[1])


def parse_at_least_a_day(value: str) -> int | None:
    return parse_days(value, 1)


def parse_zone(value: str) -> ZoneInfo:
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("the name of a time zone, such as Australia/Sydney") from None


def parse_origins(value: str) -> tuple[str, ...]:
    origins = tuple(origin.strip() for origin in value.split(",") if origin.strip())
    if any(not origin.startswith(("http://", "https://")) and origin != "*" for origin in origins):
        raise ValueError("origins such as https://app.example.com, separated by commas")
    return origins


def parse_public_url(value: str) -> str | None:
    """`https://plans.example/` as the origin `https://plans.example`, in the form that browsers send."""
    if not value:
        return None
    match = re.fullmatch(r"https://((?:[a-z0-9_-]+\.)*[a-z0-9_-]+|\[[0-9a-f:]+\])(?::([0-9]{1,5}))?/?", value.lower())
    port = int(match[2] or 443) if match else 0
    if match is None or not 0 < port < 65536:
        raise ValueError("https:// with a host and no path, such as https://plans.example.com")
    return f"https://{match[1]}" + (f":{port}" if port != 443 else "")
