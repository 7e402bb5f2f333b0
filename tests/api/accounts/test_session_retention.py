"""Sessions that ended long ago are deleted, also those of people who don't come back."""

from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from plankeeper.accounts.policy import SESSION_RETENTION
from plankeeper.background import EveryMinute, purge_ended_sessions
from plankeeper.database.client import Executor
from support.server import RunningServer

NEW_SESSION = """
    insert into account_sessions (token_hash, account_id, created_at, last_seen_at, expires_at, address, user_agent,
        two_factor_pending, with_password, provider_ids)
    values ($1, $2, $3, $3, $4, '', '', false, true, '{}')
"""


def test_sessions_are_deleted_30_days_after_their_end(server: RunningServer, new_account: Callable[..., Any]) -> None:
    account = new_account()
    now, margin = datetime.now(UTC), timedelta(minutes=5)
    sessions = {
        b"expired long ago": (now, now - SESSION_RETENTION - margin),
        b"expired": (now, now - SESSION_RETENTION + margin),
        b"unused for long": (now - SESSION_RETENTION - margin, now + margin),
        b"in use": (now, now + margin),
    }
    for token, (used_at, expires_at) in sessions.items():
        server.run(server.db.execute(NEW_SESSION, token, account.account_id, used_at, expires_at))
    server.run(purge_ended_sessions(server.db))
    kept = server.run(
        server.db.rows(bytes, "select token_hash from account_sessions where token_hash = any($1)", list(sessions))
    )
    assert sorted(kept) == [b"expired", b"in use"]


async def test_the_purge_runs_once_a_minute() -> None:
    runs: list[object] = []

    async def work(db: Executor) -> None:
        runs.append(db)

    task = EveryMinute(work)
    for _ in range(3):
        await task(Executor(None))
    assert len(runs) == 1
