"""The fields of settings and their parsers: from a variable's text to its value. A ValueError has the valid values."""

import os
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from email.errors import MessageError
from email.headerregistry import Address
from email.utils import getaddresses
from importlib.util import find_spec
from ipaddress import IPv4Network, IPv6Network, ip_address, ip_network
from pathlib import Path
from typing import Any
from urllib.parse import unquote, urlsplit
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

from plankeeper.core.logs import LEVELS

MIN_RETENTION_DAYS = 7  # deliveries are retried for more than three days, and their events must still exist

SMTP_PORTS = {"smtp": 587, "smtps": 465}


class SettingError(Exception):
    """An invalid setting. The message has its name, its value, and the valid values."""


def is_loopback(host: str) -> bool:
    """Whether a host is this machine."""
    try:
        return ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@dataclass(frozen=True, slots=True)
class SmtpServer:
    """A mail server. `uses_tls` is for TLS from the first byte (smtps)."""

    host: str
    port: int
    uses_tls: bool
    uses_starttls: bool
    username: str
    password: str = field(repr=False)

    @property
    def is_loopback(self) -> bool:
        """Whether the server is on this machine: then a connection without TLS is safe."""
        return is_loopback(self.host)


def setting(name: str, default: str, parse: Callable[[str], Any], meaning: str, *, is_secret: bool = False) -> Any:
    """A setting. Error messages don't contain the value of a secret one."""
    metadata = {"name": name, "default": default, "parse": parse, "meaning": meaning, "is_secret": is_secret}
    return field(metadata=metadata)


def retention(name: str, default: str, meaning: str) -> Any:
    """A setting with a number of days, at least one, or `off`."""
    return setting(name, default, parse_at_least_a_day, meaning)


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


def parse_seconds(value: str) -> int:
    if value.isdecimal() and int(value) <= 3600:
        return int(value)
    raise ValueError("seconds from 0 to 3600")


def parse_rate_limit(value: str) -> int:
    """`600/minute` as 600, `off` as 0; raises ValueError with the valid values."""
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


def parse_milliseconds(value: str) -> int | None:
    """`1000` as 1000, `off` as None."""
    if value == "off":
        return None
    if value.isdecimal() and int(value) > 0:
        return int(value)
    raise ValueError("milliseconds above 0, such as 1000, or off")


def parse_flag(value: str) -> bool:
    if value in ("on", "off"):
        return value == "on"
    raise ValueError("on or off")


def parse_log_level(value: str) -> str:
    if value in LEVELS:
        return value
    raise ValueError("debug, info, warning or error")


def parse_telemetry(value: str) -> bool:
    is_on = parse_flag(value)
    if is_on and (find_spec("opentelemetry") is None or find_spec("opentelemetry.sdk") is None):
        raise ValueError("off without the extra plankeeper[telemetry]")
    return is_on


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


def parse_hours(value: str) -> int:
    """`1h` as 1."""
    match = re.fullmatch(r"([0-9]{1,4})h", value)
    if not match or int(match[1]) < 1:
        raise ValueError("hours such as 1h, at least 1h")
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


def parse_documents_url(value: str) -> str | None:
    """`file:///srv/documents` or `s3://bucket/prefix`; raises ValueError with the valid values."""
    if not value:
        return None
    url = urlsplit(value)
    is_folder = url.scheme == "file" and not url.netloc and url.path.startswith("/")
    if url.query or url.fragment or not (is_folder or (url.scheme == "s3" and url.netloc)):
        raise ValueError("file:/// with a folder, or s3:// with a bucket, such as s3://bucket/prefix")
    return value.rstrip("/")


def parse_smtp_url(value: str) -> SmtpServer | None:
    """`smtp://user:password@mail.example.com:587`, or `smtps://...`; raises ValueError with the valid values."""
    if not value:
        return None
    expected = "smtp:// or smtps:// with a host, such as smtp://user:password@mail.example.com:587"
    try:
        url = urlsplit(value)
        host, port = url.hostname or "", url.port if url.port is not None else SMTP_PORTS[url.scheme]
    except (KeyError, ValueError):
        raise ValueError(expected) from None
    is_complete = url.scheme in SMTP_PORTS and re.fullmatch(r"[a-z0-9._-]+|[0-9a-f:]+", host) and port > 0
    if not is_complete or url.path not in ("", "/") or url.fragment or bool(url.username) != bool(url.password):
        raise ValueError(expected)
    if url.query not in ("", "starttls=off"):
        raise ValueError(f"{expected}; the only option is ?starttls=off")
    is_tls, is_starttls = url.scheme == "smtps", url.scheme == "smtp" and not url.query
    server = SmtpServer(host, port, is_tls, is_starttls, unquote(url.username or ""), unquote(url.password or ""))
    if server.password and not (is_tls or is_starttls or server.is_loopback):
        raise ValueError("without a password if it has ?starttls=off: the password would be sent unencrypted")
    return server


def parse_mail_from(value: str) -> str:
    """`Plankeeper <plans@example.com>` or `plans@example.com`."""
    addresses = getaddresses([value]) if value.isascii() and value.isprintable() else []
    try:
        is_valid = not value or [bool(Address(name, addr_spec=address).domain) for name, address in addresses] == [True]
    except (MessageError, ValueError, IndexError):
        is_valid = False
    if not is_valid:
        raise ValueError("an email address, such as Plankeeper <plankeeper@example.com>")
    return value
