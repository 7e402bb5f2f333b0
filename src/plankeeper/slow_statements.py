"""The log of slow statements: name, duration and request, but neither SQL nor values, which may be personal data."""

import logging

from plankeeper.core.context import current_request_id
from plankeeper.core.metrics import SLOW_STATEMENTS
from plankeeper.database.observed_connection import OnStatement
from plankeeper.database.statement_names import statement_name

log = logging.getLogger("plankeeper")


def log_slow_statements(threshold_ms: int | None) -> OnStatement | None:
    """An observer of connections that logs statements from a duration on; None if there is no threshold."""
    if threshold_ms is None:
        return None
    threshold = threshold_ms / 1000

    def report(statement: str, seconds: float, error: BaseException | None) -> None:
        if seconds >= threshold:
            SLOW_STATEMENTS.inc()
            members = {
                "statement": statement_name(statement),
                "duration_ms": round(seconds * 1000, 1),
                "request_id": current_request_id(),
            }
            log.warning("slow statement", extra=members, exc_info=error)

    return report
