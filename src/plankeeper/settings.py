"""The settings, read once from the environment into a frozen object."""

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, fields
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo, ZoneInfoNotFoundError

MIN_RETENTION_DAYS = 7  # deliveries are retried for more than three days, and their events must still exist


class SettingError(Exception):
    """An invalid setting. The message has its name, its value, and what is expected."""


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
    """`600/minute` as 600, `off` as 0; raises ValueError with what is expected."""
    if value == "off":
        return 0
    match = re.fullmatch(r"([1-9][0-9]{0,11})/minute", value)
    if not match:
        raise ValueError("requests per minute, such as 600/minute, or off")
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
        raise ValueError("addresses or networks such as 10.0.0.0/8, separated by commas") from None
    return networks


def _allowed_networks(value: str) -> tuple[IPv4Network | IPv6Network, ...]:
    return tuple(ip_network(each) for each in _networks(value))


def _days(value: str, minimum: int = MIN_RETENTION_DAYS) -> int | None:
    """`30d` as 30, `off` as None."""
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
        raise ValueError("origins such as https://app.example.com, separated by commas")
    return origins


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a process. `Settings.read()` raises SettingError for an invalid variable."""

    database_url: str | None = setting(
        "PLANKEEPER_DATABASE_URL",
        "",
        _optional,
        "Your own PostgreSQL (15 or newer), as `postgresql://user:password@host/database`. Separate several hosts with"
        " commas. Empty: an embedded PostgreSQL in the data directory.",
    )
    data_dir: Path = setting(
        "PLANKEEPER_DATA_DIR",
        ".plankeeper",
        Path,
        "The data directory of the embedded PostgreSQL.",
    )
    postgres_bin: Path | None = setting(
        "PLANKEEPER_POSTGRES_BIN",
        "",
        _optional_path,
        "The directory of PostgreSQL's programs, which run the embedded PostgreSQL, `pg_dump` and `pg_restore`."
        " Empty: the bundled programs.",
    )
    host: str = setting("PLANKEEPER_HOST", "127.0.0.1", _text, "The address that `serve` listens on.")
    port: int = setting("PLANKEEPER_PORT", "8000", _port, "The port that `serve` listens on.")
    workers: int = setting(
        "PLANKEEPER_WORKERS", "", _workers, "The number of worker processes of `serve`. Empty: one per processor core."
    )
    pool_size: int = setting(
        "PLANKEEPER_POOL_SIZE",
        "10",
        _positive,
        "The maximum number of database connections for requests, per worker.",
    )
    statement_timeout: int = setting(
        "PLANKEEPER_STATEMENT_TIMEOUT",
        "30",
        _positive,
        "The time limit of a statement of a request, in seconds (the response is 503).",
    )
    rate_limit: int = setting(
        "PLANKEEPER_RATE_LIMIT",
        "600/minute",
        parse_rate_limit,
        "The number of requests that an API key can send in a clock minute, across all servers: `600/minute`, or `off`."
        " To set the limit of one key, use `plankeeper keys create --rate-limit`.",
    )
    auth_failure_rate_limit: int = setting(
        "PLANKEEPER_AUTH_FAILURE_RATE_LIMIT",
        "60/minute",
        parse_rate_limit,
        "The number of requests with invalid credentials that a client address can send in a clock minute: `60/minute`,"
        " or `off`. Valid keys from the same address are not affected. The same limit applies separately to sign-in"
        " attempts in the console.",
    )
    sign_in_rate_limit: int = setting(
        "PLANKEEPER_SIGN_IN_RATE_LIMIT",
        "600/minute",
        parse_rate_limit,
        "The number of sign-in attempts in the console in a clock minute, for all addresses together: `600/minute`, or"
        " `off`. A quarter of it is reserved for known devices.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        "PLANKEEPER_TRUSTED_PROXIES",
        "",
        _networks,
        "The addresses or networks of the proxies whose X-Forwarded-For header is trusted, separated by commas. Empty:"
        " no trusted proxies; the client address is the peer address.",
    )
    max_concurrent_requests: int = setting(
        "PLANKEEPER_MAX_CONCURRENT_REQUESTS",
        "200",
        _positive,
        "The maximum number of requests that one worker processes at the same time. More requests are rejected"
        " immediately (503), so that requests in progress stay fast.",
    )
    max_connections: int = setting(
        "PLANKEEPER_MAX_CONNECTIONS",
        "1000",
        _positive,
        "The maximum number of client connections per worker. More connections are closed.",
    )
    client_io_timeout: int = setting(
        "PLANKEEPER_CLIENT_IO_TIMEOUT",
        "20",
        _positive,
        "The time limit for a client to send headers, to send a body, and to receive the response, in seconds each.",
    )
    access_log: bool = setting("PLANKEEPER_ACCESS_LOG", "on", _flag, "Whether each request is logged: `on` or `off`.")
    metrics_port: int | None = setting(
        "PLANKEEPER_METRICS_PORT",
        "",
        _optional_port,
        "A separate port for `/metrics`. Empty: the port of the API.",
    )
    webhook_worker: bool = setting(
        "PLANKEEPER_WEBHOOK_WORKER",
        "on",
        _flag,
        "Whether `serve` also runs the webhook worker: `on` or `off`.",
    )
    max_webhook_endpoints: int = setting(
        "PLANKEEPER_MAX_WEBHOOK_ENDPOINTS", "20", _positive, "The maximum number of webhook endpoints per plan manager."
    )
    webhook_allowed_networks: tuple[IPv4Network | IPv6Network, ...] = setting(
        "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS",
        "",
        _allowed_networks,
        "The private addresses or networks that can receive webhooks, separated by commas, such as `127.0.0.1` during"
        " development. Empty: none.",
    )
    event_retention: int | None = setting(
        "PLANKEEPER_EVENT_RETENTION",
        "off",
        _days,
        "The retention period of events (the audit trail), such as `2555d`, or `off` to keep them forever.",
    )
    delivery_retention: int | None = setting(
        "PLANKEEPER_DELIVERY_RETENTION",
        "30d",
        _days,
        "The retention period of deliveries, such as `30d`, or `off` to keep them forever.",
    )
    request_log_retention: int | None = setting(
        "PLANKEEPER_REQUEST_LOG_RETENTION",
        "7d",
        _at_least_a_day,
        "The retention period of the console's API request log, such as `7d`, or `off` to disable the log. At most"
        " the latest 10,000 requests per plan manager are kept.",
    )
    operator_name: str = setting(
        "PLANKEEPER_OPERATOR_NAME",
        "plankeeper",
        _text,
        "The name of the service operator. Account managers whose email domain contains it are hidden.",
    )
    time_zone: ZoneInfo = setting(
        "PLANKEEPER_TIME_ZONE",
        "Australia/Sydney",
        _zone,
        "The time zone for checking whether an invoice date is in the future.",
    )
    cors_origins: tuple[str, ...] = setting(
        "PLANKEEPER_CORS_ORIGINS",
        "",
        _origins,
        "The origins whose pages can call the API from a browser, separated by commas. Empty: none.",
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
                raise SettingError(f"{name} is {variables.get(name)!r}; it must be {error}.") from None
        return cls(**values)
