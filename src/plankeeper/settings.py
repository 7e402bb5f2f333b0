"""Every setting, read once from the environment into one frozen object."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MIN_RETENTION_DAYS = 7  # a delivery is attempted for more than three days, and needs its event


class SettingError(Exception):
    """A setting that cannot be used: its name, and what would be right."""


def setting(name: str, default: str, parse: Callable[[str], Any], meaning: str) -> Any:
    return field(metadata={"name": name, "default": default, "parse": parse, "meaning": meaning})


def _text(value: str) -> str:
    return value


def _optional(value: str) -> str | None:
    return value or None


def _optional_path(value: str) -> Path | None:
    return Path(value) if value else None


def _port(value: str) -> int:
    if value.isdecimal() and int(value) < 65536:
        return int(value)
    raise ValueError("a port number from 0 to 65535")


def _workers(value: str) -> int:
    if not value:
        return os.cpu_count() or 1
    return _positive(value)


def _positive(value: str) -> int:
    if value.isdecimal() and int(value) > 0:
        return int(value)
    raise ValueError("a whole number above 0")


def parse_rate_limit(value: str) -> int:
    """`600/minute` as 600, `off` as 0; raises ValueError saying what would be right."""
    if value == "off":
        return 0
    match = re.fullmatch(r"([1-9][0-9]{0,11})/minute", value)
    if not match:
        raise ValueError("requests a minute, such as 600/minute, or off")
    return int(match[1])


def _optional_port(value: str) -> int | None:
    if value == "0":
        raise ValueError("a port number from 1 to 65535")
    return _port(value) if value else None


def _flag(value: str) -> bool:
    if value in ("on", "off"):
        return value == "on"
    raise ValueError("on or off")


def _networks(value: str) -> tuple[str, ...]:
    networks = tuple(each.strip() for each in value.split(",") if each.strip())
    try:
        for each in networks:
            ip_network(each)
    except ValueError:
        raise ValueError("addresses or networks such as 10.0.0.0/8, with commas between them") from None
    return networks


def _allowed_networks(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(each) for each in _networks(value))


def _days(value: str, minimum: int = MIN_RETENTION_DAYS) -> int | None:
    """`30d` as 30, `off` as null."""
    if value == "off":
        return None
    match = re.fullmatch(r"([0-9]{1,5})d", value)
    if not match or int(match[1]) < minimum:
        raise ValueError(f"days such as 365d, at least {minimum}d, or off")
    return int(match[1])


def _at_least_a_day(value: str) -> int | None:
    return _days(value, 1)


def _zone(value: str) -> ZoneInfo:
    try:
        return ZoneInfo(value)
    except (ZoneInfoNotFoundError, ValueError, OSError):
        raise ValueError("the name of a time zone, such as Australia/Sydney") from None


def _origins(value: str) -> tuple[str, ...]:
    origins = tuple(origin.strip() for origin in value.split(",") if origin.strip())
    if any(not origin.startswith(("http://", "https://")) and origin != "*" for origin in origins):
        raise ValueError("origins such as https://app.example.com, with commas between them")
    return origins


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """What the environment says. `Settings.read()` raises SettingError naming the variable that is wrong."""

    database_url: str | None = setting(
        "PLANKEEPER_DATABASE_URL",
        "",
        _optional,
        "A PostgreSQL of your own (15 or newer), as `postgresql://user:password@host/database`; several hosts may stand"
        " with commas between them. Empty: an embedded PostgreSQL in the data folder.",
    )
    data_dir: Path = setting(
        "PLANKEEPER_DATA_DIR",
        ".plankeeper",
        Path,
        "The folder in which the embedded PostgreSQL keeps its data.",
    )
    postgres_bin: Path | None = setting(
        "PLANKEEPER_POSTGRES_BIN",
        "",
        _optional_path,
        "The folder of PostgreSQL's programs: those that run the embedded cluster, and `pg_dump` and `pg_restore`."
        " Empty: the packaged ones.",
    )
    host: str = setting("PLANKEEPER_HOST", "127.0.0.1", _text, "The address that `serve` listens on.")
    port: int = setting("PLANKEEPER_PORT", "8000", _port, "The port that `serve` listens on.")
    workers: int = setting(
        "PLANKEEPER_WORKERS", "", _workers, "The worker processes of `serve`. Empty: one a processor core."
    )
    pool_size: int = setting(
        "PLANKEEPER_POOL_SIZE",
        "10",
        _positive,
        "The most database connections that one worker opens for requests.",
    )
    statement_timeout: int = setting(
        "PLANKEEPER_STATEMENT_TIMEOUT",
        "30",
        _positive,
        "The seconds after which a statement of a request is given up (the answer is 503).",
    )
    rate_limit: int = setting(
        "PLANKEEPER_RATE_LIMIT",
        "600/minute",
        parse_rate_limit,
        "The requests that a key may send in a clock minute, over all servers: `600/minute`, or `off`. A key can have a"
        " figure of its own (`plankeeper keys create --rate-limit`).",
    )
    auth_failure_rate_limit: int = setting(
        "PLANKEEPER_AUTH_FAILURE_RATE_LIMIT",
        "60/minute",
        parse_rate_limit,
        "The requests with bad credentials that a client's address may send in a clock minute: `60/minute`, or `off`."
        " Good keys from the same address are not touched. As many times, counted apart, an address may try to sign in"
        " to the console.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        "PLANKEEPER_TRUSTED_PROXIES",
        "",
        _networks,
        "The addresses or networks of the proxies whose X-Forwarded-For says who the client is, with commas between"
        " them. Empty: none, the client is who connects.",
    )
    max_concurrent_requests: int = setting(
        "PLANKEEPER_MAX_CONCURRENT_REQUESTS",
        "200",
        _positive,
        "The requests that one worker works on at a time; further ones are refused at once (503), so that those inside"
        " stay quick.",
    )
    max_connections: int = setting(
        "PLANKEEPER_MAX_CONNECTIONS",
        "1000",
        _positive,
        "The client connections that one worker holds; further ones are closed.",
    )
    client_io_timeout: int = setting(
        "PLANKEEPER_CLIENT_IO_TIMEOUT",
        "20",
        _positive,
        "The seconds that a client may take to send a request's headers, to send its body, and to take in the answer.",
    )
    access_log: bool = setting(
        "PLANKEEPER_ACCESS_LOG", "on", _flag, "Whether a line is logged for each request: `on` or `off`."
    )
    metrics_port: int | None = setting(
        "PLANKEEPER_METRICS_PORT",
        "",
        _optional_port,
        "A port of its own for `/metrics`. Empty: the port of the API.",
    )
    webhook_worker: bool = setting(
        "PLANKEEPER_WEBHOOK_WORKER",
        "on",
        _flag,
        "Whether `serve` runs the worker that sends webhooks too: `on` or `off`.",
    )
    max_webhook_endpoints: int = setting(
        "PLANKEEPER_MAX_WEBHOOK_ENDPOINTS", "20", _positive, "The most webhook endpoints of a plan manager."
    )
    webhook_allowed_networks: tuple[IPv4Network | IPv6Network, ...] = setting(
        "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS",
        "",
        _allowed_networks,
        "The private addresses or networks that webhooks may be sent to, with commas between them: `127.0.0.1` while"
        " you develop. Empty: none.",
    )
    event_retention: int | None = setting(
        "PLANKEEPER_EVENT_RETENTION",
        "off",
        _days,
        "How long events are kept, the audit trail that they are: `2555d`, or `off`, which is for ever.",
    )
    delivery_retention: int | None = setting(
        "PLANKEEPER_DELIVERY_RETENTION", "30d", _days, "How long deliveries are kept: `30d`, or `off`."
    )
    request_log_retention: int | None = setting(
        "PLANKEEPER_REQUEST_LOG_RETENTION",
        "7d",
        _at_least_a_day,
        "How long the console's log of API requests goes back: `7d`, or `off`, which is not at all. Of a plan manager"
        " the last 10,000 requests are kept.",
    )
    operator_name: str = setting(
        "PLANKEEPER_OPERATOR_NAME",
        "plankeeper",
        _text,
        "The service operator's name: account managers whose email's domain contains it are hidden.",
    )
    time_zone: ZoneInfo = setting(
        "PLANKEEPER_TIME_ZONE",
        "Australia/Sydney",
        _zone,
        "The time zone in which invoices are checked for dates in the future.",
    )
    cors_origins: tuple[str, ...] = setting(
        "PLANKEEPER_CORS_ORIGINS",
        "",
        _origins,
        "The origins whose pages may call the API from a browser, with commas between them. Empty: none.",
    )

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        variables = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for each in fields(cls):
            name, default = each.metadata["name"], each.metadata["default"]
            try:
                values[each.name] = each.metadata["parse"](variables.get(name, default) or default)
            except ValueError as error:
                raise SettingError(f"{name} is {variables.get(name)!r}; it takes {error}.") from None
        return cls(**values)
