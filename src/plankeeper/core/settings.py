"""The settings, read once from the environment into a frozen object."""

import os
from collections.abc import Mapping
from dataclasses import dataclass, fields
from datetime import date, datetime
from difflib import get_close_matches
from ipaddress import IPv4Network, IPv6Network
from pathlib import Path
from typing import Any
from zoneinfo import ZoneInfo

from plankeeper.core import setting_parsers as parsers
from plankeeper.core.setting_parsers import (
    SettingError,
    SmtpServer,
    retention,
    setting,
)

PREFIX = "PLANKEEPER_"
# Variables for builds and tests, and one that a server sets for its own processes.
OTHER_VARIABLES = {
    "PLANKEEPER_COMMIT",
    "PLANKEEPER_INTERNAL_PASSWORD_LOCK",
    "PLANKEEPER_SOAK",
    "PLANKEEPER_TEST_DATABASE_URL",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings of a process. `Settings.read()` raises SettingError for an invalid variable."""

    database_url: str | None = setting(
        "PLANKEEPER_DATABASE_URL",
        "",
        parsers.parse_optional,
        "Your own PostgreSQL (15 or newer), as `postgresql://user:password@host/database`. Separate several hosts with"
        " commas. Empty: an embedded PostgreSQL in the data directory.",
        is_secret=True,  # it contains the password
    )
    owner_database_url: str | None = setting(
        "PLANKEEPER_OWNER_DATABASE_URL",
        "",
        parsers.parse_optional,
        "The same database with the role that owns the tables, for `migrate`, `distribute`, `privileges`,"
        " `support-catalogue import`, `backup`, `restore` and `after-restore`. Servers don't need it. Empty:"
        " `PLANKEEPER_DATABASE_URL`.",
        is_secret=True,
    )
    data_dir: Path = setting(
        "PLANKEEPER_DATA_DIR", ".plankeeper", Path, "The data directory of the embedded PostgreSQL."
    )
    documents_url: str | None = setting(
        "PLANKEEPER_DOCUMENTS_URL",
        "",
        parsers.parse_documents_url,
        "The [storage of documents](operations/documents.md): a folder that all servers share, such as"
        " `file:///srv/plankeeper/documents`, or a bucket, such as `s3://bucket/prefix`. Empty: with the embedded"
        " PostgreSQL, `documents` in the data directory; with your own, the server stores no documents.",
    )
    fonts_folder: Path | None = setting(
        "PLANKEEPER_FONTS_FOLDER",
        "",
        parsers.parse_optional_path,
        "A folder with further fonts for PDF documents. Without it, documents have Latin, Greek, Cyrillic, Arabic,"
        " Hebrew, Devanagari and Thai letters.",
    )
    postgres_bin: Path | None = setting(
        "PLANKEEPER_POSTGRES_BIN",
        "",
        parsers.parse_optional_path,
        "The directory of PostgreSQL's programs, which run the embedded PostgreSQL, `pg_dump` and `pg_restore`."
        " Empty: the programs of the extra `plankeeper[embedded]` and, for backups of your own PostgreSQL, those in"
        " `PATH`.",
    )
    secret_key_file: Path | None = setting(
        "PLANKEEPER_SECRET_KEY_FILE",
        "",
        parsers.parse_optional_path,
        "The file of the keys that encrypt stored secrets, which `plankeeper secret-key create` creates. Empty: with"
        " the embedded PostgreSQL, `secret.keys` in the data directory; with your own, the server can't store secrets.",
    )
    host: str = setting("PLANKEEPER_HOST", "127.0.0.1", parsers.parse_text, "The address that `serve` listens on.")
    port: int = setting("PLANKEEPER_PORT", "8000", parsers.parse_port, "The port that `serve` listens on.")
    workers: int = setting(
        "PLANKEEPER_WORKERS",
        "",
        parsers.parse_workers,
        "The number of worker processes of `serve`. Empty: one per processor core.",
    )
    drain_delay: int = setting(
        "PLANKEEPER_DRAIN_DELAY",
        "0",
        parsers.parse_seconds,
        "How long `serve` continues to serve after SIGTERM while `/readyz` returns 503, in seconds, so that"
        " [load balancers](operations/proxies.md#restart-without-failed-requests) send no more requests when it stops.",
    )
    pool_size: int = setting(
        "PLANKEEPER_POOL_SIZE",
        "10",
        parsers.parse_positive,
        "The maximum number of database connections for requests, per worker.",
    )
    statement_timeout: int = setting(
        "PLANKEEPER_STATEMENT_TIMEOUT",
        "30",
        parsers.parse_positive,
        "The time limit of a statement of a request, in seconds (the response is 503).",
    )
    rate_limit: int = setting(
        "PLANKEEPER_RATE_LIMIT",
        "600/minute",
        parsers.parse_rate_limit,
        "The number of requests that an API key can send in a clock minute, across all servers: `600/minute`, or `off`."
        " To set the limit of one key, use `plankeeper keys create --rate-limit`.",
    )
    auth_failure_rate_limit: int = setting(
        "PLANKEEPER_AUTH_FAILURE_RATE_LIMIT",
        "60/minute",
        parsers.parse_rate_limit,
        "The number of requests with invalid credentials that a client address can send in a clock minute: `60/minute`,"
        " or `off`. Valid keys from the same address are not affected. The same limit applies separately to sign-in"
        " attempts in the console.",
    )
    sign_in_rate_limit: int = setting(
        "PLANKEEPER_SIGN_IN_RATE_LIMIT",
        "600/minute",
        parsers.parse_rate_limit,
        "The number of sign-in attempts in the console in a clock minute, for all addresses together: `600/minute`, or"
        " `off`. A quarter of it is reserved for known devices.",
    )
    trusted_proxies: tuple[str, ...] = setting(
        "PLANKEEPER_TRUSTED_PROXIES",
        "",
        parsers.parse_networks,
        "The addresses or networks of the proxies whose X-Forwarded-For header is trusted, separated by commas. Empty:"
        " no trusted proxies; the client address is the peer address.",
    )
    public_url: str | None = setting(
        "PLANKEEPER_PUBLIC_URL",
        "",
        parsers.parse_public_url,
        "The address at which browsers reach the server, such as `https://plans.example.com`. It determines the links"
        " and cookies of the console, and `/console` and `/docs` accept requests only for its host. Empty: the scheme"
        " and the `Host` of each request.",
    )
    smtp_server: SmtpServer | None = setting(
        "PLANKEEPER_SMTP_URL",
        "",
        parsers.parse_smtp_url,
        "The [mail server](operations/accounts.md#mail), such as `smtp://user:password@mail.example.com:587`, or"
        " `smtps://` for TLS without STARTTLS. Requires `PLANKEEPER_PUBLIC_URL`. Empty: no mails are sent.",
        is_secret=True,
    )
    mail_from: str = setting(
        "PLANKEEPER_MAIL_FROM",
        "",
        parsers.parse_mail_from,
        "The sender of mails, such as `Plankeeper <plans@example.com>`. Empty: `plankeeper@` with the host of"
        " `PLANKEEPER_PUBLIC_URL`.",
    )
    max_concurrent_requests: int = setting(
        "PLANKEEPER_MAX_CONCURRENT_REQUESTS",
        "200",
        parsers.parse_positive,
        "The maximum number of requests that one worker processes at the same time. More requests are rejected"
        " immediately (503), so that requests in progress stay fast.",
    )
    max_connections: int = setting(
        "PLANKEEPER_MAX_CONNECTIONS",
        "1000",
        parsers.parse_positive,
        "The maximum number of client connections per worker. More connections are closed.",
    )
    max_connections_per_address: int = setting(
        "PLANKEEPER_MAX_CONNECTIONS_PER_ADDRESS",
        "100",
        parsers.parse_positive,
        "The maximum number of connections of one client address (for IPv6, of a /64 network) per worker. More"
        " connections are closed. Trusted proxies have no such limit.",
    )
    client_io_timeout: int = setting(
        "PLANKEEPER_CLIENT_IO_TIMEOUT",
        "20",
        parsers.parse_positive,
        "The time limit for a client to send headers, to send a body, and to receive the response, in seconds each.",
    )
    access_log: bool = setting(
        "PLANKEEPER_ACCESS_LOG", "on", parsers.parse_flag, "Whether each request is logged: `on` or `off`."
    )
    log_level: str = setting(
        "PLANKEEPER_LOG_LEVEL",
        "info",
        parsers.parse_log_level,
        "The lowest level of the log lines that are written: `debug`, `info`, `warning` or `error`. The lines for"
        " requests have the level `info`.",
    )
    slow_statements: int | None = setting(
        "PLANKEEPER_SLOW_STATEMENTS",
        "1000",
        parsers.parse_milliseconds,
        "The duration in milliseconds from which a statement is [logged](operations/monitoring.md#slow-statements),"
        " or `off`.",
    )
    telemetry: bool = setting(
        "PLANKEEPER_TELEMETRY",
        "off",
        parsers.parse_telemetry,
        "Whether [traces and errors](operations/monitoring.md#traces-and-error-reports) are exported: `on` or `off`.",
    )
    metrics_port: int | None = setting(
        "PLANKEEPER_METRICS_PORT",
        "",
        parsers.parse_optional_port,
        "A separate port for `/metrics`, which responds to every client that reaches it. Empty: the port of the API.",
    )
    metrics_networks: tuple[IPv4Network | IPv6Network, ...] = setting(
        "PLANKEEPER_METRICS_NETWORKS",
        "127.0.0.1,::1",
        parsers.parse_allowed_networks,
        "The addresses or networks that can read `/metrics` on the port of the API, separated by commas.",
    )
    webhook_worker: bool = setting(
        "PLANKEEPER_WEBHOOK_WORKER",
        "on",
        parsers.parse_flag,
        "Whether `serve` also runs the webhook worker: `on` or `off`.",
    )
    max_webhook_endpoints: int = setting(
        "PLANKEEPER_MAX_WEBHOOK_ENDPOINTS",
        "20",
        parsers.parse_positive,
        "The maximum number of webhook endpoints per plan manager.",
    )
    webhook_allowed_networks: tuple[IPv4Network | IPv6Network, ...] = setting(
        "PLANKEEPER_WEBHOOK_ALLOWED_NETWORKS",
        "",
        parsers.parse_allowed_networks,
        "The private addresses or networks that can receive webhooks, separated by commas, such as `127.0.0.1` during"
        " development. Empty: none.",
    )
    event_retention: int | None = setting(
        "PLANKEEPER_EVENT_RETENTION",
        "2555d",
        parsers.parse_days,
        "The retention period of events (the audit log), such as `2555d`, or `off` to keep them forever.",
    )
    delivery_retention: int | None = setting(
        "PLANKEEPER_DELIVERY_RETENTION",
        "30d",
        parsers.parse_days,
        "The retention period of deliveries, such as `30d`, or `off` to keep them forever.",
    )
    request_log_retention: int | None = retention(
        "PLANKEEPER_REQUEST_LOG_RETENTION",
        "7d",
        "The retention period of the console's API request log, such as `7d`, or `off` to disable the log. At most"
        " the latest 10,000 requests per plan manager are kept.",
    )
    session_retention: int | None = retention(
        "PLANKEEPER_SESSION_RETENTION",
        "30d",
        "The retention period of the console's sessions after their end, such as `30d`, or `off` to keep them forever.",
    )
    access_record_retention: int | None = retention(
        "PLANKEEPER_ACCESS_RECORD_RETENTION",
        "730d",
        "The retention period of [access records](operations/data-protection.md#who-read-what): `730d`,"
        " or `off` to keep them forever.",
    )
    trash_retention: int | None = retention(
        "PLANKEEPER_TRASH_RETENTION",
        "30d",
        "How long participants and providers that the console deleted can be restored: `30d`, or `off` for no limit.",
    )
    financial_retention: int | None = retention(
        "PLANKEEPER_FINANCIAL_RETENTION",
        "2555d",
        "How long an erasure keeps the [claims and payments](operations/data-protection.md#financial-records) of a"
        " person: `2555d`, or `off` to keep them forever.",
    )
    import_file_retention: int = setting(
        "PLANKEEPER_IMPORT_FILE_RETENTION",
        "1h",
        parsers.parse_hours,
        "How long the console keeps an uploaded file that is waiting to be imported or applied, such as `1h`.",
    )
    rejected_row_retention: int | None = retention(
        "PLANKEEPER_REJECTED_ROW_RETENTION",
        "7d",
        "How long the rejected rows of an import in the console are kept: `7d`, or `off` for as long as its record.",
    )
    import_record_retention: int | None = retention(
        "PLANKEEPER_IMPORT_RECORD_RETENTION",
        "365d",
        "How long the record of an import in the console is kept, and can be undone: `365d`, or `off` for no limit.",
    )
    operator_name: str = setting(
        "PLANKEEPER_OPERATOR_NAME",
        "plankeeper",
        parsers.parse_text,
        "The name of the service operator. Account managers whose email domain contains it are hidden.",
    )
    time_zone: ZoneInfo = setting(
        "PLANKEEPER_TIME_ZONE",
        "Australia/Sydney",
        parsers.parse_zone,
        "The time zone of all plan managers: for times in the console and in mails, and for when a day begins, in"
        " checks, plans, claims, fees, statements and business days.",
    )
    cors_origins: tuple[str, ...] = setting(
        "PLANKEEPER_CORS_ORIGINS",
        "",
        parsers.parse_origins,
        "The origins whose pages can call the API from a browser, separated by commas. Empty: none.",
    )

    @property
    def today(self) -> date:
        """The date in the plan manager's time zone."""
        return datetime.now(self.time_zone).date()

    @property
    def secret_key_path(self) -> Path | None:
        """The key file: the setting's, or the one beside the embedded database; None if there is none."""
        return self.secret_key_file or (None if self.database_url else self.data_dir / "secret.keys")

    @property
    def storage_url(self) -> str | None:
        """The storage of documents: the setting's, or a folder beside the embedded database; None if there is none."""
        folder = self.data_dir / "documents"
        return self.documents_url or (None if self.database_url else folder.absolute().as_uri())

    @classmethod
    def read(cls, environment: Mapping[str, str] | None = None) -> "Settings":
        variables = os.environ if environment is None else environment
        values: dict[str, Any] = {}
        for each in fields(cls):
            name, default = each.metadata["name"], each.metadata["default"]
            try:
                values[each.name] = each.metadata["parse"](variables.get(name, default) or default)
            except ValueError as error:
                value = "invalid" if each.metadata["is_secret"] else repr(variables.get(name))
                raise SettingError(f"{name} is {value}; it must be {error}.") from None
        settings = cls(**values)
        if settings.owner_database_url and not settings.database_url:
            raise SettingError(
                "PLANKEEPER_OWNER_DATABASE_URL requires PLANKEEPER_DATABASE_URL, the address to serve with."
            )
        if settings.smtp_server:
            settings.require_public_url("PLANKEEPER_SMTP_URL")
        return settings

    @classmethod
    def unknown_variables(cls, environment: Mapping[str, str] | None = None) -> list[str]:
        """A sentence without its full stop about each variable with the prefix of settings that isn't a setting."""
        known = [each.metadata["name"] for each in fields(cls)]
        sentences: list[str] = []
        for name in sorted(os.environ if environment is None else environment):
            if not name.startswith(PREFIX) or name in known or name in OTHER_VARIABLES:
                continue
            nearest = get_close_matches(name[len(PREFIX) :], [each[len(PREFIX) :] for each in known], n=1)
            advice = f": is {PREFIX}{nearest[0]} meant?" if nearest else ""
            sentences.append(f"{name} is not a setting, and has no effect{advice}")
        return sentences

    def require_public_url(self, feature: str) -> str:
        """The public URL, which a feature needs for links or redirects. Raises SettingError if it isn't set."""
        if self.public_url is None:
            raise SettingError(
                f"{feature} requires PLANKEEPER_PUBLIC_URL, the address at which browsers reach the server, such as"
                " https://plans.example.com: its links are never made from the Host header of a request."
            )
        return self.public_url
