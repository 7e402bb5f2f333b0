"""Metrics for Prometheus: counters and gauges of all processes of this server.

A counter with a label is created for each value of the label, because Prometheus doesn't count an increase in a series
whose first value is 1.
"""

from typing import Literal, get_args

from prometheus_client import (
    Counter,
    Gauge,
)

ProcessKind = Literal["supervisor", "api", "webhook"]
PROCESS_KINDS: tuple[ProcessKind, ...] = get_args(ProcessKind)

POOL_OPEN = Gauge("plankeeper_db_pool_connections", "Open database connections.", multiprocess_mode="livesum")
POOL_IN_USE = Gauge("plankeeper_db_pool_connections_in_use", "Connections in use.", multiprocess_mode="livesum")
POOL_WAITERS = Gauge("plankeeper_db_pool_waiters", "Requests waiting for a connection.", multiprocess_mode="livesum")
REQUESTS_IN_FLIGHT = Gauge(
    "plankeeper_http_requests_in_flight", "Requests being processed.", multiprocess_mode="livesum"
)
EVENT_LAG = Gauge(
    "plankeeper_event_sequencing_lag_seconds",
    "How long events have been waiting for a position without any progress; 0 if none are.",
    multiprocess_mode="livemax",
)
EVENTS_UNSEQUENCED = Gauge("plankeeper_events_unsequenced", "Events without a position.", multiprocess_mode="livemax")
RECHECK_LAG = Gauge(
    "plankeeper_recheck_lag_seconds",
    "How long the oldest change that invoices have to be checked for has been waiting; 0 if there is none.",
    multiprocess_mode="livemax",
)
MAIL_ATTEMPTS = Counter("plankeeper_mail_attempts", "Attempts to send a mail.", ["outcome"])
WEBHOOK_ATTEMPTS = Counter("plankeeper_webhook_attempts", "Attempts to send a webhook.", ["outcome"])
SLOW_STATEMENTS = Counter("plankeeper_slow_statements", "Statements that took longer than the threshold.")
LOG_LINES_DROPPED = Counter("plankeeper_log_lines_dropped", "Log lines that could not be written.")
SIGN_IN_FAILURES = Counter("plankeeper_sign_in_failures", "Failed attempts to sign in to the console.", ["reason"])

# One worker of each server measures these in the database; in the others they are 0. See server/monitoring.py.
DATABASE_UP = Gauge("plankeeper_database_up", "1 if the database responds, otherwise 0.", multiprocess_mode="livemax")
DELIVERIES_WAITING = Gauge(
    "plankeeper_webhook_deliveries_waiting",
    "Due deliveries to endpoints that don't fail.",
    multiprocess_mode="livemax",
)
DELIVERY_LAG = Gauge(
    "plankeeper_webhook_delivery_lag_seconds",
    "How long the oldest of the waiting deliveries has been due; 0 if there is none.",
    multiprocess_mode="livemax",
)
DELIVERIES_FAILING = Gauge(
    "plankeeper_webhook_deliveries_failing", "Pending deliveries to failing endpoints.", multiprocess_mode="livemax"
)
ENDPOINTS_FAILING = Gauge(
    "plankeeper_webhook_endpoints_failing", "Active endpoints whose last attempts failed.", multiprocess_mode="livemax"
)
KEYS_EXPIRING = Gauge(
    "plankeeper_api_keys_expiring", "Valid keys that expire within 14 days.", multiprocess_mode="livemax"
)

# The supervisor counts these; in the other processes they are 0.
WORKERS = Gauge("plankeeper_workers", "Running processes.", ["process"], multiprocess_mode="livemax")
WORKER_RESTARTS = Counter("plankeeper_worker_restarts", "Processes that died and were replaced.", ["process"])

PROCESS_CPU = Counter("plankeeper_process_cpu_seconds", "Processor time, user and system.", ["process"])
PROCESS_MEMORY = Gauge(
    "plankeeper_process_resident_memory_bytes",
    "Resident memory of all processes of a kind.",
    ["process"],
    multiprocess_mode="livesum",
)
PROCESS_OPEN_FILES = Gauge(
    "plankeeper_process_open_fds",
    "The most open files and sockets that a process of a kind has.",
    ["process"],
    multiprocess_mode="livemax",
)
PROCESS_MAX_FILES = Gauge(
    "plankeeper_process_max_fds", "The limit of open files of a process.", ["process"], multiprocess_mode="livemax"
)

_LABEL_VALUES: dict[Counter | Gauge, tuple[str, ...]] = {
    MAIL_ATTEMPTS: ("sent", "postponed", "failed"),
    WEBHOOK_ATTEMPTS: ("succeeded", "failed"),
    SIGN_IN_FAILURES: ("password", "code", "single_sign_on", "too_soon"),
    WORKERS: ("api", "webhook"),
    WORKER_RESTARTS: ("api", "webhook"),
    PROCESS_CPU: PROCESS_KINDS,
    PROCESS_MEMORY: PROCESS_KINDS,
    PROCESS_OPEN_FILES: PROCESS_KINDS,
    PROCESS_MAX_FILES: PROCESS_KINDS,
}
for _metric, _values in _LABEL_VALUES.items():
    for _value in _values:
        _metric.labels(_value)
